"""Rules that a database keeps: one file in its folder, with the texts of files and the mapping.

`DB/rules.json` is one JSON object: `format`, `files` (a list of `name` and `text`), `mapping` (a
`name` and `text`, or null). It is replaced as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from eventide.api.database import Database
from eventide.errors import RuleError, StoreError, listed
from eventide.local_path import local_path
from eventide.rules.loading import rules_in
from eventide.rules.mapping import RuleMapping, read_mapping
from eventide.rules.ruleset import RuleSet
from eventide.rules.yaml_files import RuleFile, read_file, rule_files
from eventide.store.files.disk import write_atomically
from eventide.store.files.lock import write_lock
from eventide.store.store import RULES_FILE

FORMAT = 1


@dataclass(frozen=True, slots=True)
class KeptRules:
    """Files of rules by name, and the file of the mapping."""

    files: tuple[RuleFile, ...] = ()
    mapping: RuleFile | None = None

    def read_mapping(self) -> RuleMapping:
        """Return the mapping."""
        return RuleMapping() if self.mapping is None else read_mapping(self.mapping)


def kept(db: Database) -> RuleSet:
    """Return the rules that a database keeps."""
    found = read_kept(db.path)
    return rules_in(db, found.files, found.read_mapping())


def add(
    db: Database, *paths: str | Path, mapping: str | Path | None = None, replace: bool = False
) -> RuleSet:
    """Keep the rules in files or folders, and return all that are kept now.

    A file takes the place of the one that has its name; with `replace`, all files are given up for
    these. The mapping stays as it is, unless one is given.
    """
    files = [file for path in paths for file in rule_files(path)]
    path = None if mapping is None else local_path(mapping)
    given = None if path is None else read_file(path, path.name)
    if given is not None:
        read_mapping(given)  # what is wrong with it is said before anything changes
    with write_lock(db.path):
        before = read_kept(db.path)
        known = {} if replace else {file.name: file for file in before.files}
        merged = known | {file.name: file for file in files}
        ordered = tuple(merged[name] for name in sorted(merged))
        write_kept(db.path, KeptRules(ordered, given or before.mapping))
    return kept(db)


def drop(db: Database, *names: str) -> RuleSet:
    """Keep the rules of some files no longer, and return those that are left."""
    with write_lock(db.path):
        before = read_kept(db.path)
        known = [file.name for file in before.files]
        for name in names:
            if name not in known:
                message = f"the database keeps no file {name!r}"
                raise RuleError(message, hint=f"it keeps {listed(known) or 'none'}")
        left = tuple(file for file in before.files if file.name not in names)
        write_kept(db.path, KeptRules(left, before.mapping))
    return kept(db)


def read_kept(folder: Path) -> KeptRules:
    """Return what a database folder keeps."""
    path = folder / RULES_FILE
    try:
        entry = json.loads(path.read_bytes())
        if entry["format"] > FORMAT:
            message = f"{path} has format {entry['format']}; this Eventide reads up to {FORMAT}"
            raise StoreError(message, hint="open the database with the version that wrote it")
        mapping = entry["mapping"]
        files = tuple(RuleFile(each["name"], each["text"]) for each in entry["files"])
        return KeptRules(files, mapping and RuleFile(mapping["name"], mapping["text"]))
    except FileNotFoundError:
        return KeptRules()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise StoreError(message, hint="check the disk and the permissions") from error
    except (ValueError, LookupError, TypeError) as error:
        message = f"{path} is damaged: {error}"
        raise StoreError(message, hint="remove it, and add the rules again") from error


def write_kept(folder: Path, rules: KeptRules) -> None:
    """Replace what a database folder keeps."""
    files: Sequence[dict[str, str]] = [asdict(file) for file in rules.files]
    mapping = None if rules.mapping is None else asdict(rules.mapping)
    content = json.dumps({"format": FORMAT, "files": files, "mapping": mapping})
    try:
        write_atomically(folder / RULES_FILE, content.encode())
    except OSError as error:
        message = f"cannot write {folder / RULES_FILE}: {error}"
        hint = "check the disk's free space and the folder's permissions"
        raise StoreError(message, hint=hint) from error
