"""How each function of the rest is rewritten for Spark.

A function listed here is rewritten so that Spark gives what DuckDB gives, in every session time
zone; `tests/engines/functions/test_functions.py` compares them. Functions of texts and times that
are not listed here are not handed to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.expressions import string, temporal

from eventide.errors import UnsupportedError
from eventide.lang.sql.functions.kinds import KIND, Kinds, kind_of
from eventide.lang.sql.functions.on_spark.numbers import (
    LOGARITHM,
    SIGN,
    cast_value,
    is_nan,
    logarithm,
    rounded,
)
from eventide.lang.sql.functions.on_spark.templates import (
    Rewrite,
    beyond_spark,
    filled,
    one_argument,
    refused,
)
from eventide.lang.sql.functions.on_spark.texts import (
    extracted_by_pattern,
    matches_pattern,
    one_side,
    position_in,
    replaced_by_pattern,
    split_part,
    substring,
    texts_concatenated,
    texts_joined,
    texts_separated,
)
from eventide.lang.sql.functions.on_spark.times import (
    CODES,
    epoch,
    formatted_time,
    from_number,
    interval_of_units,
    part_of_time,
    read_time,
    time_added,
    time_difference,
    timestamp_of,
    truncated_time,
)
from eventide.lang.sql.spans import span_of, written
from eventide.plan.user_functions import user_function

_NAMES = {"prefix": "STARTSWITH", "suffix": "ENDSWITH"}


def in_sparks_words(rest: exp.Expr, kinds: Kinds) -> exp.Expr:
    """Return the rest with its functions in Spark's dialect; the tree is changed.

    `UnsupportedError` says that Spark would answer something else.
    """
    # Inner functions first: what is put in is not rewritten again.
    for node in reversed(list(rest.walk())):
        form = _on_spark(node, kinds)
        if form is not node:
            kind = kind_of(node, kinds)
            form.meta.update({key: node.meta[key] for key in ("start", "end") if key in node.meta})
            form.meta[KIND] = kind
            if node is rest:
                return form
            node.replace(form)
    return rest


def of_user(node: exp.Expr) -> UnsupportedError:
    """Return the error for a user's function that Spark SQL would have to call."""
    message = f"{written(node)} is a function of yours, which Spark SQL does not know"
    hint = "call it in a SELECT from one stream, in brackets; the SQL around reads its rows"
    return UnsupportedError(message, span=span_of(node), hint=hint)


def _on_spark(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    part = part_of_time(node, kinds)
    if part is not None:
        return part
    if isinstance(node, exp.Anonymous) and node.expressions and node.name.lower() in _NAMES:
        return exp.Anonymous(this=_NAMES[node.name.lower()], expressions=node.expressions)
    if isinstance(node, exp.Anonymous) and user_function(node.name) is not None:
        raise of_user(node)
    rewrite = _REWRITES.get(type(node))
    if rewrite is not None:
        return rewrite(node, kinds)
    module = type(node).__module__
    if module in (string.__name__, temporal.__name__) and type(node) not in _ALIKE:
        raise beyond_spark(written(node), node)
    return node


_REWRITES: Mapping[type[exp.Expr], Rewrite] = {
    exp.AtTimeZone: refused,
    exp.Ascii: one_argument("ASCII(:x)", whole=True),
    exp.Cast: cast_value,
    exp.Ceil: rounded,
    exp.Concat: texts_concatenated,
    exp.ConcatWs: texts_separated,
    exp.DPipe: texts_joined,
    exp.DateAdd: time_added,
    exp.DateDiff: time_difference,
    exp.DateTrunc: truncated_time,
    exp.Dayname: one_argument(CODES["A"]),
    exp.Floor: rounded,
    exp.Glob: refused,
    exp.Interval: interval_of_units,
    exp.IsNan: lambda node, _: is_nan(node.this),
    exp.Left: one_side,
    exp.Length: one_argument("LENGTH(:x)", whole=True),
    exp.Ln: lambda node, _: filled(LOGARITHM.format("LN"), x=node.this),
    exp.Log: logarithm,
    exp.Monthname: one_argument(CODES["B"]),
    exp.RegexpExtract: extracted_by_pattern,
    exp.RegexpLike: matches_pattern,
    exp.RegexpReplace: replaced_by_pattern,
    exp.Right: one_side,
    exp.Sign: lambda node, _: filled(SIGN, x=node.this),
    exp.SimilarTo: refused,
    exp.SplitPart: split_part,
    exp.StrPosition: position_in,
    exp.StrToTime: read_time,
    exp.Substring: substring,
    exp.TimeToStr: formatted_time,
    exp.TimeToUnix: lambda node, kinds: epoch(node.this, "CAST({0} AS DOUBLE)", kinds),
    exp.TimestampFromParts: timestamp_of,
    exp.TimestampTrunc: truncated_time,
    exp.Trunc: rounded,
    exp.TryCast: cast_value,
    exp.UnixToTime: from_number,
}

_ALIKE = frozenset(
    {
        *(exp.Contains, exp.Date, exp.DateFromParts, exp.EndsWith, exp.LastDay, exp.Lower, exp.MD5),
        *(exp.Pad, exp.Repeat, exp.Replace, exp.Reverse, exp.SHA2, exp.Split, exp.StartsWith),
        *(exp.Translate, exp.Trim, exp.Upper),
    }
)
"""Functions of texts and times that both engines answer in the same way."""
