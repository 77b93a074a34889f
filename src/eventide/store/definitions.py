"""The definitions of a database: named queries, as a list of JSON objects in one file.

The file is one JSON object: `format`, `checksum` (CRC-32C of the text of `definitions`),
`definitions`. It is replaced as a whole, by whoever holds the lock of the database. A database
without definitions has no such file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import google_crc32c

from eventide.errors import StoreError
from eventide.store.files.disk import write_atomically
from eventide.store.files.json_text import read_json

FORMAT = 1
FILE = "definitions.json"

Definition = Mapping[str, Any]


def read_definitions(folder: Path) -> list[Definition]:
    """Return the definitions of a database folder."""
    path = folder / FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise StoreError(message, hint="check the disk and the permissions") from error
    try:
        entry = read_json(content)
        found = entry["format"]
        if type(found) is int and found > FORMAT:
            message = f"{path} has format {found}; this Eventide reads up to {FORMAT}"
            raise StoreError(message, hint="open the database with the version that wrote it")
        definitions = entry["definitions"]
        if entry["checksum"] != _checksum(_text(definitions)):
            message = "its checksum does not match"
            raise ValueError(message)
        return [dict(each) for each in definitions]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged(folder, error) from error


def damaged(folder: Path, why: object) -> StoreError:
    """Return the error for a file of definitions that cannot be read."""
    message = f"{folder / FILE} is damaged: {why}"
    hint = "a backup has it; without the file the database has no named queries"
    return StoreError(message, hint=hint)


def write_definitions(folder: Path, definitions: Sequence[Definition]) -> None:
    """Replace the definitions of a database folder; after a crash all are old, or all new."""
    path, text = folder / FILE, _text(definitions)
    content = f'{{"format":{FORMAT},"checksum":{_checksum(text)},"definitions":{text}}}\n'
    try:
        write_atomically(path, content.encode())
    except OSError as error:
        message = f"cannot write {path}: {error}"
        hint = "check the disk's free space and the folder's permissions"
        raise StoreError(message, hint=hint) from error


def defined_names(folder: Path) -> dict[str, str]:
    """Return the names of definitions as they are written, by name in lower case."""
    names = (str(each.get("name", "")) for each in read_definitions(folder))
    return {name.lower(): name for name in names}


def _text(definitions: Sequence[Definition]) -> str:
    return json.dumps([dict(each) for each in definitions], separators=(",", ":"))


def _checksum(text: str) -> int:
    return int(google_crc32c.value(text.encode()))
