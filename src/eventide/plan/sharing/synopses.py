"""The conditions of whose events windows keep partial results, one *synopsis* for each.

    query 1   host IN ('a', 'b')      ─┬─▶ synopsis of host = 'a'
    query 2   host = 'a'              ─┘
    query 1   host IN ('a', 'b')      ───▶ synopsis of host = 'b'

A query reads the synopsis of its condition, or those of its parts, if these exclude each other and
others share them: what a synopsis costs is divided among its queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from eventide.plan.expressions import Expression
from eventide.plan.sharing.parts import disjoint_parts

Cover = tuple[Expression, ...]
"""Conditions that exclude each other; an event that a query counts is in one of them."""

_parts_of = lru_cache(4096)(disjoint_parts)


class Synopses:
    """The synopses that are there, by numbers that are never used again.

    >>> from eventide.plan.expressions import ALWAYS
    >>> synopses = Synopses()
    >>> synopses.take((ALWAYS,)), synopses.take((ALWAYS,)), len(synopses)
    ((0,), (0,), 1)
    """

    def __init__(self) -> None:
        self.conditions: dict[int, Expression] = {}
        """The condition of each synopsis."""
        self._numbers: dict[Expression, int] = {}
        self._users: Counter[int] = Counter()
        self._wanted: Counter[Expression] = Counter()
        self._next = 0

    def __len__(self) -> int:
        return len(self.conditions)

    def expect(self, conditions: Iterable[Expression]) -> None:
        """Note queries that are about to come: how many have a condition, or a part of it."""
        for condition in conditions:
            for each in {condition, *_parts_of(condition)}:
                self._wanted[each] += 1

    def cover_of(self, condition: Expression) -> Cover:
        """Return the parts of a condition if a query's share of what they cost is not larger.

        A synopsis costs its events and its room, however many queries read it.
        """
        parts = _parts_of(condition)
        of_parts = sum(Fraction(1, self._wanted[each]) for each in parts)
        return parts if of_parts <= Fraction(1, self._wanted[condition]) else (condition,)

    def take(self, cover: Cover) -> tuple[int, ...]:
        """Return the numbers of the synopses that one more query reads; they may be new."""
        found = []
        for condition in cover:
            number = self._numbers.get(condition)
            if number is None:
                number = self._numbers[condition] = self._next
                self.conditions[number] = condition
                self._next += 1
            self._users[number] += 1
            found.append(number)
        return tuple(found)

    def leave(self, condition: Expression, numbers: tuple[int, ...]) -> None:
        """Let a query with a condition go; synopses that no other reads go as well."""
        for each in {condition, *_parts_of(condition)}:
            self._wanted[each] -= 1
            if self._wanted[each] <= 0:
                del self._wanted[each]
        for number in numbers:
            self._users[number] -= 1
            if not self._users[number]:
                del self._users[number]
                del self._numbers[self.conditions.pop(number)]

    def users(self, number: int) -> int:
        """Return how many queries read a synopsis."""
        return self._users[number]
