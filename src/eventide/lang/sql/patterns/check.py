"""Check a MATCH_RECOGNIZE before any of its expressions is translated."""

from __future__ import annotations

from difflib import get_close_matches

from eventide.errors import BindError, UnsupportedError, listed
from eventide.lang.sql.intervals import interval_us
from eventide.lang.sql.names.written import Name
from eventide.lang.sql.patterns.clause import MatchClause, SkipText
from eventide.lang.sql.patterns.names import Variables, unknown_variable
from eventide.lang.sql.patterns.pattern import PatternText
from eventide.lang.sql.spans import span_of
from eventide.plan.patterns.automaton import MOST_VARIABLES, automaton_of
from eventide.plan.patterns.program import MOST_INSTRUCTIONS
from eventide.plan.patterns.tree import (
    Absent,
    Alternate,
    Concat,
    Exclude,
    Pattern,
    Permute,
    Repeat,
    Variable,
    parts_of,
    walk_pattern,
)

_MOST_TURNS = 20 * MOST_INSTRUCTIONS
"""Nested repetitions of () make no instructions, but unfolding them takes time."""
_WITHIN_HINT = "add WITHIN INTERVAL '5' MINUTE"


def check_clause(clause: MatchClause) -> Variables:
    """Return the variables of a clause, or raise the error for the first mistake."""
    pattern = clause.pattern
    assert pattern is not None
    measures = tuple(item.name.text for item in clause.measures if item.name is not None)
    variables = Variables(pattern.names, _subsets(clause, pattern), measures)
    _check_size(clause, pattern)
    _check_defines(clause, pattern)
    _check_output(clause, pattern)
    _check_within(clause)
    _check_skip(clause, variables)
    _check_strategy(clause, pattern)
    return variables


def never_mapped(pattern: Pattern) -> frozenset[str]:
    """Return the variables that stand only behind NOT: no row of a match belongs to them."""
    absent = {part.name for part in walk_pattern(pattern) if isinstance(part, Absent)}
    taken = {part.name for part in walk_pattern(pattern) if isinstance(part, Variable)}
    return frozenset(absent - taken)


def _subsets(clause: MatchClause, pattern: PatternText) -> tuple[Name, ...]:
    seen: list[Name] = []
    for subset in clause.subsets:
        name = subset.name
        if name.among(pattern.names) is not None:
            message = f"the subset {name.text!r} has the name of a pattern variable"
            raise BindError(message, span=name.span, hint="give it another name")
        if name.among(seen) is not None:
            message = f"the subset {name.text!r} is given twice"
            hint = "list all of its variables in one pair of brackets"
            raise BindError(message, span=name.span, hint=hint)
        members: set[str] = set()
        for member in subset.members:
            found = member.among(pattern.names)
            if found is None:
                raise unknown_variable(member, [each.text for each in pattern.names])
            if found in members:
                message = f"{member.text} is listed twice in the subset {name.text}"
                raise BindError(message, span=member.span, hint="leave one out")
            members.add(found)
        seen.append(name)
    return tuple(seen)


def _check_size(clause: MatchClause, pattern: PatternText) -> None:
    if len(pattern.names) > MOST_VARIABLES:
        message = f"a pattern has at most {MOST_VARIABLES} variables, this one {len(pattern.names)}"
        span = pattern.names[MOST_VARIABLES].span
        raise BindError(message, span=span, hint="use one variable with a condition of OR")
    if _turns(pattern.tree) > _MOST_TURNS:
        message = "the pattern repeats too often to be unfolded"
        hint = "repeat less often, or write + or * and count in a condition"
        raise BindError(message, span=pattern.span, hint=hint)
    try:
        automaton_of(pattern.tree, all_matches=clause.strategy == "skip_till_any")
    except BindError as error:
        error.span = error.span or pattern.span
        raise


def _turns(pattern: Pattern) -> int:
    """Return how many parts are visited to unfold a pattern, also those without rows."""
    inside = sum(map(_turns, parts_of(pattern)))
    if isinstance(pattern, Repeat):
        inside *= pattern.at_most or pattern.at_least + 1
    return 1 + inside


def _check_defines(clause: MatchClause, pattern: PatternText) -> None:
    seen: set[str] = set()
    for name, _ in clause.defines:
        found = name.among(pattern.names)
        if found is None and name.among(subset.name for subset in clause.subsets):
            message = f"{name.text} is a subset, which has no condition of its own"
            raise BindError(message, span=name.span, hint="give conditions to its variables")
        if found is None:
            message = f"PATTERN does not use {name.text!r}, which DEFINE describes"
            raise BindError(message, span=name.span, hint=_unused_hint(name, clause, pattern))
        if found in seen:
            message = f"{name.text} is defined twice"
            raise BindError(message, span=name.span, hint="join the conditions with AND")
        seen.add(found)


def _unused_hint(name: Name, clause: MatchClause, pattern: PatternText) -> str:
    """Return the hint for a definition without a variable in PATTERN: it may be misspelled."""
    defined = {each.among(pattern.names) for each, _ in clause.defines}
    others = {each.text.lower(): each.text for each in pattern.names if each.text not in defined}
    near = get_close_matches(name.text.lower(), others, n=1)
    if near:
        return f"PATTERN has {others[near[0]]}: is that meant?"
    known = listed([each.text for each in pattern.names])
    return f"add it to PATTERN, which has {known}, or leave out its definition"


