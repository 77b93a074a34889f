"""Filter rows in the JVM that a query does not need, because passing them to Python is expensive.

Spark gets only conditions that mean the same to Spark and to us: a time range, and a plain column
compared with a constant. The query's own filter runs anyway, so these need not be all conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventide.instants import TimeRange
from eventide.plan import expressions as plan
from eventide.plan.nodes import Filter, Scan
from eventide.plan.tree import Plan
from eventide.schema import MAX_TS_US, MIN_TS_US, TS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Spark compares these as we do: nulls give null, and NaN is the largest number.
COMPARABLE: tuple[type[t.DataType], ...] = (
    t.BooleanType,
    t.ByteType,
    t.ShortType,
    t.IntegerType,
    t.LongType,
    t.FloatType,
    t.DoubleType,
)


def prefiltered(frame: DataFrame, block: Plan) -> DataFrame:
    """Return the rows of a DataFrame that a plan over one scan can want."""
    for condition in conditions_of(block):
        asked = spark_condition(frame, condition)
        if asked is not None:
            frame = frame.where(asked | without_time(frame))
    return frame


def prefiltered_by_time(frame: DataFrame, time_range: TimeRange) -> DataFrame:
    """Return the rows of a DataFrame in a time range."""
    if time_range.start_us > MIN_TS_US:
        late_enough = frame[TS] >= instant(frame, time_range.start_us)
        frame = frame.where(late_enough | without_time(frame))
    if time_range.end_us <= MAX_TS_US:
        early_enough = frame[TS] < instant(frame, time_range.end_us)
        frame = frame.where(early_enough | without_time(frame))
    return frame


def without_time(frame: DataFrame) -> Column:
    """Pass rows without a time: they are an error, which must not be hidden."""
    return frame[TS].isNull()


def conditions_of(block: Plan) -> Iterator[plan.Expression]:
    """Yield the conditions of the filter right above the scan, one at a time."""
    match block:
        case Filter(source=Scan(), condition=condition):
            yield from plan.conjuncts(condition)
        case _:
            for source in block.children:
                yield from conditions_of(source)


def spark_condition(frame: DataFrame, condition: plan.Expression) -> Column | None:
    """Return a condition for Spark, or None if Spark might evaluate it differently."""
    match condition:
        case plan.Call(function, (plan.Column(name), plan.Literal(value))):
            pass
        case _:
            return None
    if name not in frame.columns or not is_comparable(frame.schema[name].dataType, value):
        return None
    column, constant = frame[f"`{name}`"], f.lit(value)
    match function:
        case "=":
            return column == constant
        case "<":
            return column < constant
        case "<=":
            return column <= constant
        case ">":
            return column > constant
        case ">=":
            return column >= constant
    return None


def is_comparable(kind: t.DataType, value: plan.Scalar) -> bool:
    """Whether Spark compares a column with a constant exactly as we do."""
    if isinstance(value, str):
        return kind == t.StringType()  # a collation of its own would compare in other ways
    return isinstance(value, bool | int | float) and isinstance(kind, COMPARABLE)


def instant(frame: DataFrame, instant_us: int) -> Column:
    """Return a constant of the type that the time column has."""
    moment = EPOCH + timedelta(microseconds=instant_us)
    match frame.schema[TS].dataType:
        case t.TimestampType():
            return f.lit(moment)
        case t.TimestampNTZType() | t.DateType():
            # As text: a datetime without a zone would be one of the driver's zone.
            return f.lit(moment.replace(tzinfo=None).isoformat(" ")).cast("timestamp_ntz")
        case _:
            return f.lit(instant_us)
