"""Functions and aggregates by the names that SQL has for them.

Most are called as ours are; the tables have the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from eventide.errors import BindError, Span, UnsupportedError
from eventide.plan.aggregates import AGGREGATES, SKETCHED, STANDING_ONLY
from eventide.plan.bind import suggestion
from eventide.plan.expressions import Aggregate, Call, Expression, Literal
from eventide.plan.functions import DATE_PARTS, FUNCTIONS
from eventide.plan.user_functions import called_like_functions, function_named
from eventide.schema import INT64, NULL, STRING

ALSO_CALLED: Mapping[str, str] = {
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "ifnull": "coalesce",
    "lcase": "lower",
    "len": "length",
    "nvl": "coalesce",
    "pow": "power",
    "prefix": "starts_with",
    "substr": "substring",
    "suffix": "ends_with",
    "ucase": "upper",
}
_AGGREGATES_ALSO_CALLED: Mapping[str, str] = {
    "approx_distinct": "approx_count_distinct",
    "every": "bool_and",
    "group_concat": "string_agg",
    "listagg": "string_agg",
    "mean": "avg",
    "percentile_cont": "quantile_cont",
    "percentile_disc": "quantile_disc",
    "quantile": "quantile_cont",
    "std": "stddev",
    "stddev_samp": "stddev",
    "var_samp": "variance",
}
_PARTS: Mapping[str, str] = {
    "datepart": "date_part",
    "dayofmonth": "day",
    "dayofweek": "dow",
    "dayofyear": "doy",
    "weekofyear": "week",
}
_MOST_TOP = 100_000
_FORMATS = frozenset("YmdHMSyj%")
"""The codes of strftime."""


def call_of(name: str, arguments: tuple[Expression, ...], span: Span) -> Expression:
    """Return a call of a function by one of its names."""
    lower = name.lower()
    lower = _PARTS.get(lower, ALSO_CALLED.get(lower, lower))
    found = _rewritten(lower, arguments, span)
    if found is not None:
        return found
    function = function_named(lower)
    if function is None or function.form != "call":
        message = f"no function {name!r}"
        hint = suggestion(lower, called_like_functions(), "function")
        raise BindError(message, span=span, hint=hint)
    _check_constants(lower, arguments, span)
    return Call(lower, arguments, span=span)


def _rewritten(name: str, arguments: tuple[Expression, ...], span: Span) -> Expression | None:
    """Return a call that is another one of ours, or None."""
    match name, arguments:
        case "date_part", (Literal() as part, value) if _calendar_part(part) == "epoch":
            return Call("epoch", (value,), span=span)
        case "date_part", (Literal() as part, value):
            word = Literal(_calendar_part(part), STRING, part.span)
            return Call("extract", (word, value), span=span)
        case "date_trunc", (Literal() as part, value):
            word = Literal(_calendar_part(part), STRING, part.span)
            return Call("date_trunc", (word, value), span=span)
        case _, (value,) if name in DATE_PARTS:
            return Call("extract", (Literal(name, STRING, span), value), span=span)
        case "log", (value,):
            return Call("log10", (value,), span=span)
        case "log", (base, value):
            logs = tuple(Call("log10", (each,), span=span) for each in (value, base))
            return Call("/", logs, span=span)
        case "mod", (_, _):
            return Call("%", arguments, span=span)
        case "if", (_, _) | (_, _, _):
            otherwise = arguments[2:] or (Literal(None, NULL),)
            return Call("case", (*arguments[:2], *otherwise), span=span)
    return None


def _calendar_part(part: Literal) -> str:
    """Return the name of a part of the calendar: `year` of `YEARS`."""
    word = str(part.value).lower()
    word = _PARTS.get(word, word)
    singular = word.removesuffix("s")
    return singular if singular in DATE_PARTS else word


def _check_constants(name: str, arguments: tuple[Expression, ...], span: Span) -> None:
    """Refuse further arguments of some functions, unless they are constants that we know."""
    if name not in ("regexp_extract", "split_part", "strftime"):
        return
    constants = [each.value if isinstance(each, Literal) else None for each in arguments[1:]]
    match name, constants:
        case "strftime", [str(shape)]:
            codes = [part for each in shape.split("%%") for part in each.split("%")[1:]]
            known = all(part[:1] in _FORMATS for part in codes)
        case "split_part", [str(separator), int(place)]:
            known = separator != "" and place != 0
        case "regexp_extract", [str(), *more]:
            known = all(isinstance(each, int) and 0 <= each < 10 for each in more)
        case _:
            known = False
    if not known:
        hints = {
            "strftime": "write strftime(ts, '%Y-%m-%d %H:%M:%S')",
            "split_part": "write split_part(url, '/', 2)",
            "regexp_extract": "write regexp_extract(url, '([a-z]+)', 1)",
        }
        message = f"{name} takes constants behind its first argument"
        raise UnsupportedError(message, span=span, hint=hints[name])


def aggregate_name(name: str) -> str | None:
    """Return our name of an aggregate, or None if there is none of that name."""
    lower = name.lower()
    lower = _AGGREGATES_ALSO_CALLED.get(lower, lower)
    known = lower in AGGREGATES and lower not in STANDING_ONLY
    return lower if known and lower not in SKETCHED else None


def refuse_aggregate(name: str, span: Span) -> None:
    """Refuse an aggregate where there is one event."""
    if aggregate_name(name) is not None and name.lower() not in FUNCTIONS:
        message = f"{name} is over several events, and here is one"
        hint = f"AT INSTANT{{{name}(…) AS name}} is over those of an instant; FOLD carries values"
        raise BindError(message, span=span, hint=hint)


def aggregate_of(
    name: str, arguments: list[Expression], span: Span, *, distinct: bool = False
) -> Aggregate:
    """Return an aggregate of ours; without arguments, COUNT(*)."""
    function = AGGREGATES[name]
    value, more = (arguments[0], arguments[1:]) if arguments else (None, [])
    second = parameter = None
    if function.arguments == 2 and more:
        second, *more = more
    if function.parameter is not None:
        given = more.pop(0) if more else None
        parameter = _parameter(name, given, span)
    if more or (function.arguments == 2 and second is None):
        message = f"{name} takes {function.takes}, not {len(arguments)} arguments"
        shape = "x, y" if function.arguments == 2 else "x"
        raise BindError(message, span=span, hint=f"write {name}({shape})")
    if distinct and function.distinct == "refused":
        message = f"{name} has no DISTINCT"
        raise BindError(message, span=span, hint="leave it out")
    return Aggregate(name, value, span=span, parameter=parameter, second=second, distinct=distinct)


def _parameter(name: str, given: Expression | None, span: Span) -> float | int | str:
    """Return the constant behind the argument of an aggregate."""
    value = given.value if isinstance(given, Literal) else None
    place = span if given is None else given.span or span
    match AGGREGATES[name].parameter:
        case "separator":
            if given is None:
                return ","
            if isinstance(value, str):
                return value
            what, shape = "a text and what to put between two of them", "x, ', '"
        case "fraction":
            if value is not None and not isinstance(value, str | bytes) and 0 <= value <= 1:
                return float(value)
            what, shape = "a value and a number from 0 to 1", "x, 0.9"
        case _:
            known = isinstance(given, Literal) and given.type == INT64
            if known and isinstance(value, int) and 0 < value <= _MOST_TOP:
                return value
            what, shape = f"a value and how many, from 1 to {_MOST_TOP:,}", "x, 10"
    message = f"{name} takes {what}"
    raise BindError(message, span=place, hint=f"write {name}({shape})")
