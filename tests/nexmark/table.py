"""Run NEXMark on all four engines, and write the table of docs/nexmark.md.

python -m tests.nexmark.table           all of them
python -m tests.nexmark.table q9 q19    some; the other rows of the table stay
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.nexmark.queries import DOCS, queries

if TYPE_CHECKING:
    from eventide.engines.spark.database import SparkDatabase
    from tests.nexmark.queries import Query

ENGINES = ("history", "live", "Spark job", "Spark stream")


def table_text(cells: dict[str, list[str]]) -> str:
    """Return the table in Markdown."""
    lines = [f"| query | {' | '.join(ENGINES)} |", "|---" * (len(ENGINES) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(row)} |" for name, row in cells.items()]
    return "\n" + "\n".join(lines) + "\n\n"


def table_cells(text: str) -> dict[str, list[str]]:
    """Return the rows of a table."""
    lines = [line.strip("| ").split(" | ") for line in text.strip().splitlines()]
    return {row[0]: row[1:] for row in lines[2:]}


def cell(run: Callable[[], object]) -> str:
    """Return whether a query runs; an error says why not."""
    from eventide.errors import EventideError

    try:
        run()
    except EventideError as error:
        return f"no: {error.message.partition(' is not ')[0]}"
    return "yes"


def run_job(on_spark: SparkDatabase, query: Query) -> None:
    """Answer a query in a job."""
    on_spark.sql(query.text).collect()


def run_stream(on_spark: SparkDatabase, query: Query) -> None:
    """Replay the events on Spark, until all of them have come."""
    text = query.live or query.text
    frame = on_spark.replay(text, buckets=2, rows_per_batch=10**6)
    stream = frame.writeStream.format("memory").queryName(query.name).outputMode("append").start()
    stream.processAllAvailable()
    stream.stop()


def main() -> None:
    """Run all queries, and write the table."""
    import eventide as ev
    from eventide.engines.spark.session import local_session
    from tests.nexmark.test_nexmark import filled

    warnings.simplefilter("ignore")
    session = local_session("nexmark", cores=2)
    db = filled(Path(tempfile.mkdtemp()) / "db")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    on_spark = ev.spark(session, db.path)
    page = DOCS.read_text()
    before, rest = page.split("<!-- table -->\n")
    written, after = rest.split("<!-- end of table -->")
    cells = table_cells(written)
    for name in sys.argv[1:] or queries():
        query = queries()[name]
        cells[name] = [
            cell(partial(db.sql, query.text)),
            cell(partial(db.subscribe, query.live or query.text)),
            cell(partial(run_job, on_spark, query)),
            cell(partial(run_stream, on_spark, query)),
        ]
        sys.stderr.write(f"{name} {cells[name]}\n")
    session.stop()
    DOCS.write_text(f"{before}<!-- table -->\n{table_text(cells)}<!-- end of table -->{after}")


if __name__ == "__main__":
    main()
