"""What is asked of documents: patterns, and views of them."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.plan.xml.patterns import PatternStep, steps_of

StepNumbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AskedPattern:
    """A pattern, and which of its steps are wanted.

    Each view is some steps, by their numbers: the first step of a pattern has number 0, and each
    stands before those below it. A view gives the distinct tuples of nodes that complete embeddings
    put its steps on. The view of all variables gives witnesses; those of two steps, one below the
    other, give pairs that can be joined again.
    """

    root: PatternStep
    views: tuple[StepNumbers, ...]

    @classmethod
    def of_variables(cls, root: PatternStep) -> AskedPattern:
        """Return a pattern with one view, of its variables."""
        named = tuple(n for n, step in enumerate(steps_of(root)) if step.variable is not None)
        return cls(root, (named,))


@dataclass(frozen=True, slots=True)
class KeptSteps:
    """The steps of a view that have to be looked at: those that are wanted, and where they meet."""

    steps: StepNumbers
    up: StepNumbers
    """Which of these steps is the next above each; -1 for the first."""
    wanted: tuple[bool, ...]

    @classmethod
    def of(cls, above: StepNumbers, view: StepNumbers) -> KeptSteps:
        """Return the kept steps; `above` is the step above each step of the pattern, -1 at the top.

        >>> KeptSteps.of((-1, 0, 1, 1), (2, 3))
        KeptSteps(steps=(1, 2, 3), up=(-1, 0, 0), wanted=(False, True, True))
        """
        wanted = {*view}
        needed = [step in wanted for step in range(len(above))]
        meeting = [0] * len(above)
        for step in range(len(above) - 1, 0, -1):
            meeting[above[step]] += needed[step]
            needed[above[step]] |= needed[step]
        kept = [s for s in range(len(above)) if s in wanted or meeting[s] > 1]
        places = {step: place for place, step in enumerate(kept)}
        up = []
        for step in kept:
            over = above[step]
            while over not in places and over >= 0:
                over = above[over]
            up.append(places.get(over, -1))
        return cls(tuple(kept), tuple(up), tuple(step in wanted for step in kept))

    @property
    def repeats(self) -> bool:
        """Whether a tuple may be found more than once: by other nodes where its steps meet."""
        return not all(self.wanted)


def steps_above(root: PatternStep) -> StepNumbers:
    """Return the step above each step of a pattern."""
    above: list[int] = []

    def visit(branch: PatternStep, up: int) -> None:
        number = len(above)
        above.append(up)
        for each in branch.below:
            visit(each, number)

    visit(root, -1)
    return tuple(above)
