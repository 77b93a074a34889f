"""The syntax tree of a CEL text: what its streams are made of.

Values and conditions stay the trees that lark reads. Two trees are equal if they say the same, no
matter where they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lark import Token, Tree

from eventide.errors import Span
from eventide.lang.parameters import Parameter

Value = Tree[Token]
"""A value or a condition, as the grammar has it."""


@dataclass(frozen=True, slots=True)
class CelName:
    """A name as the text spells it."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NamedStream:
    """A stream by its name."""

    name: CelName
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Filtered:
    """FILTER{condition} source."""

    condition: Value
    source: Stream
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Next:
    """Left NEXT{condition} right."""

    left: Stream
    condition: Value | None
    right: Stream
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class CelItem:
    """`value AS name`; without a value it is `*`."""

    value: Value | None
    name: CelName | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Fold:
    """Left FOLD{condition, proceed, items} right."""

    left: Stream
    condition: Value | None
    proceed: Value | None
    items: tuple[CelItem, ...]
    right: Stream
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Union:
    """The events of several streams."""

    sources: tuple[Stream, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Instants:
    """AT INSTANT{items} source: one event of all that end at the same instant."""

    items: tuple[CelItem, ...]
    source: Stream
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """[SELECT items] FROM source [PUBLISH name]; without items, all attributes."""

    items: tuple[CelItem, ...]
    source: Stream
    publish: CelName | None
    span: Span = field(compare=False)


Stream = NamedStream | Filtered | Next | Fold | Union | Instants | Query


def parts_of(stream: Stream) -> tuple[Stream, ...]:
    """Return the streams that a stream is directly made of."""
    match stream:
        case NamedStream():
            return ()
        case Filtered(source=source) | Instants(source=source) | Query(source=source):
            return (source,)
        case Next(left=left, right=right) | Fold(left=left, right=right):
            return (left, right)
        case Union(sources=sources):
            return sources


def names_in(stream: Stream) -> Iterator[NamedStream]:
    """Yield the streams that are read by name, left to right."""
    if isinstance(stream, NamedStream):
        yield stream
    for part in parts_of(stream):
        yield from names_in(part)


def published_in(stream: Stream) -> Iterator[Query]:
    """Yield the queries that publish their events, each after those inside it."""
    for part in parts_of(stream):
        yield from published_in(part)
    if isinstance(stream, Query) and stream.publish is not None:
        yield stream


def values_of(stream: Stream) -> Iterator[Value]:
    """Yield the values and conditions that a stream itself has."""
    match stream:
        case Filtered(condition=condition):
            yield condition
        case Next(condition=condition):
            yield from (condition,) if condition is not None else ()
        case Fold(condition=condition, proceed=proceed):
            yield from (each for each in (condition, proceed) if each is not None)
    if isinstance(stream, Fold | Instants | Query):
        yield from (item.value for item in stream.items if item.value is not None)


def parameters_in(stream: Stream) -> Iterator[Parameter]:
    """Yield the parameters of a stream."""
    for value in values_of(stream):
        for token in value.scan_values(_is_parameter):
            yield Parameter(str(token).strip("?$"), span_of(token))
    for part in parts_of(stream):
        yield from parameters_in(part)


def _is_parameter(each: object) -> bool:
    return isinstance(each, Token) and each.type == "PARAMETER"


def span_of(value: Value | Token) -> Span:
    """Return where a value stands."""
    if isinstance(value, Token):
        return Span(value.start_pos or 0, value.end_pos or 0)
    return Span(value.meta.start_pos, value.meta.end_pos)
