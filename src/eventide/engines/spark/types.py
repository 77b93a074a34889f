"""Spark's types and ours, and how columns cross the border between the JVM and Python.

A Spark timestamp reaches Arrow as microseconds in UTC under the label of the session's zone; the
label is dropped. On the way back times are instants, under the label UTC: TIMESTAMP, the same in
every session. Those that zones.py names have no label: TIMESTAMP_NTZ. SQL on the Spark side would
be no help: `timestampdiff` on TIMESTAMP_NTZ is an hour off where the session's zone skips one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from eventide.errors import SchemaError, listed
from eventide.schema import SEQ, TS, TYPE_NAMES, Attribute, DataType, Schema

KINDS: tuple[tuple[type[t.DataType], str], ...] = (
    (t.BooleanType, "bool"),
    (t.ByteType, "int64"),
    (t.ShortType, "int64"),
    (t.IntegerType, "int64"),
    (t.LongType, "int64"),
    (t.FloatType, "float64"),
    (t.DoubleType, "float64"),
    (t.StringType, "string"),
    (t.VarcharType, "string"),
    (t.CharType, "string"),
    (t.TimestampType, "timestamp"),
    (t.TimestampNTZType, "timestamp"),
    (t.DateType, "timestamp"),
    (t.BinaryType, "binary"),
)

INSTANT = pa.timestamp("us", tz="UTC")


def type_of(spark_type: t.DataType, name: str) -> DataType:
    """Return our type for a column of a DataFrame."""
    if isinstance(spark_type, t.DecimalType):
        return DataType("decimal", spark_type.precision, spark_type.scale)
    if isinstance(spark_type, t.ArrayType):
        return DataType("list", element=type_of(spark_type.elementType, name))
    for known, kind in KINDS:
        if isinstance(spark_type, known):
            return DataType.parse(kind)
    message = f"column {name!r} has type {spark_type.simpleString()}, which no stream can hold"
    raise SchemaError(message, hint=f"drop or convert it; the types are {', '.join(TYPE_NAMES)}")


def spark_type(data_type: DataType, *, zoneless: bool = False) -> t.DataType:
    """Return the Spark type of one of ours; times are instants unless they have no zone."""
    if data_type.kind == "decimal":
        return t.DecimalType(data_type.precision, data_type.scale)
    if data_type.element is not None:
        return t.ArrayType(spark_type(data_type.element, zoneless=zoneless))
    kinds: dict[str, t.DataType] = {
        "bool": t.BooleanType(),
        "int64": t.LongType(),
        "float64": t.DoubleType(),
        "string": t.StringType(),
        "timestamp": t.TimestampNTZType() if zoneless else t.TimestampType(),
        "binary": t.BinaryType(),
        "interval": t.DayTimeIntervalType(),
        "null": t.NullType(),
    }
    return kinds[data_type.kind]


def spark_schema(arrow: pa.Schema, zoneless: Collection[str] = ()) -> t.StructType:
    """Return the Spark schema of result rows; the times in `zoneless` have no zone."""
    fields = []
    for field in arrow:
        found = DataType.from_arrow(field.type)
        assert found is not None
        kind = spark_type(found, zoneless=field.name in zoneless)
        fields.append(t.StructField(field.name, kind))
    return t.StructType(fields)


def mapped(
    frame: DataFrame,
    run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    zoneless: Collection[str],
) -> DataFrame:
    """Return the result rows that `run` makes of the rows of a DataFrame."""

    def leave(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (to_the_border(rows, zoneless) for rows in run(batches))

    return frame.mapInArrow(leave, spark_schema(schema, zoneless))


def zoneless_in(rows: t.StructType) -> frozenset[str]:
    """Return the columns of a DataFrame that are times without a zone; days have none either."""
    without = t.TimestampNTZType | t.DateType
    found = set()
    for field in rows.fields:
        kind = field.dataType
        inner = kind.elementType if isinstance(kind, t.ArrayType) else kind
        if isinstance(inner, without):
            found.add(field.name)
    return frozenset(found)


def schema_of(frame: DataFrame) -> Schema:
    """Return the schema of a DataFrame's rows as events; it needs a `ts` column."""
    if TS not in frame.columns:
        message = f"the DataFrame has no column {TS!r}, only {listed(frame.columns)}"
        raise SchemaError(message, hint=_time_hint(frame))
    kind = type_of(frame.schema[TS].dataType, TS)
    if kind.kind not in ("int64", "timestamp"):
        message = f"column {TS!r} has type {kind}"
        raise SchemaError(message, hint="it holds a timestamp, or microseconds as bigint")
    return Schema(attributes_of(frame.schema))


