"""Functions over times and intervals. Times are UTC and have no zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eventide.operators.expressions.datum import (
    Datum,
    Implementation,
    as_array,
    length_of,
    per_parameter,
)
from eventide.schema import DataType


def _subsecond(time: Datum, per_second: int) -> Datum:
    """The seconds of the minute, in finer units, as SQL has it."""
    us = pc.add(pc.multiply(pc.millisecond(time), 1_000), pc.microsecond(time))
    fine = pc.divide(us, 1_000_000 // per_second)
    return pc.add(pc.multiply(pc.second(time), per_second), fine)


_PARTS: Mapping[str, Callable[[Datum], Datum]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dow": lambda time: pc.day_of_week(time, count_from_zero=True, week_start=7),
    "isodow": lambda time: pc.day_of_week(time, count_from_zero=False, week_start=1),
    "doy": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": lambda time: _subsecond(time, 1_000),
    "microsecond": lambda time: _subsecond(time, 1_000_000),
}


def extract(arguments: Sequence[Datum], _: DataType) -> Datum:
    """A part of the calendar or the clock."""
    part, time = arguments
    return pc.cast(_PARTS[part.as_py()](time), pa.int64())


def date_trunc(arguments: Sequence[Datum], _: DataType) -> Datum:
    """The start of the year, the hour, … that a time lies in."""
    part, time = arguments
    return pc.floor_temporal(time, unit=part.as_py())


def _us(value: Datum) -> Datum:
    return pc.cast(value, pa.int64())


def strftime(arguments: Sequence[Datum], result: DataType) -> Datum:
    """A time as text."""
    time = as_array(arguments[0], length_of(arguments))
    # Arrow writes the fraction of a second with its seconds.
    seconds = pc.cast(pc.floor_temporal(time, unit="second"), pa.timestamp("s"))
    return per_parameter(_formatted, seconds, arguments[1:], result.arrow)


def _formatted(seconds: pa.Array, shape: str) -> pa.Array:
    return pc.strftime(seconds, format=shape)


def epoch(arguments: Sequence[Datum], _: DataType) -> Datum:
    """Seconds since 1970, or of an interval."""
    return pc.divide(pc.cast(_us(*arguments), pa.float64(), safe=False), 1e6)


def epoch_ms(arguments: Sequence[Datum], result: DataType) -> Datum:
    """Milliseconds since 1970 of a time; or the time at that many milliseconds."""
    if result.kind == "timestamp":
        return pc.cast(pc.multiply_checked(arguments[0], 1_000), result.arrow)
    return pc.divide(_us(*arguments), 1_000)


TIMES: Mapping[str, Implementation] = {
    "extract": extract,
    "date_trunc": date_trunc,
    "strftime": strftime,
    "epoch": epoch,
    "epoch_us": lambda arguments, _: _us(*arguments),
    "epoch_ms": epoch_ms,
    "make_timestamp": lambda arguments, result: pc.cast(arguments[0], result.arrow),
}
