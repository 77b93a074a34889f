"""Functions over text. Positions and lengths count characters, the first is 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import EvaluationError
from eventide.operators.expressions.datum import (
    Datum,
    Implementation,
    as_array,
    length_of,
    per_parameter,
)
from eventide.schema import DataType

_LONGEST = 2**40
"""More characters than any text has."""


def by_parameter(kernel: Callable[..., pa.Array]) -> Implementation:
    """Return a function of text whose other arguments the kernel takes as constants."""

    def apply(arguments: Sequence[Datum], result: DataType) -> Datum:
        column = as_array(arguments[0], length_of(arguments))
        return per_parameter(kernel, column, arguments[1:], result.arrow)

    return apply


def like(*, ignore_case: bool) -> Callable[..., pa.Array]:
    """Return the kernel of LIKE or ILIKE."""

    def kernel(column: pa.Array, pattern: str, escape: str = "") -> pa.Array:
        regex = like_as_regex(pattern, escape)
        return pc.match_substring_regex(column, regex, ignore_case=ignore_case)

    return kernel


def like_as_regex(pattern: str, escape: str = "") -> str:
    r"""Return a regular expression that matches what a LIKE pattern does.

    >>> like_as_regex("a%!_", "!")
    '(?s)\\Aa.*_\\z'
    """
    if len(escape) > 1:
        message = f"ESCAPE takes one character, not {escape!r}"
        raise EvaluationError(message, hint="as in LIKE '10!%' ESCAPE '!'")
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                message = f"the LIKE pattern {pattern!r} ends with its escape character"
                raise EvaluationError(message, hint=f"write {escape * 2} to mean {escape}")
            parts.append(_quoted(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or _quoted(character))
    return f"(?s)\\A{''.join(parts)}\\z"


def _quoted(character: str) -> str:
    # RE2 accepts a backslash before punctuation only.
    return re.escape(character) if character.isascii() else character


def substring(arguments: Sequence[Datum], result: DataType) -> Datum:
    """A number of characters from a position on.

    A negative position counts from the end, a negative length goes backwards.
    """
    rows = length_of(arguments)
    column = as_array(arguments[0], rows)
    length = pc.cast(pc.utf8_length(column), pa.int64())
    # No text is that long, and sums stay inside 64 bits.
    offset, *lengths = (_within(each, _LONGEST) for each in arguments[1:])
    from_end = pc.add(length, offset)
    from_start = pc.subtract(offset, 1)
    start = pc.if_else(pc.less(offset, 0), from_end, from_start)
    if len(arguments) == 3:
        stop = pc.add(start, lengths[0])
        start, stop = (
            pc.min_element_wise(start, stop, skip_nulls=False),
            pc.max_element_wise(start, stop, skip_nulls=False),
        )
    else:
        stop = length
    zero = pa.scalar(0, pa.int64())
    bounds = [pc.max_element_wise(zero, each, skip_nulls=False) for each in (start, stop)]
    return per_parameter(_slice, column, bounds, result.arrow)


def _within(number: Datum, bound: int) -> Datum:
    """Return numbers limited to -bound … bound."""
    low, high = pa.scalar(-bound, pa.int64()), pa.scalar(bound, pa.int64())
    at_least = pc.max_element_wise(number, low, skip_nulls=False)
    return pc.min_element_wise(at_least, high, skip_nulls=False)


def _slice(column: pa.Array, start: int, stop: int) -> pa.Array:
    return pc.utf8_slice_codeunits(column, start=start, stop=max(start, stop))


def left(column: pa.Array, count: int) -> pa.Array:
    """The first characters; with a negative count, all but the last ones."""
    return pc.utf8_slice_codeunits(column, start=0, stop=count)


def right(column: pa.Array, count: int) -> pa.Array:
    """The last characters; with a negative count, all but the first ones."""
    if count == 0:
        return pc.utf8_slice_codeunits(column, start=0, stop=0)
    return pc.utf8_slice_codeunits(column, start=-count)


def replace(column: pa.Array, search: str, replacement: str) -> pa.Array:
    """The text with one part replaced by another; '' is never found."""
    if not search:
        return column
    return pc.replace_substring(column, search, replacement)


def regexp_matches(column: pa.Array, pattern: str) -> pa.Array:
    """Whether a regular expression matches some part of the text."""
    try:
        return pc.match_substring_regex(column, pattern)
    except pa.ArrowInvalid as error:
        message = f"{pattern!r} is not a regular expression: {error}"
        raise EvaluationError(message, hint="the syntax is RE2's") from None


def regexp_extract(column: pa.Array, pattern: str, group: int = 0) -> pa.Array:
    """The first part of the text that a regular expression matches, or a group of it; else ''."""
    wanted = pattern if group else f"({pattern})"
    whole = rf"\A[\s\S]*?(?:{wanted})[\s\S]*\z"
    try:
        found = pc.replace_substring_regex(column, whole, rf"\{max(group, 1)}")
        return pc.if_else(pc.match_substring_regex(column, pattern), found, "")
    except pa.ArrowInvalid as error:
        message = f"{pattern!r} is not a regular expression with a group {group}: {error}"
        raise EvaluationError(message, hint="the syntax is RE2's") from None


def split_part(column: pa.Array, separator: str, number: int) -> pa.Array:
    """A part of the text between separators, counted from 1, or backwards from -1; else ''."""
    lists = pc.split_pattern(column, pattern=separator)
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    starts = np.cumsum(counts) - counts
    places = starts + (number - 1 if number > 0 else counts + number)
    inside = (starts <= places) & (places < starts + counts)
    parts = pc.list_flatten(lists).take(pa.array(np.where(inside, places, 0), mask=~inside))
    return pc.if_else(pc.is_valid(column), pc.fill_null(parts, ""), column)


def trim(kernel: Callable[..., pa.Array]) -> Implementation:
    """Return TRIM, LTRIM or RTRIM; without a second argument they remove spaces."""

    def apply(arguments: Sequence[Datum], result: DataType) -> Datum:
        column = as_array(arguments[0], length_of(arguments))
        characters = arguments[1:] or (pa.scalar(" "),)

        def one(part: pa.Array, characters: str) -> pa.Array:
            return kernel(part, characters=characters) if characters else part

        return per_parameter(one, column, characters, result.arrow)

    return apply


def join(*, skip_nulls: bool) -> Implementation:
    """Return CONCAT, which leaves nulls out, or ||, which a null makes null."""

    def apply(arguments: Sequence[Datum], _: DataType) -> Datum:
        # Arrow's own way to skip nulls loses the rows on which all arguments are null.
        parts = [pc.fill_null(each, "") for each in arguments] if skip_nulls else arguments
        return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")

    return apply


STRINGS: Mapping[str, Implementation] = {
    "like": by_parameter(like(ignore_case=False)),
    "ilike": by_parameter(like(ignore_case=True)),
    "||": join(skip_nulls=False),
    "concat": join(skip_nulls=True),
    "lower": lambda arguments, _: pc.utf8_lower(*arguments),
    "upper": lambda arguments, _: pc.utf8_upper(*arguments),
    "reverse": lambda arguments, _: pc.utf8_reverse(*arguments),
    "length": lambda arguments, _: pc.cast(pc.utf8_length(*arguments), pa.int64()),
    "trim": trim(pc.utf8_trim),
    "ltrim": trim(pc.utf8_ltrim),
    "rtrim": trim(pc.utf8_rtrim),
    "substring": substring,
    "left": by_parameter(left),
    "right": by_parameter(right),
    "replace": by_parameter(replace),
    "starts_with": by_parameter(pc.starts_with),
    "ends_with": by_parameter(pc.ends_with),
    "contains": by_parameter(pc.match_substring),
    "regexp_matches": by_parameter(regexp_matches),
    "regexp_extract": by_parameter(regexp_extract),
    "split_part": by_parameter(split_part),
}
