"""In which encoding the bytes of a document are.

The parser reads UTF-8, UTF-16, and encodings of one byte a character. Documents in others become
UTF-8 first.
"""

from __future__ import annotations

import codecs
import re

from eventide.errors import IngestError

_DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_WIDE = {b"\x00\x00\xfe\xff": "utf-32", b"\xff\xfe\x00\x00": "utf-32"}
_SLOW = {"punycode", "idna"}
"""Encodings of names of hosts: to read a document takes the square of its length."""
_PARSED = {"utf-8", "utf-16", "utf-16-le", "utf-16-be", "iso8859-1", "ascii"}


def readable(document: bytes) -> tuple[bytes, str | None]:
    """Return the bytes for the parser, and their encoding if it is not the one that they declare.

    >>> readable("<?xml version='1.0' encoding='Shift_JIS'?><a>日</a>".encode("shift_jis"))[1]
    'utf-8'
    >>> readable(b"<a/>")
    (b'<a/>', None)
    """
    wide = _WIDE.get(document[:4])
    if wide is not None:
        return _in_utf8(document, wide), "utf-8"
    declared = _DECLARED.match(document[:512].lstrip(codecs.BOM_UTF8))
    if declared is None:
        return document, None
    known = _codec(declared[1].decode("ascii"))
    if known.name in _PARSED or _is_of_bytes(known.name):
        return document, None
    return _in_utf8(document, known.name), "utf-8"


def written_as_declared(text: str) -> bytes:
    r"""Return a text of XML in the encoding that it declares, in which it will be read.

    >>> written_as_declared("<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>")[-5:]
    b'\xe9</a>'
    """
    declared = _DECLARED.match(text[:512].encode(errors="replace"))
    if declared is None:
        return text.encode()
    name = declared[1].decode("ascii")
    _codec(name)
    try:
        return text.encode(name)
    except (LookupError, UnicodeError) as error:
        message = f"the text is not one of the encoding {name!r} that it declares: {error}"
        raise IngestError(message, hint="leave the declaration out, or pass bytes") from None


def _codec(name: str) -> codecs.CodecInfo:
    """Return how to read an encoding."""
    try:
        found = codecs.lookup(name)
    except LookupError:
        found = None
    if found is None or found.name in _SLOW:
        message = f"the encoding {name!r} is not known"
        raise IngestError(message, hint="UTF-8 is always right")
    return found


def _is_of_bytes(name: str) -> bool:
    """Whether every byte is a character, or none: the parser asks Python for a table of them."""
    every = bytes(range(256))
    try:
        return len(every.decode(name, "replace")) == len(every)
    except (LookupError, UnicodeError):
        return False


def _in_utf8(document: bytes, name: str) -> bytes:
    try:
        return document.decode(name).encode()
    except (LookupError, UnicodeError) as error:
        message = f"the document is not in the encoding {name!r} that it declares: {error}"
        raise IngestError(message, hint="UTF-8 is always right") from None