def _check_output(clause: MatchClause, pattern: PatternText) -> None:
    excluded = [part for part in walk_pattern(pattern.tree) if isinstance(part, Exclude)]
    unmatched = clause.output == "with unmatched"
    if unmatched and excluded:
        message = "{- -} cannot stand beside WITH UNMATCHED ROWS"
        hint = "write ALL ROWS PER MATCH alone, or leave out the {- -}"
        raise BindError(message, span=excluded[0].span, hint=hint)
    if not clause.timeout_rows:
        return
    span = clause.seen["TIMEOUT ROWS"]
    if unmatched:
        message = "TIMEOUT ROWS cannot stand beside WITH UNMATCHED ROWS"
        hint = "a row would come out both ways: leave out one of them"
        raise BindError(message, span=span, hint=hint)
    if clause.within is None:
        message = "TIMEOUT ROWS without WITHIN: no match runs out of time"
        raise BindError(message, span=span, hint=_WITHIN_HINT)
    if clause.strategy == "skip_till_any":
        message = "TIMEOUT ROWS cannot stand beside STRATEGY skip_till_any"
        hint = "every row begins many matches there: take skip_till_next, which has one"
        raise BindError(message, span=span, hint=hint)


def _check_within(clause: MatchClause) -> None:
    if clause.within is None:
        return
    if interval_us(clause.within) <= 0:
        message = "the time of WITHIN must be positive"
        span = span_of(clause.within) or clause.seen["WITHIN"]
        raise BindError(message, span=span, hint="write WITHIN INTERVAL '5' MINUTE")


def _check_skip(clause: MatchClause, variables: Variables) -> None:
    skip, pattern = clause.skip, clause.pattern
    assert pattern is not None
    if skip is None:
        return
    if clause.strategy == "skip_till_any" and skip.to != "next row":
        message = "skip_till_any finds every match of a row, and then goes to the next row"
        hint = "write AFTER MATCH SKIP TO NEXT ROW, or leave it out"
        raise BindError(message, span=skip.span, hint=hint)
    if skip.variable is None:
        return
    found = _skip_target(skip, skip.variable, variables)
    if found in never_mapped(pattern.tree):
        message = f"{found} stands behind NOT only: a match has no row of it to skip to"
        raise BindError(message, span=skip.variable.span, hint="skip to another variable")
    if _skips_to_start(skip, found, pattern.tree):
        message = f"{found} is the first row of every match: the same match would be found again"
        hint = "write AFTER MATCH SKIP TO NEXT ROW"
        raise BindError(message, span=skip.span, hint=hint)


def _skip_target(skip: SkipText, name: Name, variables: Variables) -> str:
    found = variables.find(name)
    if found is not None:
        return found
    error = unknown_variable(name, variables.known)
    word = name.text.upper()
    if word == "NEXT":
        error.hint = "write TO NEXT ROW"
    elif word == "ROW":
        error.hint = "write TO NEXT ROW" if skip.to == "first" else "write PAST LAST ROW"
    raise error


def _skips_to_start(skip: SkipText, variable: str, pattern: Pattern) -> bool:
    """Whether the skip target is surely the first row of the match, as far as is easy to see."""
    first = pattern
    while isinstance(first, Concat) and first.parts:
        first = first.parts[0]
    if first == Variable(variable):
        named = [part for part in walk_pattern(pattern) if part == Variable(variable)]
        repeated = any(
            part == Variable(variable)
            for repeat in walk_pattern(pattern)
            if isinstance(repeat, Repeat)
            for part in walk_pattern(repeat)
        )
        return skip.to == "first" or (len(named) == 1 and not repeated)
    leads = isinstance(first, Repeat) and first.part == Variable(variable) and first.at_least > 0
    return leads and skip.to == "first"


def _check_strategy(clause: MatchClause, pattern: PatternText) -> None:
    absent = [part for part in walk_pattern(pattern.tree) if isinstance(part, Absent)]
    if clause.strategy == "contiguous":
        if absent:
            message = f"NOT {absent[0].name} needs rows that are skipped"
            hint = "add STRATEGY skip_till_next; contiguous rows leave nothing out"
            raise BindError(message, span=absent[0].span, hint=hint)
        return
    if pattern.anchors:
        anchor = pattern.anchors[0]
        message = f"^ and $ have no meaning under {clause.strategy}"
        hint = "leave it out, or match contiguous rows"
        raise UnsupportedError(message, span=anchor, hint=hint)
    for part in _edge(pattern.tree, from_start=True)[0]:
        message = f"NOT {part.name} stands before the first row of the match"
        hint = (
            "put NOT behind a variable; what was before a match can be counted by a frame "
            "in the SELECT that it reads"
        )
        raise BindError(message, span=part.span, hint=hint)
    if clause.within is None:
        for part in _edge(pattern.tree, from_start=False)[0]:
            message = f"NOT {part.name} at the end waits for ever"
            raise BindError(message, span=part.span, hint=_WITHIN_HINT)


def _edge(pattern: Pattern, *, from_start: bool) -> tuple[list[Absent], bool]:
    """Return the NOTs that may be first (or last) in a pattern, and whether it may take no row."""
    match pattern:
        case Variable():
            return [], False
        case Absent():
            return [pattern], True
        case Concat(parts=parts):
            found: list[Absent] = []
            for part in parts if from_start else reversed(parts):
                inside, empty = _edge(part, from_start=from_start)
                found += inside
                if not empty:
                    return found, False
            return found, True
    sides = [_edge(part, from_start=from_start) for part in parts_of(pattern)]
    found = [each for inside, _ in sides for each in inside]
    match pattern:
        case Alternate():
            return found, any(empty for _, empty in sides)
        case Repeat(at_least=least):
            return found, least == 0 or all(empty for _, empty in sides)
        case Permute() | Exclude():
            return found, all(empty for _, empty in sides)
    return [], True
