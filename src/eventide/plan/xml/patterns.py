"""Tree patterns over the documents of a stream.

    blog//item->x[.//author->a][.//title = 'New'][@id]

    step          axis        name     variable   test
    item          descendant  item     x
    ├─ author     descendant  author   a
    ├─ title      descendant  title               'New'
    └─ @id        child       @id

An embedding puts each step of a pattern on a node of a document: its name fits, it is inside of the
node of the step above, right inside if the axis is `child`, and its string value is the one that is
tested for. A witness is what an embedding puts the variables on; there is one for each distinct
tuple of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Axis = Literal["child", "descendant"]


@dataclass(frozen=True, slots=True)
class PatternStep:
    """A step of a pattern, with the steps below it."""

    axis: Axis
    name: str
    """`title`, `{uri}title`, `{*}title` in any namespace, or `*`; attributes begin with @."""
    variable: str | None = None
    test: str | None = None
    """The string value that a node has to have."""
    below: tuple[PatternStep, ...] = ()

    def __str__(self) -> str:
        variable = f"->{self.variable}" if self.variable is not None else ""
        test = f"[. = {_quoted(self.test)}]" if self.test is not None else ""
        axis = "/" if self.axis == "child" else "//"
        below = "".join(f"[.{branch}]" for branch in self.below)
        return f"{axis}{self.name}{variable}{test}{below}"


@dataclass(frozen=True, slots=True)
class TreePattern:
    """A tree pattern over the documents of a stream.

    >>> author = PatternStep("descendant", "author", "a")
    >>> str(TreePattern("blog", PatternStep("descendant", "item", below=(author,))))
    'blog//item[.//author->a]'
    """

    stream: str
    root: PatternStep

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, from left to right."""
        return tuple(step.variable for step in steps_of(self.root) if step.variable is not None)

    def __str__(self) -> str:
        return f"{self.stream}{self.root}"


def steps_of(branch: PatternStep) -> Iterator[PatternStep]:
    """Yield all steps, each before those below it."""
    yield branch
    for each in branch.below:
        yield from steps_of(each)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
