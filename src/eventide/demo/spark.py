"""The part of the demo that needs Spark: one job writes the store, others answer queries."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

POLL_SECONDS = 0.2

Fraction = Callable[[float], None]


def spark_is_installed() -> bool:
    """Whether the package is there; Java shows when a session starts."""
    return find_spec("pyspark") is not None


class SparkSide:
    """A local Spark session, and Eventide on it."""

    def __init__(self, session: Any) -> None:  # noqa: ANN401 pyspark has no types
        self.session = session

    @property
    def version(self) -> str:
        """Spark's version."""
        return str(self.session.version)

    def ingest(self, files: Sequence[Path], database: Path, stream: str, done: Fraction) -> None:
        """Append files to a stream by a Spark job, reporting how much of it is done."""
        frame = self.session.read.parquet(*map(str, files))
        writer = frame.write.format("eventide").option("path", str(database))
        with watching(self.session, len(files), done):
            writer.option("stream", stream).mode("append").save()

    def sql(self, database: Path, text: str) -> pa.Table:
        """Answer a query by a Spark job."""
        from eventide.engines.spark.database import spark_database

        return spark_database(self.session, str(database)).sql(text).toArrow()

    def stop(self) -> None:
        """End the session."""
        self.session.stop()


def start_spark(log: Path) -> SparkSide:
    """Start a local session; the output of Java goes to a file."""
    from eventide.engines.spark.session import local_session

    with errors_to(log):
        return SparkSide(local_session("eventide demo"))


@contextmanager
def errors_to(log: Path) -> Iterator[None]:
    """Send what this process and those it starts write on stderr to a file.

    A process that was started in the block keeps writing there: Java's warnings are rarely useful,
    and would break the progress bar.
    """
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


@contextmanager
def watching(session: Any, least_tasks: int, done: Fraction) -> Iterator[None]:  # noqa: ANN401
    """Report the share of finished tasks while the block runs, from a thread of its own."""
    over = threading.Event()
    tracker = session.sparkContext.statusTracker()

    def poll() -> None:
        while not over.wait(POLL_SECONDS):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            for info in stages:
                if info is not None and info.numTasks:
                    done(info.numCompletedTasks / max(info.numTasks, least_tasks))

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
