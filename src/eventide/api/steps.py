"""Parts of a row pattern in Python: `A + B.some() | C`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from eventide.errors import PlanError
from eventide.plan.patterns.tree import (
    Absent,
    Alternate,
    Concat,
    Exclude,
    PartitionEnd,
    PartitionStart,
    Pattern,
    Permute,
    Repeat,
    Variable,
    render_pattern,
)

COMBINE_HINT = "join patterns with + (then) and | (or)"


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """A part of a pattern, for rows that follow one another. `variables` makes the first ones.

    `A + B` is A, then B. `A | B` is one of them, A preferred.

    >>> A, B, C = variables("A B C")
    >>> print(A + (B | C).some(greedy=False) + exclude(B.times(2, 5)))
    A (B | C)+? {- B{2,5} -}
    """

    tree: Pattern

    def __add__(self, other: Step) -> Step:
        return Step(Concat((*_sequence(self.tree), *_sequence(tree_of(other)))))

    def __radd__(self, other: object) -> NoReturn:
        raise _no_step(other)

    def __or__(self, other: Step) -> Step:
        return Step(Alternate((*_options(self.tree), *_options(tree_of(other)))))

    def __ror__(self, other: object) -> NoReturn:
        raise _no_step(other)

    def __rshift__(self, other: object) -> NoReturn:
        _refuse_operator(">>", f"write {_example(self)} + {_example(other, 'B')}")

    def __and__(self, other: object) -> NoReturn:
        one, two = _example(self), _example(other, "B")
        _refuse_operator("&", f"write {one} + {two}, or in any order permute({one}, {two})")

    def __mul__(self, count: object) -> NoReturn:
        shown = count if isinstance(count, int) else 3
        _refuse_operator("*", f"write {_example(self)}.times({shown})")

    __rmul__ = __mul__

    def __invert__(self) -> NoReturn:
        _refuse_operator("~", f"write absent({_example(self)}), with a strategy that skips rows")

    def some(self, *, greedy: bool = True) -> Step:
        """Return `A+`: once or more, as often as possible, or as rarely if not greedy."""
        return self._repeated(1, None, greedy=greedy)

    def any(self, *, greedy: bool = True) -> Step:
        """Return `A*`: any number of times, also none."""
        return self._repeated(0, None, greedy=greedy)

    def maybe(self, *, greedy: bool = True) -> Step:
        """Return `A?`: once or not at all."""
        return self._repeated(0, 1, greedy=greedy)

    def times(self, count: int, at_most: int | None = None, *, greedy: bool = True) -> Step:
        """Return `A{3}` for `times(3)`, and `A{2,5}` for `times(2, 5)`."""
        return self._repeated(count, count if at_most is None else at_most, greedy=greedy)

    def at_least(self, count: int, *, greedy: bool = True) -> Step:
        """Return `A{2,}` for `at_least(2)`."""
        return self._repeated(count, None, greedy=greedy)

    def at_most(self, count: int, *, greedy: bool = True) -> Step:
        """Return `A{0,5}` for `at_most(5)`."""
        return self._repeated(0, count, greedy=greedy)

    def _repeated(self, at_least: int, at_most: int | None, *, greedy: bool) -> Step:
        for count in (at_least, at_most):
            if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
                message = f"{count!r} is not a number of times"
                raise PlanError(message, hint="write times(3), times(2, 5) or at_least(2)")
        if at_most == 0:
            message = "a part cannot repeat 0 times"
            raise PlanError(message, hint="leave it out, or write maybe() for at most once")
        return Step(Repeat(self.tree, at_least, at_most, greedy=greedy))

    def __bool__(self) -> bool:
        message = "a pattern is neither true nor false: and, or, not and in have no use for it"
        raise PlanError(message, hint=f"{COMBINE_HINT}; rows that must not come are absent(B)")

    def __str__(self) -> str:
        return render_pattern(self.tree)

    def __repr__(self) -> str:
        return f"<Step {self}>"


def variable(name: str) -> Step:
    """Return a variable: one row, on which the variable's condition holds."""
    if not isinstance(name, str) or not name.strip():
        message = f"{name!r} is not the name of a variable"
        raise PlanError(message, hint='write variable("A")')
    return Step(Variable(name))


def variables(names: str) -> tuple[Step, ...]:
    """Return the variables of a list of names, with blanks or commas between them.

    >>> variables("A B")
    (<Step A>, <Step B>)
    """
    found = names.replace(",", " ").split() if isinstance(names, str) else []
    if not found:
        message = f"{names!r} names no variable"
        raise PlanError(message, hint='write A, B = variables("A B")')
    return tuple(map(variable, found))


def permute(*steps: Step) -> Step:
    """Return the parts in any order, the order given preferred.

    >>> A, B = variables("A B")
    >>> print(permute(A, B.some()))
    PERMUTE(A, B+)
    """
    if not steps:
        message = "permute has no parts"
        raise PlanError(message, hint="write permute(A, B, C)")
    return Step(Permute(tuple(map(tree_of, steps))))


def exclude(step: Step) -> Step:
    """Return `{- B -}`: rows that are matched but left out of the rows that `all_rows` returns."""
    return Step(Exclude(tree_of(step)))


def absent(step: Step | str) -> Step:
    """Return `NOT B`: none of the rows skipped here is a B. It needs `strategy(…)`."""
    return Step(Absent(variable_name(step, "absent(B)")))


partition_start = Step(PartitionStart())
"""`^`: no row of the partition lies before."""
partition_end = Step(PartitionEnd())
"""`$`: no row of the partition follows."""
no_row = Step(Concat(()))
"""`()`: the pattern that takes no row."""


def variable_name(step: object, example: str) -> str:
    """Return the name of the variable that a step is."""
    match step:
        case Step(tree=Variable(name=name)):
            return name
        case str() if step.strip():
            return step
    shown = str(step) if isinstance(step, Step) else repr(step)
    message = f"{shown} is not a variable"
    raise PlanError(message, hint=f"write {example}")


def tree_of(step: object) -> Pattern:
    """Return the tree of a step; anything else is an error."""
    if not isinstance(step, Step):
        raise _no_step(step)
    return step.tree


def _no_step(found: object) -> PlanError:
    hint = f'make variables first, A, B = variables("A B"), and {COMBINE_HINT}'
    if callable(found):
        hint = "call it, as in B.some()"
    elif isinstance(found, str):
        hint = f"write variable({found!r}); {COMBINE_HINT}"
    elif isinstance(found, int):
        hint = f"write A.times({found}) to repeat a part"
    return PlanError(f"{found_text(found)} is not part of a pattern", hint=hint)


def _refuse_operator(operator: str, hint: str) -> NoReturn:
    message = f"{operator} is nothing that patterns have"
    raise PlanError(message, hint=hint)


def _example(step: object, otherwise: str = "A") -> str:
    """Return a variable's name, for a hint."""
    match step:
        case Step(tree=Variable(name=name)):
            return name
    return otherwise


def found_text(found: object) -> str:
    """Return what was found where a part of a pattern was expected, for a message."""
    return f"{found!r}" if isinstance(found, str | int | float) else f"a {type(found).__name__}"


def _sequence(tree: Pattern) -> tuple[Pattern, ...]:
    return tree.parts if isinstance(tree, Concat) and tree.parts else (tree,)


def _options(tree: Pattern) -> tuple[Pattern, ...]:
    return tree.options if isinstance(tree, Alternate) else (tree,)
