"""Maintenance as Spark tasks: compaction, index rebuild, aggregate backfill, thinning.

The store makes independent jobs and commits all that they have written at once
(store/upkeep/maintenance.py); here each job is a task. The driver holds the stream's lock
meanwhile. If a job fails, the stream stays as it was, and the files of other jobs are deleted;
files of a task that was killed, or ran twice, are listed nowhere and are swept after a day.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from eventide.engines.spark.spread import Batches
from eventide.engines.spark.work import (
    aggregates_named,
    items_in,
    pickled,
    register_here,
    work_frame,
)
from eventide.store.files.disk import remove
from eventide.store.index.aggregates import UserAggregate
from eventide.store.segments.segment import Segment
from eventide.store.upkeep.maintenance import Job

DONE = "item int, outcome binary"
DONE_ARROW = pa.schema([("item", pa.int32()), ("outcome", pa.binary())])

Outcome = tuple[Segment, ...] | Exception


@dataclass(frozen=True, slots=True)
class TaskJobs:
    """Runs jobs as tasks of a Spark session: a `RunJobs`."""

    spark: SparkSession

    def __call__(self, jobs: Sequence[Job]) -> list[tuple[Segment, ...]]:
        """Return the output of each job; if one fails, delete all output and raise its error."""
        items = [(lean(job), aggregates_of(job)) for job in jobs]
        rows = work_frame(self.spark, items).mapInArrow(run_items, DONE).collect()
        # Written by our own tasks.
        outcomes: dict[int, Outcome] = {
            row["item"]: pickle.loads(row["outcome"])  # noqa: S301
            for row in rows
        }
        written: list[tuple[Segment, ...]] = []
        failures: list[Exception] = []
        for number in range(len(jobs)):
            outcome = outcomes[number]
            if isinstance(outcome, Exception):
                failures.append(outcome)
            else:
                written.append(outcome)
        if failures:
            discard(jobs[0], written)
            raise failures[0]
        return written


def run_items(batches: Batches) -> Batches:
    """Run the jobs of one task. An error is an outcome: Spark would only run the job again."""
    for number, (job, aggregates) in items_in(batches):
        outcome: Outcome
        try:
            register_here(aggregates)
            outcome = job.run()
        except Exception as error:
            outcome = error
        arrays = [pa.array([number], pa.int32()), pa.array([pickled(outcome)])]
        yield pa.RecordBatch.from_arrays(arrays, schema=DONE_ARROW)


def lean(job: Job) -> Job:
    """Return a job without the stream's other segments: it reads none but its own."""
    return replace(job, manifest=job.manifest.bare())


def aggregates_of(job: Job) -> tuple[UserAggregate, ...]:
    """Return the aggregates that a job computes or merges."""
    pairs = [pair for segment in job.segments for pair in segment.form.aggregates]
    pairs += job.manifest.options.aggregates
    return aggregates_named(dict.fromkeys(name for name, _ in pairs))


def discard(job: Job, written: Sequence[tuple[Segment, ...]]) -> None:
    """Delete the files that jobs have written, and that the stream does not list."""
    listed = job.manifest.files
    for segment in (segment for come in written for segment in come):
        for name in segment.files:
            if name not in listed:
                remove(job.folder / name)
