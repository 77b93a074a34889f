"""R1 to R7: four queries over the traffic of links, in each execution.

What the document has measured is in the targets: how many times as long as the aware execution the
others take with the longest window, or how much more they remember.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.race import Finding, Target, at_least
from benchmarks.standing.setting import (
    Measured,
    StandingCase,
    StandingSetting,
    built,
    planned,
    with_full_windows,
)
from eventide.engines.build import build_tree
from eventide.engines.standing.choice import chosen_plan
from eventide.engines.standing.options import StandingOptions
from eventide.operators.tree import OperatorTree
from eventide.plan.passes.narrow_rows import narrow_rows
from eventide.plan.standing.choose import Chosen
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Standing

EXECUTIONS: tuple[Execution, ...] = ("aware", "negative", "direct")
OURS: Execution = "aware"
PARTITIONS = (10, 50)
"""How many slots the calendar of the answer has, beside as many as suit its size."""
UP, DOWN = "negation up", "negation down"
NO_LOSS = at_least(1)


def joined(window: int, protocol: str) -> str:
    """Q1: connections of one source on two links."""
    return (
        "SELECT a.src, a.dst, b.dst AS other "
        f"FROM link1 [RANGE {window} SECONDS] a JOIN link2 [RANGE {window} SECONDS] b "
        f"ON a.src = b.src WHERE a.protocol = '{protocol}' AND b.protocol = '{protocol}'"
    )


def distinct(window: int, columns: str) -> str:
    """Q2: who was there."""
    return f"SELECT DISTINCT {columns} FROM link1 [RANGE {window} SECONDS]"


def without(window: int) -> str:
    """Q3: connections of sources that are on the first link only."""
    return (
        f"SELECT a.src, a.dst FROM link1 [RANGE {window} SECONDS] a WHERE NOT EXISTS "
        f"(SELECT 1 FROM link2 [RANGE {window} SECONDS] b WHERE b.src = a.src)"
    )


def without_joined(window: int) -> str:
    """Q4: the same, joined with transfers of files on a third link."""
    return (
        f"SELECT a.src, a.dst, c.dst AS third FROM link1 [RANGE {window} SECONDS] a "
        f"JOIN link3 [RANGE {window} SECONDS] c ON a.src = c.src "
        "WHERE c.protocol = 'ftp' AND NOT EXISTS "
        f"(SELECT 1 FROM link2 [RANGE {window} SECONDS] b WHERE b.src = a.src)"
    )


def executed(plan: Standing, *, direct: bool = True) -> dict[str, OperatorTree]:
    """Return the operators of a plan in each execution, but direct only if asked for."""
    executions = [each for each in EXECUTIONS if direct or each != "direct"]
    return {execution: built(plan, execution) for execution in executions}


def against_ours(
    what: str, found: Mapping[str, float], targets: Mapping[str, Target], events: int | None
) -> Iterator[Finding]:
    """Yield a line for each other way beside ours."""
    for name, theirs in found.items():
        if name != OURS:
            yield Finding(f"{what}, {OURS}", found[OURS], name, theirs, targets.get(name), events)


def seconds_of(what: str, found: Measured, targets: Mapping[str, Target]) -> Iterator[Finding]:
    """Yield the seconds for 1,000 tuples."""
    yield from against_ours(f"{what}, 1,000 tuples", found.seconds, targets, 1_000)


def sizes_of(what: str, found: Measured, targets: Mapping[str, Target]) -> Iterator[Finding]:
    """Yield how many tuples, and megabytes, are remembered."""
    tuples = {name: float(count) for name, (count, _) in found.sizes.items()}
    megabytes = {name: count / 1e6 for name, (_, count) in found.sizes.items()}
    yield from against_ours(f"{what}, tuples", tuples, targets, None)
    yield from against_ours(f"{what}, MB", megabytes, {}, None)


def joins(
    setting: StandingSetting, protocol: str, least: float, *, direct: bool = True
) -> list[Finding]:
    """R1, R2: Q1 in each execution, and with calendars of other sizes.

    Without `direct`, that execution is left out with the longest window.
    """
    lines: list[Finding] = []
    for window in setting.sizes.windows:
        plan = planned(joined(window, protocol), setting.links)
        trees = executed(plan, direct=direct or window < max(setting.sizes.windows))
        for partitions in PARTITIONS:
            trees[f"aware, {partitions} partitions"] = built(plan, OURS, partitions)
        found = with_full_windows(f"Q1 {protocol}, {window:,}", trees, setting, window)
        what = f"{window:,}: answer of {found.answer_rows:,}"
        lines += seconds_of(what, found, in_largest(setting, window, least, trees))
    return lines


def in_largest(
    setting: StandingSetting, window: int, least: float, trees: Mapping[str, OperatorTree]
) -> dict[str, Target]:
    """Return targets of the other executions, with the longest window only."""
    if window < max(setting.sizes.windows):
        return {}
    return {name: at_least(least) for name in EXECUTIONS if name != OURS and name in trees}


def distinct_ones(
    setting: StandingSetting, columns: str, least: float, least_state: float
) -> list[Finding]:
    """R3 to R5: Q2, time and state."""
    lines: list[Finding] = []
    for window in setting.sizes.windows:
        trees = executed(planned(distinct(window, columns), setting.links))
        found = with_full_windows(f"Q2 {columns}, {window:,}", trees, setting, window)
        what = f"{window:,}: answer of {found.answer_rows:,}"
        lines += seconds_of(what, found, in_largest(setting, window, least, trees))
        state = in_largest(setting, window, least_state, trees)
        lines += sizes_of(f"{window:,}", found, {"negative": state["negative"]} if state else {})
    return lines


def missing(setting: StandingSetting) -> list[Finding]:
    """R6: Q3, of which much is taken back before its time."""
    lines: list[Finding] = []
    for window in setting.sizes.windows:
        trees = executed(planned(without(window), setting.links))
        found = with_full_windows(f"Q3, {window:,}", trees, setting, window)
        what = f"{window:,}: answer of {found.answer_rows:,}"
        lines += seconds_of(what, found, {"negative": NO_LOSS})
    return lines


def placed(chosen: Chosen) -> dict[str, Standing]:
    """Return the plans with the negation above and below the join, without columns not needed."""
    found: dict[str, Standing] = {}
    for alternative in chosen.alternatives:
        place = DOWN if "below the join" in alternative.name else UP
        narrow = narrow_rows(alternative.plan)
        assert isinstance(narrow, Standing)
        found.setdefault(place, narrow)
    return found


def both_places(setting: StandingSetting) -> list[Finding]:
    """R7: Q4 with its negation in two places, and whether the better one is chosen."""
    lines: list[Finding] = []
    for window in setting.sizes.windows:
        plan = planned(without_joined(window), setting.links)
        chosen = chosen_plan(plan, setting.sources)
        plans = placed(chosen)
        executions: tuple[Execution, ...] = ("aware", "negative")
        trees = {
            f"{execution}, {place}": build_tree(each, standing=StandingOptions(execution))
            for execution in executions
            for place, each in plans.items()
        }
        found = with_full_windows(f"Q4, {window:,}", trees, setting, window)
        took = found.seconds
        what = f"{window:,}: answer of {found.answer_rows:,}, 1,000 tuples, "
        fastest = min((f"negative, {place}" for place in plans), key=took.__getitem__)
        largest = window == max(setting.sizes.windows)
        best = Finding(
            f"{what}aware, {UP}",
            took[f"aware, {UP}"],
            f"best of negative: {fastest}",
            took[fastest],
            NO_LOSS if largest else None,
            1_000,
        )
        taken = next(place for place, each in plans.items() if each == chosen.plan)
        other = next(place for place in plans if place != taken)
        rival = took[f"aware, {other}"]
        choice = Finding(
            f"{what}aware, chosen: {taken}", took[f"aware, {taken}"], other, rival, NO_LOSS, 1_000
        )
        places = Finding(
            f"{what}negative, {DOWN}",
            took[f"negative, {DOWN}"],
            f"negative, {UP}",
            took[f"negative, {UP}"],
        )
        lines += [best, choice, places]
    return lines


LINK_CASES = (
    StandingCase(
        "R1: join of ftp",
        "Q1, connections of one source on two links, ftp on both: with the longest window about "
        "as many results as tuples",
        lambda setting: joins(setting, "ftp", 2),
    ),
    StandingCase(
        "R2: join of telnet",
        "the same of telnet: about ten times as many results as tuples. Direct execution is left "
        "out with the longest window, which it would take minutes to fill",
        lambda setting: joins(setting, "telnet", 10, direct=False),
    ),
    StandingCase(
        "R3, R5: distinct sources",
        "Q2, different sources of a link: time, and what all operators and the answer remember",
        lambda setting: distinct_ones(setting, "src", 10, 100),
    ),
    StandingCase(
        "R4, R5: distinct pairs",
        "Q2, different pairs of source and destination: the same",
        lambda setting: distinct_ones(setting, "src, dst", 2, 1),
    ),
    StandingCase(
        "R6: not on the other link",
        "Q3, connections of sources that are not on the second link; many rows of the answer go "
        "before their time. The document's aware execution loses here, Eventide's must not",
        missing,
    ),
    StandingCase(
        "R7: negation up or down",
        "Q4, Q3 joined with ftp on a third link, negation above the join or below it; and the plan "
        "that is chosen by a sample of the traffic, against the other",
        both_places,
    ),
)
