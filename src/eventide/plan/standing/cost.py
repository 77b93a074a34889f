"""What a standing plan costs in each execution: how many tuples are touched in a second.

Every operator looks up and stores each tuple that comes, and has to find each tuple that goes. How
long finding takes depends on the structure in which tuples wait. The unit is one touch of a tuple.

The weights were measured with the queries Q1 to Q4 of benchmarks/standing/links.py and variations
of them, with windows of 2,000 to 200,000 tuples, by the time that `Profile` of engines/standing/
explained.py has for each operator: a touch is about 0.1 µs. A join takes 0.2 µs for a tuple that
comes and 0.1 to 0.25 for each that it finds, (NOT) EXISTS 0.2 to 0.6, EXCEPT 1.0, DISTINCT 0.1 for
a known value and 0.5 for a new one, the answer 0.2 to 0.5 for a row that comes and goes: more, the
larger the state. The fixed cost of a step is not counted: all plans of a query have about as many
operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log2

from eventide.plan.nodes import Filter
from eventide.plan.standing.edges import Circumstances
from eventide.plan.standing.execution import EXECUTIONS, Execution
from eventide.plan.standing.flow import Flow, Flows
from eventide.plan.standing.join_order import best_orders, cost_of_orders
from eventide.plan.standing.joins import AsOfJoin, Existence, OuterJoin, WindowJoin
from eventide.plan.standing.nodes import Difference, Distinct, GroupAggregate, Standing, Top
from eventide.plan.standing.statistics import Statistics
from eventide.plan.standing.structures import Structure, structure_below, structure_of
from eventide.plan.standing.update_patterns import pattern_of
from eventide.plan.standing.windows import RowsWindow, SessionWindow, Windowed
from eventide.plan.tree import Plan

PARTITIONS = 50
"""Into how many periods a calendar queue is divided."""
SWEEPS = 20
"""How often, in the length of one window, a join sweeps lists for expired tuples."""
SORTING = 0.2
"""The cost of a comparison when a period of a calendar is sorted, relative to a touch elsewhere."""
QUEUED = 0.5
"""The cost of putting a tuple at the end of a queue, and of dropping it from the beginning."""
FOUND = 1.3
"""The cost of a tuple that a join finds, even if it does not become a result."""
TAKEN_BACK = 1.0
"""The additional cost of every tuple of a join if tuples of some side may be taken back."""
CHANGED = 0.5
"""The cost for a negation to emit a tuple that comes or goes because of the other side."""
MATCHED = 4.0
"""The cost of counting a whole row of EXCEPT against those of the other side."""
REPEATED = 0.8
"""The cost of a tuple whose value DISTINCT has already: it is only looked up."""
FILTERED = 0.3
WINDOWED = 0.2
NOTHING_KNOWN: Statistics = {}


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """What one source makes an operator do in a second: tuples that come, go, and wait."""

    flow: Flow
    structure: Structure
    probe: float = 1.0
    swept: float = 0.0
    """How many times in a second a list would be swept for expired tuples."""
    kept: float = 1.0
    """The share of tuples that is stored, by an operator that knows which ones it will need."""


def cost_of(
    plan: Standing, statistics: Statistics = NOTHING_KNOWN, execution: Execution = "aware"
) -> float:
    """Return what a second of a standing query costs, including its answer."""
    return _cost(plan, Flows(statistics), execution)


def costs_of(plan: Standing, statistics: Statistics = NOTHING_KNOWN) -> Mapping[Execution, float]:
    """Return what a second of a standing query costs in each execution."""
    flows = Flows(statistics)
    return {execution: _cost(plan, flows, execution) for execution in EXECUTIONS}


def locate_cost(structure: Structure, living: float, premature: float) -> float:
    """Return the cost of finding a tuple that goes, given the share that goes early."""
    slot = 1.0 + SORTING * log2(1.0 + living / PARTITIONS)
    match structure:
        case "none":
            return premature * living
        case "queue":
            return (1.0 - premature) * QUEUED + premature * living
        case "calendar queue":
            return (1.0 - premature) * slot + premature * living
        case "calendar queue with id map":
            return (1.0 - premature) * slot + premature
        case _:
            return 1.0


def work(load: SourceLoad, execution: Execution) -> float:
    """Return the work of an operator for a source: λ (probe + insert) + λ_gone · locate."""
    flow = load.flow
    match execution:
        case "aware":
            inserts = {"queue": QUEUED, "calendar queue with id map": 2.0}.get(load.structure, 1.0)
            negatives = flow.premature * flow.rate
            found = locate_cost(load.structure, flow.living, flow.premature)
            put_away = load.kept * flow.rate * (inserts + found)
            return (flow.rate + negatives) * load.probe + put_away
        case "negative":
            # All are found by their ids, anywhere in memory: no better than in slots.
            found = locate_cost("calendar queue", flow.living, 0.0) if load.kept else 0.0
            inserts = 2.0 if load.kept else 0.0
            return flow.rate * (2.0 * load.probe + inserts + found)
        case "direct":
            negatives = flow.premature * flow.rate
            swept = load.swept * flow.living
            early = negatives * (load.probe + flow.living)
            return flow.rate * (load.probe + (1.0 if load.kept else 0.0)) + swept + early


def _cost(plan: Standing, flows: Flows, execution: Execution) -> float:
    circumstances = Circumstances.of(plan, kept=True)
    flow, edge = flows.of(plan.source), pattern_of(plan.source, circumstances)
    answer = flow if edge.strict else replace(flow, premature=0.0)
    kept = work(SourceLoad(answer, structure_of(edge), probe=0.0, swept=flow.rate), execution)
    return kept + _cost_below(plan.source, flows, execution, circumstances)


def _cost_below(
    plan: Plan, flows: Flows, execution: Execution, circumstances: Circumstances
) -> float:
    own = 0.0
    for load in loads_of(plan, flows, circumstances):
        own += work(load, execution)
    if isinstance(plan, Windowed):
        return own + _window_cost(plan, flows, execution)
    return own + sum(
        _cost_below(source, flows, execution, circumstances) for source in plan.children
    )


def loads_of(plan: Plan, flows: Flows, circumstances: Circumstances) -> tuple[SourceLoad, ...]:
    """Return the work that each source causes in an operator."""
    match plan:
        case WindowJoin():
            return _join_loads(plan, flows, circumstances)
        case OuterJoin(keeps=keeps):
            # Rows without a partner are found as NOT EXISTS finds them, once for each source
            # that is kept.
            alone = [_load(plan, each, flows, circumstances) for each in plan.sources]
            return (*_join_loads(plan, flows, circumstances), *alone * sum(keeps))
        case Distinct() | Difference() | Existence() | GroupAggregate() | Top():
            sources = [_load(plan, each, flows, circumstances) for each in plan.children]
            # An answer that has to be exact after every tuple sweeps all its lists for each of
            # them.
            swept = sum(load.flow.rate for load in sources)
            return tuple(
                replace(
                    load,
                    probe=_probe(plan, load.flow, flows),
                    swept=swept,
                    kept=_kept(plan, load.flow, circumstances),
                )
                for load in sources
            )
        case AsOfJoin(left=left):
            # On the right, the newest event of each key waits; left rows only pass.
            flow = flows.of(left)
            return (SourceLoad(Flow(flow.rate, 0.0, flow.values), "none"),)
        case Filter(source=source):
            load = _load(plan, source, flows, circumstances)
            passing = Flow(load.flow.rate, 0.0, {}, load.flow.premature)
            return (SourceLoad(passing, "none", probe=FILTERED, kept=0.0),)
        case _:
            return ()


def _probe(plan: Plan, flow: Flow, flows: Flows) -> float:
    """Return the cost of looking up a tuple in an operator, and of emitting what it changes."""
    match plan:
        case Top():
            return log2(2.0 + flow.living)
        case Distinct():
            return REPEATED
        case Difference() | Existence():
            emitted = flows.of(plan).rate
            arrivals = sum(flows.of(each).rate for each in plan.children)
            looked_up = MATCHED if isinstance(plan, Difference) else 1.0
            return looked_up + CHANGED * emitted / max(arrivals, 1e-9)
    return 1.0


def _kept(plan: Plan, flow: Flow, circumstances: Circumstances) -> float:
    """Return the share of tuples that is stored: DISTINCT stores one or two of each value."""
    if isinstance(plan, Distinct) and not pattern_of(plan, circumstances).strict:
        return min(1.0, flow.different_rows / max(flow.living, 1.0))
    return 1.0


def _load(node: Plan, source: Plan, flows: Flows, circumstances: Circumstances) -> SourceLoad:
    flow = flows.of(source)
    structure = structure_below(node, source, circumstances)
    strict = pattern_of(source, circumstances).strict
    return SourceLoad(flow if strict else replace(flow, premature=0.0), structure)


def _join_loads(
    join: WindowJoin | OuterJoin, flows: Flows, circumstances: Circumstances
) -> tuple[SourceLoad, ...]:
    inner = WindowJoin(join.sources, join.keys)
    loads = [_load(inner, source, flows, circumstances) for source in join.sources]
    inputs = [load.flow.as_input(keys) for load, keys in zip(loads, join.keys, strict=True)]
    looked = cost_of_orders(best_orders(inputs), inputs)
    arrivals = max(sum(load.flow.rate for load in loads), 1e-9)
    strict = any(pattern_of(source, circumstances).strict for source in join.sources)
    probe = 1.0 + FOUND * looked / arrivals + (TAKEN_BACK if strict else 0.0)
    return tuple(
        SourceLoad(
            load.flow,
            load.structure,
            probe,
            swept=SWEEPS / load.flow.lifetime if load.flow.lifetime else 0.0,
        )
        for load in loads
    )


def _window_cost(plan: Windowed, flows: Flows, execution: Execution) -> float:
    """Return the cost of a window itself: a window of time only has to announce every expiry."""
    rate = flows.of(plan).rate
    remembers = isinstance(plan.window, RowsWindow | SessionWindow) or execution == "negative"
    return rate * (2.0 if remembers else WINDOWED)
