"""What a plan means, as text: two plans have the same text if and only if they mean the same.

The text leaves out places in the query, and spells names of columns one way. So two queries that
differ only in white space, or in the case of such names, mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from hashlib import blake2b

import pyarrow as pa

from eventide.plan.expressions import Column, Named, NamedAggregate
from eventide.schema import DataType


def spelled(value: object) -> str:
    """Return a value, such as a plan or an operator, as text; equal values have equal texts.

    >>> from eventide.plan.expressions import Column
    >>> from eventide.errors import Span
    >>> spelled(Column("speed", span=Span(7, 12)))
    "Column(name='speed', type=DataType(kind='null', precision=0, scale=0, element=None))"
    """
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case None | bool() | int() | float() | str() | bytes() | Decimal():
            return repr(value)
        case tuple() | list():
            return f"({', '.join(map(spelled, value))})"
        case frozenset() | set():
            return f"{{{', '.join(sorted(map(spelled, value)))}}}"
        case Mapping():
            pairs = (f"{spelled(key)}: {spelled(each)}" for key, each in value.items())
            return f"{{{', '.join(sorted(pairs))}}}"
        case pa.Schema():
            columns = (f"{field.name.lower()} {field.type}" for field in value)
            return f"({', '.join(columns)})"
        case pa.DataType():
            return str(value)
        case DataType():
            return _type_text(value)
    return _parts_text(value)


@lru_cache(maxsize=256)
def _type_text(kind: DataType) -> str:
    """Return a type as text: it is in a plan for each column, and always the same."""
    return _parts_text(kind)


def _parts_text(value: object) -> str:
    """Return a part of a plan as text, with what it has."""
    if is_dataclass(value) and not isinstance(value, type):
        own = {
            each.name: getattr(value, each.name)
            for each in fields(value)
            if each.init and each.compare
        }
        if isinstance(value, Column | Named | NamedAggregate):
            own["name"] = value.name.lower()
        parts = (f"{name}={spelled(part)}" for name, part in own.items())
        return f"{type(value).__name__}({', '.join(parts)})"
    message = f"{type(value).__name__} is no part of a plan"
    raise TypeError(message)


def digest_of(*values: object) -> str:
    """Return a short name for the meaning of several values together."""
    return blake2b(spelled(values).encode(), digest_size=16).hexdigest()
