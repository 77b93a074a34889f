"""`load`: files of rules to the rules of a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from eventide.api.database import Database
from eventide.errors import EventideError, RuleError
from eventide.rules.mapping import Catalog, RuleMapping, mapping_of
from eventide.rules.rule import Rule
from eventide.rules.ruleset import RuleSet
from eventide.rules.texts import quoted
from eventide.rules.yaml_files import RuleFile, rule_files


def load(
    db: Database,
    *paths: str | Path,
    mapping: RuleMapping | Mapping[str, object] | str | Path | None = None,
) -> RuleSet:
    """Return the Sigma rules in files, or in folders with everything below, as queries of `db`.

    `mapping` is the path of a YAML file, or its content: which stream has the events of a log
    source, and which columns the fields of rules are. Without it, a stream is called like the
    category of a rule, and columns like its fields. Rules that cannot be read, or have no query,
    are in `problems`; the others go on.
    """
    files = [file for path in paths for file in rule_files(path)]
    return rules_in(db, files, mapping_of(mapping))


def examine(
    *paths: str | Path,
    mapping: RuleMapping | Mapping[str, object] | str | Path | None = None,
) -> tuple[tuple[Rule, ...], tuple[RuleError, ...]]:
    """Return rules and problems without a database: every field is a text of its own name."""
    from eventide.rules.sigma.queries import rules_of

    files = [file for path in paths for file in rule_files(path)]
    rules, problems = rules_of(files, mapping_of(mapping), None)
    return tuple(rules), tuple(problems)


def rules_in(db: Database, files: Iterable[RuleFile], mapping: RuleMapping) -> RuleSet:
    """Return the rules in files that have been read."""
    from eventide.rules.sigma.queries import rules_of

    rules, problems = rules_of(files, mapping, catalog_of(db))
    return RuleSet(db, tuple(rules), tuple(problems))


def catalog_of(db: Database) -> Catalog:
    """Return the columns of all streams of a database, derived streams and views too."""
    found = {}
    for name in db.streams():
        try:
            found[str(name)] = db.plan(f"SELECT * FROM {quoted(name)}").row
        except EventideError:
            continue  # a query by name whose streams have changed: reading it says so
    return found
