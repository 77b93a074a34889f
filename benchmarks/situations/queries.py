"""What the situation cases ask, as TPStream statements; situation_sql.py has it for rivals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from benchmarks.situations.data import BOOLEANS, DEVICES, DRIVERS, thresholds
from eventide.plan.situations import allen
from eventide.plan.situations.nodes import Detection

LETTERS = "abcdefghij"


@dataclass(frozen=True, slots=True)
class Holds:
    """A condition on one attribute: a boolean, or a number and a bound."""

    column: str
    comparison: str = ""
    bound: float = 0.0

    def __str__(self) -> str:
        return f"{self.column} {self.comparison} {self.bound!r}" if self.comparison else self.column


@dataclass(frozen=True, slots=True)
class Ask:
    """A pattern of situations called a, b, c, …; its rows say when each began, or only how many."""

    name: str
    stream: str
    key: str
    conditions: tuple[Holds, ...]
    relations: Mapping[tuple[int, int], int]
    within_s: int
    detection: Detection = "early"
    returns: str = "starts"
    """`starts` of all situations, `count` of matches at a moment, `visit`: a count that has to
    look at every match, or `speeds`: aggregates.
    """

    @property
    def letters(self) -> str:
        """The situations' names."""
        return LETTERS[: len(self.conditions)]

    @property
    def defined(self) -> str:
        """The situations' conditions."""
        return ", ".join(
            f"{letter} AS {condition}"
            for letter, condition in zip(self.letters, self.conditions, strict=True)
        )

    @property
    def text(self) -> str:
        """The statement."""
        pattern = " AND ".join(
            "; ".join(
                f"{self.letters[one]} {name} {self.letters[other]}" for name in allen.names_of(mask)
            )
            for (one, other), mask in self.relations.items()
        )
        returned = {
            "count": "COUNT(*) AS n",
            "visit": "COUNT(*) AS n, MAX(EPOCH(START(a))) AS newest",
            "speeds": "avg(b.speed) AS mean, max(b.speed) AS top",
            "starts": ", ".join(f"START({each}) AS {each}_start" for each in self.letters),
        }[self.returns]
        key = f"PARTITION BY {self.key} " if self.key else ""
        return (
            f"FROM {self.stream} {key}DEFINE {self.defined} PATTERN {pattern} "
            f"WITHIN {self.within_s} SECONDS DETECT {self.detection.upper()} RETURN {returned}"
        )

    @property
    def situations(self) -> str:
        """A query for the situations alone."""
        key = f"PARTITION BY {self.key} " if self.key else ""
        return f"SELECT * FROM {self.stream} SITUATIONS ({key}DEFINE {self.defined})"

    def asking(self, returns: str, detection: Detection | None = None) -> Ask:
        """Return the same pattern with other rows, or at other moments."""
        return replace(self, returns=returns, detection=detection or self.detection)

    def within(self, seconds: int) -> Ask:
        """Return the same pattern in another window."""
        return replace(self, within_s=seconds)


MEETS_OR_OVERLAPS = allen.MEETS | allen.OVERLAPS
ACCOMPANIED = MEETS_OR_OVERLAPS | allen.STARTS | allen.DURING
ACCOMPANIES = MEETS_OR_OVERLAPS | allen.FINISHED_BY | allen.CONTAINS
SIX_OF_A_B = ACCOMPANIED | allen.FINISHED_BY | allen.CONTAINS
SIX_OF_B_C = ACCOMPANIES | allen.STARTS | allen.DURING
SIX_OF_C_D = ACCOMPANIED | allen.BEFORE | allen.FINISHED_BY
MINUTES = 60


def aggressive() -> Ask:
    """Sharp acceleration before hard braking, both along with speeding: the paper's listing 1."""
    at = thresholds()
    return Ask(
        "aggressive drivers",
        DRIVERS,
        "car",
        (
            Holds("accel", ">", at.sharp),
            Holds("speed", ">", at.fast),
            Holds("accel", "<", at.hard),
        ),
        {(0, 1): ACCOMPANIED, (1, 2): ACCOMPANIES, (0, 2): allen.BEFORE},
        5 * MINUTES,
        returns="speeds",
    )


def simplified() -> Ask:
    """Only meets and overlaps."""
    relations = {(0, 1): MEETS_OR_OVERLAPS, (1, 2): MEETS_OR_OVERLAPS, (0, 2): allen.BEFORE}
    return replace(aggressive(), name="aggressive drivers, simplified", relations=relations)


def four_situations() -> Ask:
    """Four situations and three constraints of six relations each, when all are over."""
    whole = aggressive()
    return replace(
        whole,
        name="four situations",
        conditions=(*whole.conditions, Holds("speed", "<", thresholds().slow)),
        relations={(0, 1): SIX_OF_A_B, (1, 2): SIX_OF_B_C, (2, 3): SIX_OF_C_D},
        detection="final",
        returns="starts",
    )


def four_of_devices() -> Ask:
    """The same relations between booleans that hold for a minute or so, in any order."""
    return replace(
        four_situations(),
        name="four situations, long history",
        stream=DEVICES,
        key="device",
        conditions=tuple(Holds(f"s{place}") for place in range(4)),
        within_s=1_000,
    )


def over_booleans(
    name: str, count: int, relations: Mapping[tuple[int, int], int], within_s: int
) -> Ask:
    """Return a pattern over the first so many booleans that only counts."""
    conditions = tuple(Holds(f"s{place}") for place in range(count))
    return Ask(name, BOOLEANS, "", conditions, relations, within_s, returns="count")


BEFORE_OVERLAPS = over_booleans(
    "A before B, B overlaps C", 3, {(0, 1): allen.BEFORE, (1, 2): allen.OVERLAPS}, 500
)
Q1 = over_booleans(
    "Q1", 3, {(0, 1): allen.OVERLAPS, (0, 2): allen.OVERLAPS, (1, 2): allen.STARTS}, 5_000
)
Q2 = over_booleans(
    "Q2", 3, {(0, 1): allen.OVERLAPS, (0, 2): allen.BEFORE, (1, 2): allen.OVERLAPS}, 5_000
)
Q3 = over_booleans("Q3", 3, dict.fromkeys(combinations(range(3), 2), allen.BEFORE), 5_000)
