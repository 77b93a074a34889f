"""The names of types in a query → our types."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from eventide.errors import Span
from eventide.lang.constants import decimal_type
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.spans import span_of, written
from eventide.schema import BINARY, BOOL, FLOAT64, INT64, STRING, TIMESTAMP, DataType

_TYPES: Mapping[exp.DType, DataType] = {
    exp.DType.BOOLEAN: BOOL,
    exp.DType.INT: INT64,
    exp.DType.BIGINT: INT64,
    exp.DType.DOUBLE: FLOAT64,
    exp.DType.FLOAT: FLOAT64,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.CHAR: STRING,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP,
    exp.DType.DATETIME: TIMESTAMP,
    exp.DType.VARBINARY: BINARY,
    exp.DType.BINARY: BINARY,
}


def is_timestamp(node: exp.DataType) -> bool:
    """Whether a type is a time without zone."""
    return _TYPES.get(node.this) == TIMESTAMP


def data_type(node: exp.DataType, span: Span | None) -> DataType:
    """Return our type for the type of a CAST."""
    if node.this == exp.DType.DECIMAL:
        names = [each.name for each in node.expressions]
        return decimal_type(names, span_of(node) or span)
    found = _TYPES.get(node.this)
    if found is None or node.expressions:
        what = f"the type {written(node)} is beyond Eventide's own operators"
        hint = "use boolean, bigint, double, varchar, timestamp, decimal(p,s) or blob"
        refuse(what, node, hint, span=span)
    return found
