"""Local paths as callers write them: a path, or a `file:` address."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

from eventide.errors import StoreError

# One letter is a drive of Windows; and a folder may have a colon in its name.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")
_HERE = re.compile(r"(?://(?:localhost)?)?(?=/(?!/))")
"""What stands between `file:` and the path: no host, or this one."""


def local_path(given: object) -> Path:
    """Return the path that a caller means; refuse an address on another machine by its scheme.

    `file:` addresses are absolute, and `%20` in them is a space. `~` is the home folder.

    >>> local_path("file:///data/two%20words.ev").as_posix()
    '/data/two words.ev'
    >>> local_path("s3://bucket/cars.ev")
    Traceback (most recent call last):
        ...
    eventide.errors.StoreError: 's3://bucket/cars.ev' lies elsewhere: s3 addresses are not read
    hint: Eventide keeps databases in local folders; mount it, or copy it here
    """
    if not isinstance(given, str | os.PathLike) or isinstance(os.fspath(given), bytes):
        message = f"a path is text, not {type(given).__name__}: {given!r:.80}"
        raise StoreError(message, hint='write it as in "traffic.ev"')
    text = str(os.fspath(given))
    if not text or "\0" in text:
        message = f"{text!r:.80} is not a path"
        raise StoreError(message, hint='write it as in "traffic.ev"; "." is the current folder')
    if text.startswith("file:"):
        return _of_file(text)
    address = _ADDRESS.match(text)
    if address is not None:
        # As it was before pathlib made one slash of two.
        whole = text if "://" in text else text.replace(":/", "://", 1)
        message = f"{whole!r:.200} lies elsewhere: {address[1]} addresses are not read"
        hint = "Eventide keeps databases in local folders; mount it, or copy it here"
        raise StoreError(message, hint=hint)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        message = f"{text!r:.200} names a home folder that is not known"
        raise StoreError(message, hint="write the whole path") from None


def _of_file(text: str) -> Path:
    """Return the path of a `file:` address."""
    rest = text.removeprefix("file:")
    host = _HERE.match(rest)
    if host is None:
        message = f"{text!r:.200} names no absolute path of this machine"
        raise StoreError(message, hint="write file:///folder/name, or a path without file:")
    coded = rest[host.end() :]
    wrong = re.search(r"[?#]|%(?![0-9A-Fa-f]{2})|%00", coded)
    if wrong is not None:
        message = f"{text!r:.200} has {wrong[0]!r}, which is not part of a path there"
        raise StoreError(message, hint="write ? as %3F, # as %23 and % as %25")
    return Path(os.fsdecode(unquote_to_bytes(coded)))
