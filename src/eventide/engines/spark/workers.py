"""Check once, before any real work, whether the workers of a session can do it.

A worker that lacks a package, or does not see the folder of a database, would fail in the middle of
a job, with a long trace that does not say what to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from eventide.engines.spark.session import cores
from eventide.engines.spark.work import SHARED_HINT
from eventide.errors import StoreError, UnsupportedError, listed

PACKAGES = ("eventide", "numba", "numpy", "pandas", "pyarrow")
ASKED: WeakKeyDictionary[SparkSession, set[Path | None]] = WeakKeyDictionary()
"""The folders that the workers of a session see; None: that they have all packages."""


def check_workers(
    session: SparkSession, folder: Path | None = None, packages: Sequence[str] = PACKAGES
) -> None:
    """Refuse a session whose workers lack a package, or do not see a folder; check only once."""
    known = ASKED.setdefault(session, set())
    if folder in known:
        return
    for answer in answers(
        session, look_for(list(packages), None if folder is None else str(folder))
    ):
        where = f"{answer['python']} on {answer['host']}"
        if answer["lacking"]:
            message = f"workers of this session lack {listed(answer['lacking'])}: they run {where}"
            hint = (
                "pip install 'eventide[spark]' there; or name another Python in PYSPARK_PYTHON "
                "before the session starts"
            )
            raise UnsupportedError(message, hint=hint)
        if not answer["sees"]:
            message = f"workers of this session do not see {folder}: they run on {answer['host']}"
            raise StoreError(message, hint=SHARED_HINT)
    known |= {None, folder}


def answers(session: SparkSession, look: Callable[[int], str]) -> list[dict[str, Any]]:
    """Return what a task for each core has found."""
    asked = f.udf(look, "string", useArrow=False)
    count = cores(session)
    try:
        found = session.range(0, count, 1, count).select(asked("id").alias("found")).collect()
    except PySparkException as error:
        message = "the workers of this session cannot run Python"
        hint = f"Spark says: {str(error).strip().splitlines()[-1]}"
        raise UnsupportedError(message, hint=hint) from error
    return [json.loads(row["found"]) for row in found]


def look_for(packages: list[str], folder: str | None) -> Callable[[int], str]:
    """Return a function that a worker can run that has nothing of ours."""

    def look(_: int) -> str:
        import json
        import os
        import socket
        import sys
        from importlib.util import find_spec

        return json.dumps(
            {
                "lacking": [name for name in packages if find_spec(name) is None],
                "sees": folder is None or os.path.isdir(folder),  # noqa: PTH112
                "host": socket.gethostname(),
                "python": sys.executable,
            }
        )

    return look