def _time_hint(frame: DataFrame) -> str:
    """Suggest a `ts` beside the column it is taken from: a period keeps its start_ts."""
    times = (t.TimestampType, t.TimestampNTZType, t.DateType)
    found = (field.name for field in frame.schema.fields if isinstance(field.dataType, times))
    return f"df.withColumn({TS!r}, df[{next(found, 'your time column')!r}])"


def attributes_of(rows: t.StructType) -> tuple[Attribute, ...]:
    """Return the columns of rows as attributes, without `ts` and `_seq`."""
    if SEQ in rows.fieldNames() and type_of(rows[SEQ].dataType, SEQ).kind != "int64":
        found = rows[SEQ].dataType.simpleString()
        message = f"column {SEQ!r} has type {found}, but it numbers the events"
        raise SchemaError(message, hint=f"drop it, or rename it: {SEQ.strip('_')!r} is free")
    return tuple(
        Attribute(field.name, type_of(field.dataType, field.name))
        for field in rows.fields
        if field.name not in (TS, SEQ)
    )


def carried(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the columns to pass to Python; columns that Spark cannot pass are refused."""
    chosen = [name for name in names if name in frame.columns]
    for name in chosen:
        if "." in name or "`" in name:
            # `mapInArrow` looks a column up by its name, where a dot means a field of a struct.
            message = (
                f"column {name!r} of the DataFrame has a name that Spark cannot carry to Python"
            )
            new = name.replace(".", "_").replace("`", "_")
            raise SchemaError(message, hint=f"df.withColumnRenamed({name!r}, {new!r})")
    return frame.select([f"`{name}`" for name in chosen])


def from_the_border(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows that came from the JVM with exactly the types of `schema`."""
    columns = []
    for field in schema:
        column = rows.column(field.name)
        if pa.types.is_timestamp(field.type):
            column = utc_times(column)
        elif pa.types.is_list(field.type) and pa.types.is_timestamp(field.type.value_type):
            column = _with_values(column, utc_times(column.values))
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def utc_times(column: pa.Array) -> pa.Array:
    """Return times in UTC without a zone: microseconds, timestamps of any zone, or dates."""
    if pa.types.is_date(column.type):
        return column.cast(pa.timestamp("us"))
    # Through int64, for a cast between zones would shift what is already in UTC.
    return column.cast(pa.int64()).view(pa.timestamp("us"))


def _at_the_border(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_at_the_border(kind.value_type))
    return INSTANT if pa.types.is_timestamp(kind) else kind


def _labelled(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return times, or lists of times, under the label of another zone."""
    if not pa.types.is_list(kind):
        return column.view(kind)
    return _with_values(column, _labelled(column.values, kind.value_type))


def _with_values(lists: pa.Array, values: pa.Array) -> pa.Array:
    """Return lists with other values."""
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(lists.offsets, values, mask=mask)


def to_the_border(rows: pa.RecordBatch, zoneless: Collection[str]) -> pa.RecordBatch:
    """Return rows whose times are instants in UTC, but for those without a zone."""
    arrow = pa.schema(
        [
            field if field.name in zoneless else field.with_type(_at_the_border(field.type))
            for field in rows.schema
        ]
    )
    columns = [
        column if column.type == field.type else _labelled(column, field.type)
        for column, field in zip(rows.columns, arrow, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow)
