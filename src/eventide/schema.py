"""What an event looks like: data types, attributes, and the schema of a stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, get_args

import pyarrow as pa

from eventide.errors import SchemaError, listed

TS = "ts"
"""The event's time: microseconds since 1970-01-01 UTC."""
START_TS = "start_ts"
"""Where a period began: that of a situation, or of the events behind a derived one."""
SEQ = "_seq"
"""The event's place in arrival order: the tie-break between equal times."""
QUERY_NUMBER = "$query"
"""The number of the query that a row is for, where several queries run as one plan."""
DELETED = "deleted"
"""The attribute of a relation's events that says whether they delete a row."""
DOCUMENT = "document"
"""The attribute that has the bytes of a document."""

# The years 0001 to 9999, which Python's datetime, Arrow, DuckDB and Spark can all show.
MIN_TS_US = -62_135_596_800_000_000
MAX_TS_US = 253_402_300_799_999_999

Kind = Literal[
    "bool",
    "int64",
    "float64",
    "string",
    "timestamp",
    "decimal",
    "binary",
    "interval",
    "null",
    "list",
]

ALIASES: Mapping[str, Kind] = {
    "boolean": "bool",
    "int": "int64",
    "integer": "int64",
    "bigint": "int64",
    "long": "int64",
    "float": "float64",
    "double": "float64",
    "str": "string",
    "text": "string",
    "varchar": "string",
    "datetime": "timestamp",
    "bytes": "binary",
    "blob": "binary",
}


@dataclass(frozen=True, slots=True)
class DataType:
    """A type of value. `interval`, `null` and lists exist in queries only, never in a stream.

    >>> DataType.parse("decimal(10,2)").scale
    2
    >>> str(DataType.parse("double"))
    'float64'
    >>> str(DataType("list", element=DataType("string")))
    'list(string)'
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: DataType | None = None
    """The type of the values of a list."""

    def __post_init__(self) -> None:
        if self.kind == "decimal" and not (
            1 <= self.precision <= 38 and 0 <= self.scale <= self.precision
        ):
            message = f"decimal({self.precision},{self.scale}) is not a decimal type"
            raise SchemaError(message, hint="precision is 1 to 38, scale 0 to the precision")

    def __str__(self) -> str:
        if self.element is not None:
            return f"list({self.element})"
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic works on it."""
        return self.kind in ("int64", "float64", "decimal")

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type that holds it; intervals are microseconds."""
        if self.kind == "decimal":
            return pa.decimal128(self.precision, self.scale)
        if self.element is not None:
            return pa.list_(self.element.arrow)
        return ARROW_TYPES[self.kind]

    @classmethod
    def parse(cls, text: str) -> DataType:
        """Read a type name as users write it."""
        name = text.strip().lower()
        decimal = re.fullmatch(r"(?:decimal|numeric)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", name)
        if decimal:
            return cls("decimal", int(decimal[1]), int(decimal[2] or 0))
        kind = ALIASES.get(name, name)
        if kind not in STORABLE_KINDS or kind == "decimal":
            message = f"unknown type {text!r}"
            raise SchemaError(message, hint=f"the types are {', '.join(TYPE_NAMES)}")
        return cls(next(known for known in get_args(Kind) if known == kind))

    @classmethod
    def from_arrow(cls, arrow: pa.DataType) -> DataType | None:
        """Return the type that can hold every value of an Arrow type, or None."""
        if pa.types.is_dictionary(arrow):
            return cls.from_arrow(arrow.value_type)
        if pa.types.is_decimal(arrow):
            return cls("decimal", arrow.precision, arrow.scale) if arrow.precision <= 38 else None
        if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
            element = cls.from_arrow(arrow.value_type)
            return None if element is None else cls("list", element=element)
        for holds, kind in ARROW_KINDS:
            if holds(arrow):
                return cls(kind)
        return None


BOOL = DataType("bool")
INT64 = DataType("int64")
FLOAT64 = DataType("float64")
STRING = DataType("string")
TIMESTAMP = DataType("timestamp")
BINARY = DataType("binary")
INTERVAL = DataType("interval")
NULL = DataType("null")

STORABLE_KINDS = ("bool", "int64", "float64", "string", "timestamp", "decimal", "binary")
TYPE_NAMES = ("bool", "int64", "float64", "string", "timestamp", "decimal(p,s)", "binary")

ARROW_TYPES: Mapping[Kind, pa.DataType] = {
    "bool": pa.bool_(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us"),
    "binary": pa.binary(),
    "interval": pa.duration("us"),
    "null": pa.null(),
}

ARROW_KINDS: tuple[tuple[Callable[[pa.DataType], bool], Kind], ...] = (
    (pa.types.is_boolean, "bool"),
    (pa.types.is_integer, "int64"),
    (pa.types.is_floating, "float64"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_date, "timestamp"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_binary_view, "binary"),
    (pa.types.is_duration, "interval"),
    (pa.types.is_null, "null"),
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named, typed, nullable field of an event."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """What the events of a stream of documents are; see api/documents.py."""

    format: str
    time: str | None = None
    """The path of a document's time; without one, it is the time of arrival."""


