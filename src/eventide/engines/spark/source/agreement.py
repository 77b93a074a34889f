"""Make all tasks of one execution read the same snapshot.

Spark asks a data source for its partitions once, and keeps them for every later query over the same
DataFrame or view. So the tasks have to decide how far they read. The first task of an execution
looks at the stream as it is, and writes what it has found to a file that only one of them can
create; all others, and those that are tried again, follow that file. It lies in the database, the
one place that all tasks see.

DB/reads/<hash>    JSON, a few bytes; swept after a week
DB/reads/swept     empty; as old as the last sweep
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from pyspark import TaskContext

READS = "reads"
KEPT_S = 7 * 86_400.0
"""No execution takes this long, with all its retries."""
SWEPT = "swept"
SWEEP_EVERY_S = 3_600.0
"""A sweep looks at every file, so it is not repeated soon."""


def execution_name() -> str:
    """Return a name that all tasks of this execution share, and no others."""
    context = TaskContext.get()
    assert context is not None
    application = [context.getLocalProperty(f"spark.app.{each}") for each in ("id", "startTime")]
    execution = context.getLocalProperty("spark.sql.execution.id")
    # A job of RDDs is not an execution: then all tasks of a stage agree.
    place = f"stage {context.stageId()}" if execution is None else f"execution {execution}"
    return "/".join([*map(str, application), place])


def agreed(folder: Path, *subject: str, choose: Callable[[], Any]) -> Any:  # noqa: ANN401 - JSON
    """Return what the first task of this execution has chosen about a subject."""
    name = sha256("/".join([execution_name(), *subject]).encode()).hexdigest()
    path = folder / READS / name
    with suppress(FileNotFoundError):
        return json.loads(path.read_bytes())
    content = json.dumps(choose()).encode()
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f"{name}.{uuid.uuid4().hex}")
    try:
        draft.write_bytes(content)
        with suppress(FileExistsError):
            os.link(draft, path)  # a rename would replace what another task has chosen
    finally:
        draft.unlink(missing_ok=True)
    if is_due(path.parent):
        sweep(path.parent)
    return json.loads(path.read_bytes())


def is_due(folder: Path) -> bool:
    """Whether the last sweep was long ago; if so, the next task takes this one for it."""
    mark = folder / SWEPT
    with suppress(FileNotFoundError):
        # A time in the future comes from another clock, and must not hold sweeps up for long.
        if abs(time.time() - mark.stat().st_mtime) < SWEEP_EVERY_S:
            return False
    mark.unlink(missing_ok=True)  # it may be another user's, who alone can touch it
    mark.touch()
    return True


def sweep(folder: Path) -> None:
    """Delete old agreements."""
    oldest = time.time() - KEPT_S
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            if entry.stat().st_mtime < oldest:
                Path(entry.path).unlink(missing_ok=True)
