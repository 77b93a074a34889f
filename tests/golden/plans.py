"""Golden plans: query, `----`, plan. `python -m tests.golden.plans` writes them anew."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from eventide.errors import EventideError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import read_cel
from eventide.plan.explain import explain
from eventide.schema import Schema

FILE = Path(__file__).with_name("plans.txt")
MATCH_ERRORS = Path(__file__).with_name("match_errors.txt")
TPSTREAM_ERRORS = Path(__file__).with_name("tpstream_errors.txt")
CEL_PLANS = Path(__file__).with_name("cel_plans.txt")
CEL_ERRORS = Path(__file__).with_name("cel_errors.txt")
RULE = "----"

CATALOG = {
    "cars": Schema.of(
        {"car": "string", "speed": "float64", "lane": "int64", "toll": "decimal(10,2)"}
    ),
    "trucks": Schema.of({"car": "string", "load": "int64", "Driver": "string"}),
}


def read(file: Path = FILE) -> Iterator[tuple[str, str]]:
    """Yield each query, with the comment lines above it, and its plan or error."""
    for case in file.read_text().strip().split("\n\n"):
        query, _, plan = case.partition(f"\n{RULE}\n")
        yield query, plan


def planned(query: str, *, cel: bool = False) -> str:
    """Return what the file should say about a query."""
    lines = [line for line in query.splitlines() if not line.startswith("#")]
    text = "\n".join(lines)
    try:
        return explain(plan_sql(read_cel(text) if cel else text, CATALOG))
    except EventideError as error:
        return f"{type(error).__name__}: {error}"


def regenerate() -> None:
    """Write the plans anew, for a person to review."""
    for file in (FILE, MATCH_ERRORS, TPSTREAM_ERRORS, CEL_PLANS, CEL_ERRORS):
        cel = file in (CEL_PLANS, CEL_ERRORS)
        cases = [f"{query}\n{RULE}\n{planned(query, cel=cel)}\n" for query, _ in read(file)]
        file.write_text("\n".join(cases))
        sys.stdout.write(f"{file.name}: {len(cases)}\n")


if __name__ == "__main__":
    regenerate()
