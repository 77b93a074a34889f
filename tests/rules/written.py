"""Rules that tests write: as YAML, and as queries over tables in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import yaml

import eventide as ev
from eventide.errors import RuleError
from eventide.rules.mapping import Catalog, RuleMapping, parse_mapping
from eventide.rules.rule import Rule
from eventide.rules.sigma.queries import rules_of
from eventide.rules.yaml_files import RuleFile
from eventide.schema import Schema

STREAM = "process_creation"


def plain(detection: Mapping[str, Any], name: str = "rule", stream: str = STREAM) -> dict[str, Any]:
    """Return a plain rule."""
    source = {"category": stream}
    return {"title": name, "name": name, "logsource": source, "detection": dict(detection)}


def correlated(kind: str, rules: Sequence[str], **more: object) -> dict[str, Any]:
    """Return a correlation; `group_by` stands for group-by."""
    said = {key.replace("_", "-"): value for key, value in more.items()}
    entry = {"type": kind, "rules": list(rules), "timespan": "10s", **said}
    return {"title": "together", "name": "together", "correlation": entry}


def read(
    *documents: Mapping[str, Any],
    catalog: Catalog | None = None,
    mapping: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Rule], list[RuleError]]:
    """Return rules by their names, and what is wrong with others."""
    file = RuleFile("rules.yml", yaml.safe_dump_all(documents))
    known = RuleMapping() if mapping is None else parse_mapping(mapping)
    rules, problems = rules_of([file], known, catalog)
    return {rule.id: rule for rule in rules}, problems


def text_of(
    *documents: Mapping[str, Any],
    catalog: Catalog | None = None,
    mapping: Mapping[str, Any] | None = None,
) -> str:
    """Return the query of the last rule, of rules without a problem."""
    rules, problems = read(*documents, catalog=catalog, mapping=mapping)
    assert problems == []
    return rules[str(documents[-1]["name"])].text


def table_of(types: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return events as a table; those without a time come a second after another."""
    schema = Schema.of(types).event_arrow
    timed = [{"ts": place * 1_000_000, **row} for place, row in enumerate(rows)]
    names = ["ts", *types]
    return pa.table(
        {
            name: pa.array([row.get(name) for row in timed], schema.field(name).type)
            for name in names
        }
    )


def found_by(text: str, rows: pa.Table, stream: str = STREAM) -> list[dict[str, Any]]:
    """Return the rows of a query over a table."""
    return ev.sql(text, **{stream: rows}).rows()
