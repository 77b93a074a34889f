"""Check the definitions and the pattern of a TPSTREAM; return its constraint on each pair."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import BindError, Span, listed
from eventide.lang.sql.names.written import Name
from eventide.lang.sql.situations.clause import Length, SituationClause
from eventide.lang.sql.situations.names import situation_named
from eventide.lang.sql.situations.pattern import Alternatives, RelationsText
from eventide.plan.situations.allen import (
    ANY,
    FINISHED_BY,
    FINISHES,
    ContradictionError,
    Dialect,
    compose,
    inverse,
    mask_named,
    names_of,
    path_consistent,
)
from eventide.plan.situations.nodes import MOST_SITUATIONS
from eventide.plan.situations.parts import Constraint
from eventide.plan.times import format_duration

_LEAVE_HINT = "leave one out, or allow more relations with OR"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A constraint as written: the relations of `first` to `second`, both places in DEFINE."""

    text: Alternatives
    first: int
    second: int
    mask: int

    @property
    def pair(self) -> tuple[int, int]:
        return (min(self.first, self.second), max(self.first, self.second))

    def seen_from(self, first: int) -> int:
        """Return the mask with another situation as the first."""
        return self.mask if first == self.first else inverse(self.mask)


def check_definitions(clause: SituationClause) -> tuple[Name, ...]:
    """Return the names of the situations, or raise the error for the first mistake."""
    names: list[Name] = []
    for definition in clause.definitions:
        name = definition.name
        if name.among(names) is not None:
            message = f"{name.text} is defined twice"
            raise BindError(message, span=name.span, hint="join the conditions with OR")
        names.append(name)
        _check_lasting(definition.least, definition.most)
    if len(names) > MOST_SITUATIONS:
        message = f"there are at most {MOST_SITUATIONS} situations, here are {len(names)}"
        span = names[MOST_SITUATIONS].span
        raise BindError(message, span=span, hint="use one with a condition of OR")
    if clause.gap is not None:
        _check_positive("GAP", clause.gap)
    return tuple(names)


def _check_lasting(least: Length | None, most: Length | None) -> None:
    for each in (least, most):
        if each is not None and each.us < 0:
            message = "a duration must not be negative"
            raise BindError(message, span=each.span, hint="write AT LEAST 4 SECONDS")
    if least is not None and most is not None and least.us > most.us:
        shorter, longer = (format_duration(each.us) for each in (most, least))
        message = f"no situation lasts for {longer} at least and {shorter} at most"
        span = Span(least.span.start, most.span.end)
        raise BindError(message, span=span, hint=f"write BETWEEN {shorter} AND {longer}")


def _check_positive(word: str, length: Length) -> None:
    if length.us <= 0:
        message = f"the time of {word} must be positive"
        raise BindError(message, span=length.span, hint=f"write {word} 5 MINUTES")


def check_rest(clause: SituationClause) -> None:
    """Raise the error for a mistake in the window, the limit or the detection."""
    if clause.within is not None:
        _check_positive("WITHIN", clause.within)
    if clause.limit == 0:
        message = "LIMIT 0 reports no match"
        raise BindError(message, span=clause.seen["LIMIT"], hint="write LIMIT 1 PER KEY, or more")
    if clause.confirm and clause.detection == "final":
        message = "CONFIRM cannot stand beside DETECT FINAL"
        hint = "a match that is found when all is over is final: leave out one of them"
        raise BindError(message, span=clause.seen["CONFIRM"], hint=hint)


def check_pattern(clause: SituationClause, names: tuple[Name, ...]) -> tuple[Constraint, ...]:
    """Return the relations that the pattern allows for pairs of situations, each pair once."""
    pattern = clause.pattern
    assert pattern is not None
    asked = _asked(pattern, names, clause.dialect)
    _check_used(pattern, names)
    merged = _merged(asked, clause, names)
    if not pattern.cross:
        _check_connected(pattern, merged, names)
    _check_consistent(asked, clause, names)
    return tuple(Constraint(*pair, mask) for pair, mask in sorted(merged.items()))


def _asked(pattern: RelationsText, names: tuple[Name, ...], dialect: Dialect) -> list[_Asked]:
    return [_one_pair(each, names, dialect) for each in pattern.constraints]


def _one_pair(text: Alternatives, names: tuple[Name, ...], dialect: Dialect) -> _Asked:
    """Return alternatives as one mask; all of them have to be about the same two situations."""
    spelled = [each.text for each in names]
    first = second = -1
    mask = 0
    for relation in text.relations:
        one, two = (
            spelled.index(situation_named(name, names))
            for name in (relation.first, relation.second)
        )
        if one == two:
            message = f"{relation} relates a situation to itself"
            hint = "a relation is between two situations; define another with the same condition"
            raise BindError(message, span=relation.span, hint=hint)
        if mask == 0:
            first, second = one, two
        elif {one, two} != {first, second}:
            pairs = f"{spelled[first]} and {spelled[second]}"
            message = f"{relation} is no alternative for {pairs}"
            hint = "alternatives are of one pair; AND joins constraints on several"
            raise BindError(message, span=relation.span, hint=hint)
        found = mask_named(relation.name, dialect)
        assert found is not None
        mask |= found if one == first else inverse(found)
    return _Asked(text, first, second, mask)


