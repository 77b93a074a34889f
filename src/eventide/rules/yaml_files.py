"""Files of YAML: found in folders, and read as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from eventide.errors import RuleError
from eventide.local_path import local_path

SUFFIXES = (".yml", ".yaml")


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The name of a file, and its text."""

    name: str
    text: str


def rule_files(path: str | Path) -> list[RuleFile]:
    """Return the YAML files of a folder and of those below it, in order of their names; or a file.

    A file has the name that it has from the folder on.
    """
    folder = local_path(path)
    if folder.is_dir():
        found = sorted(each for each in folder.rglob("*") if each.suffix.lower() in SUFFIXES)
    else:
        found, folder = [folder], folder.parent
    return [read_file(each, each.relative_to(folder).as_posix()) for each in found]


def read_file(path: Path, name: str) -> RuleFile:
    """Return a file; an error says why it cannot be read."""
    try:
        # What is no UTF-8 is said when its documents are asked for: other files go on.
        return RuleFile(name, path.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise RuleError(message, hint="a rule is a file of YAML, in UTF-8") from error


def documents_of(file: RuleFile) -> list[object]:
    """Return the documents of a file; those that are empty are left out."""
    try:
        found: Iterable[object] = list(yaml.load_all(file.text, Loader=yaml.CSafeLoader))
    except UnicodeEncodeError as error:
        line = file.text.count("\n", 0, error.start) + 1
        message = "this is not UTF-8"
        hint = "save the file in that encoding"
        raise RuleError(message, hint=hint, file=file.name, where=f"line {line}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}"
        message = f"this is no YAML: {getattr(error, 'problem', None) or error}"
        hint = "check quotes and indentation there"
        raise RuleError(message, hint=hint, file=file.name, where=where) from error
    return [each for each in found if each is not None]
