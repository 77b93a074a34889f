"""Functions of texts in Spark's dialect."""

from __future__ import annotations

from sqlglot import exp

from eventide.lang.sql.functions.arguments import unread
from eventide.lang.sql.functions.kinds import Kinds, kind_of
from eventide.lang.sql.functions.on_spark.templates import beyond_spark, filled, filled_integer
from eventide.lang.sql.spans import written

_SUBSTRING = """
CASE WHEN :s IS NULL OR :o IS NULL OR :n IS NULL THEN NULL
     WHEN :n = 0 OR (:o = 0 AND :n <= 1) THEN ''
     WHEN :n > 0 THEN IF(:o = 0, SUBSTRING(:s, 1, :n - 1), SUBSTRING(:s, :o, :n))
     ELSE SUBSTRING(:s, GREATEST({start} + :n, 0) + 1, {start} - GREATEST({start} + :n, 0)) END
""".format(
    start="CASE WHEN :o > 0 THEN :o - 1 WHEN :o < 0 THEN GREATEST(LENGTH(:s) + :o, 0) ELSE 0 END"
)


def as_texts(values: list[exp.Expr], kinds: Kinds) -> list[exp.Expr]:
    """Return values as text; engines write floats in different ways."""
    for each in values:
        if kind_of(each, kinds) == "float64":
            hint = "write it with as many digits as you need: CAST(x AS DECIMAL(18, 3))"
            what = f"{written(each)} as text"
            raise beyond_spark(what, each, hint)
    text = exp.DataType.build("STRING", dialect="spark")
    return [
        each if kind_of(each, kinds) == "string" else exp.Cast(this=each, to=text.copy())
        for each in values
    ]


def texts_concatenated(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    """Return CONCAT, in which null is an empty text."""
    empty = exp.Literal.string("")
    texts = [
        exp.Coalesce(this=each, expressions=[empty.copy()])
        for each in as_texts(node.expressions, kinds)
    ]
    return exp.Anonymous(this="CONCAT", expressions=texts)


def texts_separated(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    """Return CONCAT_WS of texts."""
    return exp.Anonymous(this="CONCAT_WS", expressions=as_texts(node.expressions, kinds))


def texts_joined(node: exp.Expr, kinds: Kinds) -> exp.Expr:
    """Return || of texts."""
    left, right = as_texts([node.this, node.expression], kinds)
    return exp.DPipe(this=left, expression=right, safe=True)


def literal_int(node: exp.Expr | None) -> int | None:
    """Return the value of a literal, if that is an integer."""
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def substring(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return SUBSTRING, also from a place before the text."""
    start, length = node.args["start"], node.args.get("length")
    if unread(node, "this", "start", "length") is not None:
        raise beyond_spark(written(node), node)
    if (literal_int(start) or 0) > 0 and (length is None or literal_int(length) is not None):
        return node
    if length is None:
        length = exp.Literal.number(2**31 - 1)
    return filled(_SUBSTRING, s=node.this, o=start, n=length)


def one_side(node: exp.Expr, _: Kinds) -> exp.Expr:
    """LEFT and RIGHT; a negative number leaves that many characters out."""
    if unread(node, "this", "expression") is not None:
        raise beyond_spark(written(node), node)
    if literal_int(node.expression) is not None:
        return node
    name = node.key.upper()
    form = (
        f"CASE WHEN :n >= 0 THEN {name}(:s, :n)"
        f" WHEN :n < 0 THEN {name}(:s, GREATEST(LENGTH(:s) + :n, 0)) END"
    )
    return filled(form, s=node.this, n=node.expression)


def position_in(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return where a text is in another."""
    if unread(node, "this", "substr") is not None:
        raise beyond_spark(written(node), node)
    return filled_integer("LOCATE(:y, :x)", x=node.this, y=node.args["substr"])


def split_part(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return SPLIT_PART with a literal delimiter."""
    delimiter = node.args["delimiter"]
    if not (isinstance(delimiter, exp.Literal) and delimiter.name):
        what = f"{written(node)} by anything but a written text"
        raise beyond_spark(what, node)
    place = node.args["part_index"]
    form = (
        "CASE WHEN :n = 0 THEN LEFT(:s, 0)"
        " ELSE SPLIT_PART(:s, :d, CAST(IF(:n = 0, 1, :n) AS INT)) END"
    )
    return filled(form, s=node.this, d=delimiter, n=place)


def replaced_by_pattern(node: exp.Expr, _: Kinds) -> exp.Expr:
    """REGEXP_REPLACE of all matches; Spark cannot replace the first alone."""
    options, replacement = node.args.get("modifiers"), node.args.get("replacement")
    letters = options.name if isinstance(options, exp.Literal) else ""
    if "g" not in letters or set(letters) - {"g", "i"}:
        raise beyond_spark(written(node), node, "replace all matches with the option 'g'")
    if not isinstance(replacement, exp.Literal):
        what = f"a replacement that is no text: {written(node)}"
        raise beyond_spark(what, node)
    text = replacement.name.replace("$", r"\$")
    for digit in "0123456789":
        text = text.replace(f"\\{digit}", f"${digit}")
    parts = [node.this, _regular(node.expression, letters), exp.Literal.string(text)]
    return exp.Anonymous(this="REGEXP_REPLACE", expressions=parts)


def _regular(pattern: exp.Expr, letters: str) -> exp.Expr:
    if "i" not in letters:
        return pattern
    return exp.Anonymous(this="CONCAT", expressions=[exp.Literal.string("(?i)"), pattern])


def matches_pattern(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return whether a text matches a regular expression."""
    options = node.args.get("flag")
    letters = "" if options is None else options.name
    if set(letters) - {"i"} or unread(node, "this", "expression", "flag") is not None:
        raise beyond_spark(written(node), node)
    return exp.RegexpLike(this=node.this, expression=_regular(node.expression, letters))


def extracted_by_pattern(node: exp.Expr, _: Kinds) -> exp.Expr:
    """Return what a group of a regular expression matches."""
    if unread(node, "this", "expression", "group") is not None:
        raise beyond_spark(written(node), node)
    group = node.args.get("group") or exp.Literal.number(0)
    parts = [node.this, node.expression, group]
    return exp.Anonymous(this="REGEXP_EXTRACT", expressions=parts)