@dataclass(frozen=True)
class Schema:
    """The attributes of a stream's events, beside the `ts` and `_seq` that every event has.

    A schema with a `key` is that of a relation: the newest event of each key counts. One with
    `documents` is that of a stream of documents.

    >>> schema = Schema.of({"car": "string", "speed": "float64"})
    >>> schema.names
    ('car', 'speed')
    >>> schema.arrow.names
    ['ts', '_seq', 'car', 'speed']
    """

    attributes: tuple[Attribute, ...]
    key: tuple[str, ...] = ()
    stored: bool = True
    """False for a table in memory, whose columns may have any type that queries know."""
    timed: bool = True
    """False if a table has no times: its rows only have an order, and queries see no `ts`."""
    documents: DocumentFormat | None = None

    def __post_init__(self) -> None:
        seen: dict[str, str] = {TS: TS, SEQ: SEQ}
        for attribute in self.attributes:
            check_attribute(attribute, stored=self.stored)
            folded = attribute.name.lower()
            if folded in seen:
                message = f"attribute {attribute.name!r} clashes with {seen[folded]!r}"
                raise SchemaError(
                    message, hint=f"names differ by more than case; {TS} and {SEQ} are always there"
                )
            seen[folded] = attribute.name
        for name in self.key:
            if name not in self.names:
                message = f"the key {name!r} is no attribute"
                raise SchemaError(message, hint=f"there are {listed(self.names)}")

    @classmethod
    def of(
        cls, types: Mapping[str, str | DataType] | pa.Schema, key: tuple[str, ...] = ()
    ) -> Schema:
        """Build a schema from names and types, as `create_stream` takes them."""
        if isinstance(types, pa.Schema):
            return replace(cls.from_arrow(types), key=key)
        if not isinstance(types, Mapping):
            message = f"attributes are names with types, not {type(types).__name__}"
            raise SchemaError(message, hint='write {"car": "string"}, or pass a pyarrow schema')
        return cls(
            tuple(
                # str: a caller who writes int or None is told the types as well
                Attribute(name, kind if isinstance(kind, DataType) else DataType.parse(str(kind)))
                for name, kind in types.items()
            ),
            key,
        )

    @classmethod
    def from_arrow(cls, arrow: pa.Schema) -> Schema:
        """Build a schema from an Arrow one, leaving out `ts` and `_seq`."""
        attributes = []
        for field in arrow:
            if field.name == SEQ and not pa.types.is_integer(field.type):
                message = f"column {SEQ!r} has type {field.type}, but it numbers the events"
                hint = f"drop it, or rename it: {SEQ.strip('_')!r} is free"
                raise SchemaError(message, hint=hint)
            if field.name in (TS, SEQ):
                continue
            found = DataType.from_arrow(field.type)
            if found is None or found.kind not in STORABLE_KINDS:
                message = f"column {field.name!r} has type {field.type}, which no stream can hold"
                raise SchemaError(message, hint=f"the types are {', '.join(TYPE_NAMES)}")
            attributes.append(Attribute(field.name, found))
        return cls(tuple(attributes))

    def __reduce__(self) -> tuple[object, ...]:
        # Without what was made of the attributes, which others make again.
        return Schema, (self.attributes, self.key, self.stored, self.timed, self.documents)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, without `ts` and `_seq`."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of a stored batch: `ts`, `_seq`, then the attributes."""
        return arrow_schema(self)

    @cached_property
    def event_arrow(self) -> pa.Schema:
        """The Arrow schema of events before they are stored: without `_seq`."""
        return self.arrow.remove(1)

    @cached_property
    def event_types(self) -> Mapping[str, DataType]:
        """The names and types of `ts` and the attributes."""
        return {TS: TIMESTAMP} | {attribute.name: attribute.type for attribute in self.attributes}

    @cached_property
    def text_names(self) -> tuple[str, ...]:
        """The attributes that are text."""
        return tuple(each.name for each in self.attributes if each.type.kind == "string")

    def fields(self) -> Iterator[tuple[str, DataType]]:
        """Yield every field of an event with its type, `ts` and `_seq` first."""
        yield TS, TIMESTAMP
        yield SEQ, INT64
        for attribute in self.attributes:
            yield attribute.name, attribute.type

    @property
    def visible(self) -> list[str]:
        """The fields that a query may name."""
        return [name for name, _ in self.fields() if self.timed or name != TS]

    @cached_property
    def types(self) -> dict[str, DataType]:
        """The type of every field, as a table: binding thousands of names needs it."""
        return dict(self.fields())

    def type_of(self, name: str) -> DataType:
        """Return the type of a field."""
        found = self.types.get(name)
        if found is None:
            message = f"no attribute {name!r}"
            raise SchemaError(message, hint=f"there are {listed((TS, SEQ, *self.names))}")
        return found

    def check_scanned(self, columns: Sequence[str]) -> None:
        """Refuse to scan columns that the stream does not have, and none at all."""
        if not columns:
            message = "a scan needs at least one column"
            raise SchemaError(message, hint="scan ts to count rows")
        for column in columns:
            self.type_of(column)

    def to_json(self) -> dict[str, str]:
        """Return what `of` reads back."""
        return {attribute.name: str(attribute.type) for attribute in self.attributes}


@lru_cache(maxsize=1024)
def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a stored batch. It is cached, as every append needs it."""
    return pa.schema([(name, data_type.arrow) for name, data_type in schema.fields()])


def row_schema(row: Mapping[str, DataType]) -> pa.Schema:
    """Return the Arrow schema of rows with some columns."""
    return pa.schema([(name, data_type.arrow) for name, data_type in row.items()])


def is_name(name: object) -> bool:
    """Whether a value is text that can be a name in a query, and in a file."""
    if not isinstance(name, str) or not name or any(char in name for char in '"\n\r\0'):
        return False
    return not any("\ud800" <= char <= "\udfff" for char in name)


def check_attribute(attribute: Attribute, *, stored: bool) -> None:
    """Refuse names that cannot be written in a query, and types that cannot be stored."""
    if not is_name(attribute.name):
        message = f"{attribute.name!r:.80} is not an attribute name"
        raise SchemaError(message, hint="use letters, digits and underscores")
    if stored and attribute.type.kind not in STORABLE_KINDS:
        message = f"attribute {attribute.name!r} cannot have type {attribute.type}"
        raise SchemaError(message, hint=f"the types are {', '.join(TYPE_NAMES)}")
