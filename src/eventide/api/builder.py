"""Row patterns in Python: a builder whose `str()` is the text of a query.

>>> from eventide.api.steps import variables
>>> A, B, C = variables("A B C")
>>> query = (
...     match("cars")
...     .partition_by("car")
...     .pattern(A + B.some() + C)
...     .define(B="speed > PREV(speed)", C="speed < 10")
...     .measures(since="FIRST(A.ts)", top="MAX(B.speed)")
...     .within("5 minutes")
... )
>>> print(query)
SELECT *
FROM cars MATCH_RECOGNIZE (
  PARTITION BY car
  MEASURES FIRST(A.ts) AS since,
           MAX(B.speed) AS top
  PATTERN (A B+ C)
  WITHIN INTERVAL '5 min'
  DEFINE B AS speed > PREV(speed),
         C AS speed < 10
)

The builder checks only that each text is a name or an expression as stated, and quotes names where
needed. What the query means, and what is wrong with it, is found when its text is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Never, get_args

from eventide.api.steps import COMBINE_HINT, Step, found_text, tree_of, variable_name
from eventide.errors import PlanError
from eventide.lang.sql.fragments import Kind, fragment, name_text
from eventide.plan.bind import suggestion
from eventide.plan.patterns.tree import Strategy, render_pattern, variable_text
from eventide.plan.times import Duration, duration_us, format_duration

_QUERY = re.compile(r"\s*(?:SELECT|WITH)\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Match:
    """A query for the matches of a row pattern. `match` makes it, `str` returns its text.

    Every method returns a new query. A method that takes several arguments adds to those of earlier
    calls; the others replace the earlier value. `clauses` has the text of each clause, by its first
    words.
    """

    source: str
    clauses: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def partition_by(self, /, *columns: str, **named: str) -> Match:
        """Look for matches among the rows of each key: names of columns, or `name="expression"`."""
        names = [name_text(_name(column, 'partition_by("car")')) for column in columns]
        return self._with_more("PARTITION BY", [*names, *_named(named, "the key {}")])

    def order_by(self, /, *items: str) -> Match:
        """Sort the rows by `"speed DESC"` instead of by time; items are SQL text."""
        texts = (_sql(item, f"the order {item!r}", "ordering") for item in items)
        return self._with_more("ORDER BY", texts)

    def measures(self, /, *unnamed: Never, **expressions: str) -> Match:
        """Compute columns of each match, such as `top="MAX(B.speed)"`; expressions are SQL text."""
        _refuse_unnamed(unnamed, "measures(n", "name")
        return self._with_more("MEASURES", _named(expressions, "the measure {}"))

    def pattern(self, step: Step, /, *more: Never) -> Match:
        """Look for this pattern."""
        if more:
            message = "a query has one pattern"
            raise PlanError(message, hint=COMBINE_HINT)
        _refuse_text(step)
        return self._with("PATTERN", f"({render_pattern(tree_of(step))})")

    def define(self, /, *unnamed: Never, **conditions: str) -> Match:
        """Set the condition of each variable, such as `B="speed > PREV(speed)"`, in SQL text.

        Any row fits a variable without a condition.
        """
        _refuse_unnamed(unnamed, "define(B", "variable to define")
        texts = (
            f"{variable_text(name)} AS {_sql(text, f'the condition of {name}')}"
            for name, text in conditions.items()
        )
        return self._with_more("DEFINE", texts)

    def subset(self, /, **members: Iterable[Step | str]) -> Match:
        """Give several variables one common name in measures and conditions: `U=[A, B]`."""
        texts = []
        for name, steps in members.items():
            hint = f"subset({name}=[A, B])"
            if isinstance(steps, Step | str):
                message = f"the subset {name} is a list of variables"
                raise PlanError(message, hint=f"write {hint}")
            listing = ", ".join(variable_text(variable_name(step, hint)) for step in steps)
            texts.append(f"{variable_text(name)} = ({listing})")
        return self._with_more("SUBSET", texts)

    def within(self, duration: Duration, /) -> Match:
        """Limit how long a match may last: a timedelta, or text such as "5 minutes"."""
        us = duration_us(duration)
        if us <= 0:
            message = f"the time a match may take must be positive, not {duration!s}"
            raise PlanError(message, hint='write within("5 minutes")')
        return self._with("WITHIN", f"INTERVAL '{format_duration(us)}'")

    def one_row(self) -> Match:
        """Return one row for each match: its key and its measures. This is the default."""
        return self._without("ALL ROWS PER MATCH")

    def all_rows(self, *, empty_matches: bool = True, unmatched: bool = False) -> Match:
        """Return every row of each match; with `empty_matches`, also a row for an empty match.

        With `unmatched`, also return the rows that are in no match, with measures null.
        """
        if unmatched and not empty_matches:
            message = "with unmatched=True, the row of an empty match comes in any case"
            raise PlanError(message, hint="leave out empty_matches=False")
        which = "WITH UNMATCHED ROWS" if unmatched else "OMIT EMPTY MATCHES"
        return self._with(
            "ALL ROWS PER MATCH", *([which] if unmatched or not empty_matches else [])
        )

    def timeout_rows(self) -> Match:
        """Also return a row, with `timed_out` true, for each match that `within` cuts short."""
        return self._with("TIMEOUT ROWS")

    def skip_past_last_row(self) -> Match:
        """After a match, go on behind its last row. This is the default."""
        return self._with("AFTER MATCH SKIP", "PAST LAST ROW")

    def skip_to_next_row(self) -> Match:
        """After a match, go on at the row after its first: matches may overlap."""
        return self._with("AFTER MATCH SKIP", "TO NEXT ROW")

    def skip_to_first(self, step: Step | str, /) -> Match:
        """After a match, go on at its first row of a variable."""
        name = variable_text(variable_name(step, "skip_to_first(B)"))
        return self._with("AFTER MATCH SKIP", f"TO FIRST {name}")

    def skip_to_last(self, step: Step | str, /) -> Match:
        """After a match, go on at its last row of a variable."""
        name = variable_text(variable_name(step, "skip_to_last(B)"))
        return self._with("AFTER MATCH SKIP", f"TO LAST {name}")

    def strategy(self, name: Literal["contiguous", "skip_till_next", "skip_till_any"], /) -> Match:
        """Say which rows a match may leave out: none, those that do not fit, or any."""
        known: tuple[str, ...] = get_args(Strategy)
        if name not in known:
            message = f"no strategy {name!r}"
            raise PlanError(message, hint=suggestion(str(name), list(known), "strategy"))
        return self._with("STRATEGY", name)

    def select(self, /, *expressions: str, **named: str) -> Match:
        """Choose or compute columns of the matches; expressions are SQL text."""
        texts = (_sql(text, f"the column {text!r}") for text in expressions)
        return self._with_more("SELECT", [*texts, *_named(named, "the column {}")])

    def where(self, /, *conditions: str) -> Match:
        """Keep the matches that satisfy all of these conditions, written as SQL text."""
        texts = (_sql(text, f"the condition {text!r}") for text in conditions)
        return self._with_more("WHERE", texts)

    def _with(self, clause: str, *texts: str) -> Match:
        return replace(self, clauses={**self.clauses, clause: texts})

    def _with_more(self, clause: str, texts: Iterable[str]) -> Match:
        together = (*self.clauses.get(clause, ()), *texts)
        return self._with(clause, *together) if together else self

    def _without(self, clause: str) -> Match:
        kept = {key: texts for key, texts in self.clauses.items() if key != clause}
        return replace(self, clauses=kept)

    def __str__(self) -> str:
        if "PATTERN" not in self.clauses:
            message = "the query has no pattern to look for"
            raise PlanError(message, hint="add .pattern(A + B.some())")
        lines = [
            f"SELECT {', '.join(self.clauses.get('SELECT', ('*',)))}",
            f"FROM {self.source} MATCH_RECOGNIZE (",
            *(_clause(name, self.clauses[name]) for name in _INSIDE if name in self.clauses),
            ")",
        ]
        if "WHERE" in self.clauses:
            lines.append(f"WHERE {' AND '.join(f'({text})' for text in self.clauses['WHERE'])}")
        return "\n".join(lines)


Query = str | Match
"""A query: SQL text, or an object whose `str` is SQL text."""

_INSIDE = (
    *("PARTITION BY", "ORDER BY", "MEASURES", "ALL ROWS PER MATCH", "TIMEOUT ROWS"),
    *("AFTER MATCH SKIP", "STRATEGY", "PATTERN", "WITHIN", "SUBSET", "DEFINE"),
)
"""The clauses in the order of the standard."""


def match(source: str, /) -> Match:
    """Look for a pattern in a stream, or in the rows of a SELECT.

    >>> from eventide.api.steps import variables
    >>> A, B = variables("A B")
    >>> found = match("SELECT ts, speed FROM cars WHERE speed > 0").pattern(A + B).all_rows()
    >>> print(found.define(B="B.speed > 2 * A.speed"))
    SELECT *
    FROM (SELECT ts, speed FROM cars WHERE speed > 0) MATCH_RECOGNIZE (
      ALL ROWS PER MATCH
      PATTERN (A B)
      DEFINE B AS B.speed > 2 * A.speed
    )
    """
    if isinstance(source, str) and _QUERY.match(source):
        return Match(f"({fragment(source, 'the query to match in', 'query')})")
    return Match(name_text(_name(source, 'match("cars")')))


def _clause(name: str, texts: tuple[str, ...]) -> str:
    start = f"  {name} "
    return (start + f",\n{' ' * len(start)}".join(texts)).rstrip()


def _named(expressions: Mapping[str, str], what: str) -> list[str]:
    return [
        f"{_sql(text, what.format(name))} AS {name_text(_name(name, 'a name'))}"
        for name, text in expressions.items()
    ]


def _sql(text: object, what: str, kind: Kind = "expression") -> str:
    if not isinstance(text, str):
        message = f"{what} is SQL text, not {found_text(text)}"
        raise PlanError(message, hint='write it in quotes, as in "speed > PREV(speed)"')
    return fragment(text, what, kind)


def _name(name: object, example: str) -> str:
    if not isinstance(name, str) or not name.strip():
        message = f"{name!r} is not a name"
        raise PlanError(message, hint=f"write {example}")
    return name


def _refuse_text(step: object) -> None:
    if isinstance(step, str):
        message = f"{step!r} is not part of a pattern"
        hint = "build it, as in A.times(3) + B, or write the whole query as text"
        raise PlanError(message, hint=hint)


def _refuse_unnamed(texts: tuple[object, ...], call: str, what: str) -> None:
    """Refuse texts given without a name: `call` is the correct way to write it, up to the text."""
    for text in texts:
        message = f"{found_text(text)} has no {what}"
        shown = text if isinstance(text, str) else "…"
        raise PlanError(message, hint=f'write {call}="{shown}")')
