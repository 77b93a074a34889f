"""Functions that Flink has and DuckDB has not, in DuckDB's words.

DATE_FORMAT(ts, 'yyyy-MM-dd')   strftime(ts, '%Y-%m-%d')
SPLIT_INDEX(url, '/', 3)        split_part(url, '/', 4), null where there are fewer parts
PROCTIME()                      ts: the clock of a query is that of its events
"""

from __future__ import annotations

import re

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.spans import span_of
from eventide.schema import TS

FLINK_FUNCTIONS = frozenset({"date_format", "split_index", "proctime"})
_CODES = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%g",
    "DDD": "%j",
}
_LETTERS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")


def apply_flink_functions(query: exp.Expr) -> None:
    """Replace Flink's functions in a query."""
    for call in list(query.find_all(exp.Anonymous)):
        arguments = call.expressions
        match call.name.lower(), len(arguments):
            case "date_format", 2:
                found: exp.Expr = _formatted(*arguments)
            case "split_index", 3:
                found = _part(*arguments)
            case "proctime", 0:
                found = exp.column(exp.to_identifier(TS))
                found.this.meta.update(call.meta)
            case _:
                continue
        found.meta.update(call.meta)
        call.replace(found)


def _formatted(time: exp.Expr, shape: exp.Expr) -> exp.Expr:
    if not (isinstance(shape, exp.Literal) and shape.is_string):
        message = "DATE_FORMAT takes a format that is written in the query"
        hint = "write DATE_FORMAT(ts, 'yyyy-MM-dd')"
        raise BindError(message, span=span_of(shape), hint=hint)
    codes = exp.Literal.string("".join(map(_code, _pieces(shape))))
    codes.meta.update(shape.meta)
    return exp.TimeToStr(this=time, format=codes)


def _pieces(shape: exp.Expr) -> list[re.Match[str]]:
    found = list(_LETTERS.finditer(shape.name))
    unknown = [each[0] for each in found if each[2] and each[0] not in _CODES]
    if unknown or sum(len(each[0]) for each in found) != len(shape.name):
        message = f"DATE_FORMAT has no {unknown[0] if unknown else shape.name!r}"
        hint = f"there are {', '.join(_CODES)}, and text in single quotes"
        raise BindError(message, span=span_of(shape), hint=hint)
    return found


def _code(piece: re.Match[str]) -> str:
    if piece[2]:
        return _CODES[piece[0]]
    text = piece[0] if piece[1] is None else piece[1].replace("''", "'") or "'"
    return text.replace("%", "%%")


def _part(text: exp.Expr, separator: exp.Expr, place: exp.Expr) -> exp.Expr:
    if not (isinstance(place, exp.Literal) and place.is_int):
        message = "SPLIT_INDEX takes a number that is written in the query"
        hint = "count from 0: SPLIT_INDEX(url, '/', 3)"
        raise BindError(message, span=span_of(place), hint=hint)
    number = int(place.name)
    part = exp.SplitPart(this=text, delimiter=separator, part_index=exp.Literal.number(number + 1))
    less = exp.Replace(
        this=text.copy(), expression=separator.copy(), replacement=exp.Literal.string("")
    )
    missing = exp.Sub(this=exp.Length(this=text.copy()), expression=exp.Length(this=less))
    wanted = exp.Mul(this=exp.Length(this=separator.copy()), expression=exp.Literal.number(number))
    enough = exp.GTE(this=exp.Paren(this=missing), expression=wanted)
    return exp.Case(ifs=[exp.If(this=enough, true=part)])
