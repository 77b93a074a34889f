"""A field and a value as a condition in SQL.

A condition is false or null where the field is missing; only IS NULL is true there. Texts are
compared without case: both sides go through the same LOWER.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sigma.types import (
    CompareOperators,
    Placeholder,
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaExists,
    SigmaExpansion,
    SigmaFieldReference,
    SigmaNull,
    SigmaNumber,
    SigmaRegularExpression,
    SigmaString,
    SigmaTimestampPart,
    SpecialChars,
)

from eventide.errors import RuleError
from eventide.rules.columns import FieldColumn, FieldColumns
from eventide.rules.texts import Condition, Equality, any_of, literal
from eventide.schema import BOOL, INT64, STRING, TIMESTAMP

TRUE, FALSE = "TRUE", "FALSE"
COMPARISONS = {
    CompareOperators.LT: "<",
    CompareOperators.LTE: "<=",
    CompareOperators.GT: ">",
    CompareOperators.GTE: ">=",
    CompareOperators.NEQ: "<>",
}
WILDCARDS = {SpecialChars.WILDCARD_MULTI: "%", SpecialChars.WILDCARD_SINGLE: "_"}
ESCAPE = "!"


def field_condition(name: str, value: Any, columns: FieldColumns) -> Condition:  # noqa: ANN401
    """Return the condition that a field has a value, as pySigma has it."""
    column = columns.column(name)
    if isinstance(value, SigmaExpansion):
        return any_of(field_condition(name, each, columns) for each in value.values)
    if isinstance(value, SigmaNull):
        return TRUE if column is None else f"{column.text} IS NULL"
    if isinstance(value, SigmaExists):
        if column is None:
            return FALSE if value else TRUE
        return f"{column.text} IS {'NOT ' if value else ''}NULL"
    if column is None:
        return FALSE
    if isinstance(value, SigmaFieldReference):
        return reference_condition(column, value, columns)
    return value_condition(column, value)


def keyword_condition(value: Any, columns: FieldColumns) -> Condition:  # noqa: ANN401
    """Return the condition that one of the columns for keywords has a value in it."""
    if isinstance(value, SigmaNumber | SigmaBool):
        value = SigmaString(str(value))
    if isinstance(value, SigmaString):
        multi = SpecialChars.WILDCARD_MULTI
        value = multi + value if not value.startswith(multi) else value
        value = value + multi if not value.endswith(multi) else value
    elif not isinstance(value, SigmaRegularExpression | SigmaExpansion):
        raise no_condition(value)
    if not columns.keywords:
        message = "a value without a field needs columns to look for it"
        hint = f"name them in a mapping: {{stream: {columns.source}, keywords: [message]}}"
        raise RuleError(message, hint=hint)
    if isinstance(value, SigmaExpansion):
        return any_of(keyword_condition(each, columns) for each in value.values)
    found = [columns.column(name) for name in columns.keywords]
    return any_of(value_condition(each, value) for each in found if each is not None)


def value_condition(column: FieldColumn, value: Any) -> Condition:  # noqa: ANN401
    """Return the condition that a column has a value, which it does not if it is null."""
    if isinstance(value, SigmaTimestampPart):
        if column.type != TIMESTAMP:
            raise unfit(
                column, "a part of a time", "this modifier needs a column of type timestamp"
            )
        part = value.timestamp_part.name.lower()
        return f"EXTRACT({part} FROM {column.text}) = {value.number}"
    if isinstance(value, SigmaString):
        return string_condition(column, value)
    if isinstance(value, SigmaBool):
        text = str(bool(value)).upper()
        return f"{column.text} = {text}" if column.type == BOOL else plain_text(column, text)
    if isinstance(value, SigmaNumber):
        return number_condition(column, value.number)
    if isinstance(value, SigmaCompareExpression):
        number = as_number(column)
        return f"{number} {COMPARISONS[value.op]} {literal(value.number.number)}"
    if isinstance(value, SigmaRegularExpression):
        return regex_condition(column, value)
    if isinstance(value, SigmaCIDRExpression):
        patterns = (SigmaString(each) for each in value.expand())
        return any_of(string_condition(column, each) for each in patterns)
    raise no_condition(value)


def number_condition(column: FieldColumn, number: float) -> Condition:
    """Return the condition that a column has a number, perhaps as text."""
    if column.type.is_numeric:
        return Equality(column.text, literal(number))
    return plain_text(column, str(number))


def as_number(column: FieldColumn) -> str:
    """Return a column as a number; a text that is none has no value."""
    if column.type.is_numeric:
        return column.text
    if column.type == STRING:
        return f"TRY_CAST({column.text} AS DOUBLE)"
    raise unfit(column, "a number", "compare a column of numbers, or of texts that are numbers")


def string_condition(column: FieldColumn, value: SigmaString) -> Condition:
    """Return the condition that a column is a text, which may have wildcards."""
    if column.type == STRING:
        return text_condition(column.text, value)
    if value.contains_special() or not plain_parts(value):
        if column.type == INT64:
            return text_condition(f"CAST({column.text} AS VARCHAR)", value)
        raise unfit(column, "wildcards", "they are for columns of texts and of whole numbers")
    text = "".join(str(each) for each in value.s)
    if column.type == BOOL and text.lower() in ("true", "false"):
        return f"{column.text} = {text.upper()}"
    try:
        number = SigmaNumber(text)
    except ValueError:
        raise unfit(column, f"the text {text!r}", f"write a value of type {column.type}") from None
    return number_condition(column, number.number)


def plain_text(column: FieldColumn, text: str) -> Condition:
    """Return the condition that a column of texts is a text without wildcards."""
    if column.type != STRING:
        raise unfit(column, text, f"write a value of type {column.type}")
    return text_condition(column.text, SigmaString.from_str(text))


def text_condition(text: str, value: SigmaString) -> Condition:
    """Return the condition that a text matches one with wildcards."""
    cased = isinstance(value, SigmaCasedString)
    parts = plain_parts(value)
    words = "".join(each for each in parts if isinstance(each, str))
    # Without letters there is no case, and the column itself can be looked up.
    if not cased and not (words.isascii() and not any(map(str.isalpha, words))):
        text = f"LOWER({text})"
        parts = [folded(each) if isinstance(each, str) else each for each in parts]
    multi = SpecialChars.WILDCARD_MULTI
    match parts:
        case []:
            return Equality(text, "''")
        case [str() as word]:
            return Equality(text, literal(word))
        case [end] if end is multi:
            return f"{text} IS NOT NULL"
        case [str() as word, end] if end is multi:
            return f"STARTS_WITH({text}, {literal(word)})"
        case [start, str() as word] if start is multi:
            return f"ENDS_WITH({text}, {literal(word)})"
        case [start, str() as word, end] if start is multi and end is multi:
            return f"CONTAINS({text}, {literal(word)})"
    pattern = "".join(escaped(each) if isinstance(each, str) else WILDCARDS[each] for each in parts)
    escape = f" ESCAPE '{ESCAPE}'" if ESCAPE in pattern else ""
    return f"{text} LIKE {literal(pattern)}{escape}"


def plain_parts(value: SigmaString) -> list[str | SpecialChars]:
    """Return the texts and wildcards of a value, neither twice in a row where that is the same."""
    parts: list[str | SpecialChars] = []
    for each in value.s:
        if isinstance(each, Placeholder):
            message = f"the placeholder %{each.name}% has no value"
            raise RuleError(message, hint="write the values into the rule")
        if parts and isinstance(each, str) and isinstance(parts[-1], str):
            parts[-1] += each
        elif each is not SpecialChars.WILDCARD_MULTI or parts[-1:] != [each]:
            parts.append(each)
    return [each for each in parts if each != ""]


def escaped(text: str) -> str:
    """Return a text as a part of a pattern of LIKE."""
    return "".join(f"{ESCAPE}{each}" if each in f"%_{ESCAPE}" else each for each in text)


def folded(text: str) -> str:
    """Return a text in lower case, as LOWER makes it."""
    found: str = pc.utf8_lower(pa.scalar(text)).as_py()
    return found


def regex_condition(column: FieldColumn, value: SigmaRegularExpression) -> str:
    """Return the condition that a regular expression matches anywhere in a text."""
    if column.type != STRING:
        raise unfit(column, "a regular expression", "it is for columns of texts")
    # pySigma has compiled it with RE2, which runs it here too.
    pattern = value.escape(escape_escape_char=False)
    return f"REGEXP_MATCHES({column.text}, {literal(pattern)})"


def reference_condition(
    column: FieldColumn, value: SigmaFieldReference, columns: FieldColumns
) -> str:
    """Return the condition that a column is what another one is, or begins or ends with it."""
    other = columns.column(value.field)
    if other is None:
        return FALSE
    if column.type != STRING or other.type != STRING:
        if value.starts_with or value.ends_with or column.type != other.type:
            raise unfit(column, f"the field {value.field}", "both have to be texts")
        return f"{column.text} = {other.text}"
    left, right = f"LOWER({column.text})", f"LOWER({other.text})"
    functions: dict[tuple[bool, bool], Callable[[], str]] = {
        (False, False): lambda: f"{left} = {right}",
        (True, False): lambda: f"STARTS_WITH({left}, {right})",
        (False, True): lambda: f"ENDS_WITH({left}, {right})",
        (True, True): lambda: f"CONTAINS({left}, {right})",
    }
    return functions[value.starts_with, value.ends_with]()


def unfit(column: FieldColumn, what: str, hint: str) -> RuleError:
    """Return the error for a value that a column of another type cannot have."""
    return RuleError(f"{column.text} is {column.type}, and cannot be {what}", hint=hint)


def no_condition(value: object) -> RuleError:
    """Return the error for a kind of value that has no condition."""
    message = f"Eventide has no condition for a {type(value).__name__.removeprefix('Sigma')}"
    return RuleError(message, hint="docs/rules.md has the modifiers that work")
