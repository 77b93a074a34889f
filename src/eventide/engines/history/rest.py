"""The ordinary SQL around our operators, run by DuckDB over their results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, Signature
from threading import Lock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType

from eventide.engines.history.situations.pairs import PeriodPairs
from eventide.errors import BindError
from eventide.lang.sql.names.columns import unique_names
from eventide.operators.expressions.users import values_of
from eventide.plan.user_functions import UserFunction, user_functions
from eventide.schema import DataType

# A query text can reach only its inputs: no files, no network, no other variables of the
# process, no settings.
_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": "false",
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
# How Arrow lays out intervals such as DuckDB's.
INTERVAL_PARTS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
DAY_US = np.int64(86_400_000_000)


@cache
def engine() -> duckdb.DuckDBPyConnection:
    """Return the DuckDB of this process: opening one takes longer than a small query."""
    return duckdb.connect(":memory:", config=_LOCKED)


_TYPES = {
    "bool": "BOOLEAN",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMP",
    "binary": "BLOB",
    "interval": "INTERVAL",
}
_lent: dict[str, UserFunction] = {}
"""The functions of users that the engine has."""
_lending = Lock()


def forget_engine() -> None:
    """Leave the engine to the parent: a child has none of its threads, and would crash."""
    engine.cache_clear()
    _lent.clear()


os.register_at_fork(before=forget_engine)


def lend_functions(text: str) -> None:
    """Make the functions of users that a text may call known to the engine."""
    if not user_functions():
        return
    said = text.lower()
    with _lending:
        for function in user_functions():
            held = _lent.get(function.name)
            if function.name not in said or held is function:
                continue
            if held is not None:
                engine().remove_function(function.name)
            engine().create_function(
                function.name,
                for_engine(function),
                [engine_type(each) for each in function.takes],
                engine_type(function.returns),
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )
            _lent[function.name] = function


def for_engine(function: UserFunction) -> Callable[..., pa.Array]:
    """Return a user's function as the engine calls it: it counts the parameters."""

    def called(*columns: pa.ChunkedArray) -> pa.Array:
        arguments = [
            column.combine_chunks().cast(kind.arrow)
            for column, kind in zip(columns, function.takes, strict=True)
        ]
        return values_of(function, arguments, len(arguments[0]))

    names = (f"argument_{number}" for number in range(len(function.takes)))
    parameters = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
    called.__dict__["__signature__"] = Signature(parameters)
    return called


def engine_type(kind: DataType) -> str:
    """Return the name that the engine has for a type."""
    return str(kind) if kind.kind == "decimal" else _TYPES[kind.kind]


def run_rest(text: str, inputs: Mapping[str, pa.Table | PeriodPairs]) -> pa.Table:
    """Return the rows of a statement over named tables and joins."""
    lend_functions(text)
    # What a cursor registers, other cursors do not see.
    with engine().cursor() as connection:
        for name, table in inputs.items():
            connection.register(name, table)
        try:
            result = connection.sql(text).to_arrow_table()
            result = result.rename_columns(unique_names(result.column_names))
        except duckdb.Error as error:
            for table in inputs.values():
                if isinstance(table, PeriodPairs) and table.failure is not None:
                    raise table.failure from None
            message = f"the SQL around the streams is wrong: {first_line(error)}"
            raise BindError(message, hint=f"what remained was: {text}") from error
    return with_plain_types(result)


def with_plain_types(table: pa.Table) -> pa.Table:
    """Return the table with DuckDB's own types as ours: sums of integers come as HUGEINT."""
    for place, field in enumerate(table.schema):
        if field.type == pa.month_day_nano_interval():
            lengths = durations(table.column(place))
            if lengths is not None:
                table = table.set_column(place, field.name, lengths)
            continue
        plain = plain_type(field.type)
        if plain is not None:
            column = table.column(place)
            if pa.types.is_decimal(field.type) and not fits_int64(column):
                continue
            table = table.set_column(place, field.name, column.cast(plain))
    return table


def plain_type(found: pa.DataType) -> pa.DataType | None:
    """Return the type of ours that stands for one of DuckDB's, or None if it is ours."""
    if found == pa.decimal128(38, 0) or (pa.types.is_integer(found) and found != pa.int64()):
        return pa.int64()
    if pa.types.is_date(found):
        return pa.timestamp("us")
    return None


def durations(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return intervals as durations; None if some have months, which have no fixed length."""
    parts = []
    for chunk in column.chunks:
        values = np.frombuffer(chunk.buffers()[1] or b"", INTERVAL_PARTS)
        values = values[chunk.offset : chunk.offset + len(chunk)]
        missing = chunk.is_null().to_numpy(zero_copy_only=False)
        if values["months"][~missing].any():
            return None
        lengths = values["days"] * DAY_US + values["nanoseconds"] // 1000
        parts.append(pa.array(lengths, mask=missing).cast(pa.duration("us")))
    return pa.chunked_array(parts, pa.duration("us"))


def fits_int64(column: pa.ChunkedArray) -> bool:
    """Whether every value of a decimal column without a fraction fits 64 bits."""
    bounds = pc.min_max(column)
    values = [bounds["min"].as_py(), bounds["max"].as_py()]
    return all(value is None or -(2**63) <= value < 2**63 for value in values)


def first_line(error: Exception) -> str:
    """Return the message of a DuckDB error, without its own picture of the text."""
    return str(error).splitlines()[0]