def _check_used(pattern: RelationsText, names: tuple[Name, ...]) -> None:
    used = {situation_named(name, names) for name in pattern.names}
    for name in names:
        if name.text not in used and not pattern.cross:
            message = f"PATTERN does not use {name.text!r}, which DEFINE describes"
            hint = "relate it to another, or write CROSS behind the pattern to combine it with all"
            raise BindError(message, span=name.span, hint=hint)


def _merged(
    asked: list[_Asked], clause: SituationClause, names: tuple[Name, ...]
) -> dict[tuple[int, int], int]:
    """Return the mask of each pair; several constraints on one pair have to hold together."""
    merged: dict[tuple[int, int], int] = {}
    for place, each in enumerate(asked):
        before = merged.get(each.pair, ANY)
        merged[each.pair] = before & each.seen_from(each.pair[0])
        if not merged[each.pair]:
            others = [str(other.text) for other in asked[:place] if other.pair == each.pair]
            message = f"no situations can be both: {' and '.join(others)}, and {each.text}"
            hint = _dialect_hint(clause, names) or "alternatives are parted by ; or OR, not AND"
            raise BindError(message, span=each.text.span, hint=hint)
    return merged


def _check_connected(
    pattern: RelationsText, pairs: dict[tuple[int, int], int], names: tuple[Name, ...]
) -> None:
    reached = {0}
    grown = True
    while grown:
        more = {each for pair in pairs if reached.intersection(pair) for each in pair}
        grown = not more <= reached
        reached |= more
    apart = [name.text for place, name in enumerate(names) if place not in reached]
    if apart:
        together = listed([names[place].text for place in sorted(reached)])
        message = f"nothing relates {together} to {listed(apart)}"
        hint = "add a relation with AND, or write CROSS behind the pattern for all combinations"
        raise BindError(message, span=pattern.span, hint=hint)


def _check_consistent(
    asked: list[_Asked], clause: SituationClause, names: tuple[Name, ...]
) -> None:
    if _consistent(asked, len(names)):
        return
    core = list(asked)
    for each in asked:
        fewer = [other for other in core if other is not each]
        if not _consistent(fewer, len(names)):
            core = fewer
    hint = _dialect_hint(clause, names) or _LEAVE_HINT
    raise BindError(_contradiction(core, clause, names), span=core[-1].text.span, hint=hint)


def _consistent(asked: list[_Asked], count: int) -> bool:
    masks = [[ANY] * count for _ in range(count)]
    for each in asked:
        masks[each.first][each.second] &= each.mask
        masks[each.second][each.first] &= inverse(each.mask)
    if not all(mask for row in masks for mask in row):
        return False
    try:
        path_consistent(masks)
    except ContradictionError:
        return False
    return True


def _contradiction(core: list[_Asked], clause: SituationClause, names: tuple[Name, ...]) -> str:
    """Say why constraints cannot hold together; they are in the order of the text."""
    said = [str(each.text) for each in core]
    places = {place for each in core for place in each.pair}
    if len(core) == 3 and len(places) == 3 and len({each.pair for each in core}) == 3:
        last = core[-1]
        first, third = last.first, last.second
        (second,) = places - {first, third}
        one, two = sorted(core[:2], key=lambda each: first not in each.pair)
        left = compose(one.seen_from(first), two.seen_from(second))
        if left:
            *most, end = (repr(name) for name in _names(left, clause.dialect))
            allowed = f"{', '.join(most)} or {end}" if most else end
            pair = f"{names[first].text} and {names[third].text}"
            because = f"{_grouped(one)} and {_grouped(two)} leave only {allowed} for {pair}"
            return f"{because}, but '{last.text}' is asked"
    return f"no situations can be so at once: {', '.join(said[:-1])} and {said[-1]}"


def _grouped(asked: _Asked) -> str:
    several = len(asked.text.relations) > 1
    return f"({asked.text})" if several else str(asked.text)


def _names(mask: int, dialect: Dialect) -> tuple[str, ...]:
    """Return the names of relations as the pattern calls them."""
    ending = mask & (FINISHES | FINISHED_BY)
    return names_of(mask if dialect == "allen" else mask & ~ending | inverse(ending))


def _dialect_hint(clause: SituationClause, names: tuple[Name, ...]) -> str | None:
    """Return the hint for a pattern that makes sense in the other meaning of `finishes`."""
    pattern = clause.pattern
    assert pattern is not None
    finishing = [
        each
        for item in pattern.constraints
        for each in item.relations
        if each.name in ("finishes", "finished by")
    ]
    other: Dialect = "paper" if clause.dialect == "allen" else "allen"
    if not finishing or not _consistent(_asked(pattern, names, other), len(names)):
        return None
    relation = finishing[0]
    began = relation.first if relation.name == "finishes" else relation.second
    if other == "paper":
        change, sense, order = "add DIALECT PAPER", "the TPStream paper's", "first"
    else:
        change, sense, order = "leave out DIALECT PAPER", "Allen's", "last"
    return f"{change}: in {sense} sense of '{relation}', {began.text} begins {order}, and it can be"
