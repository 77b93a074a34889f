"""What a standing plan costs in each execution: how much is touched in a second of the stream.

Of every operator: each tuple that comes is looked up and put away, each that goes has to be found.
How long finding takes is a question of what tuples wait in. Units are touches of one tuple.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

from eventide.plan.execution import EXECUTIONS, Execution
from eventide.plan.join_order import best_orders, cost_of_orders
from eventide.plan.nodes import Filter, Plan, Project, sources_of
from eventide.plan.standing import (
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    RowsWindow,
    SessionWindow,
    Standing,
    Top,
    Windowed,
    WindowJoin,
)
from eventide.plan.standing_flow import Flow, Statistics, flow_of
from eventide.plan.update_patterns import (
    Circumstances,
    Structure,
    pattern_of,
    structure_below,
)

PARTITIONS = 50
"""Into how many spans of time a calendar queue is divided."""
SWEEPS = 20
"""How often, in the time of one window, a join sweeps lists for what has expired."""
SORTING = 0.2
"""What a comparison costs when a span of a calendar is put in order, beside a touch elsewhere."""
NOTHING_KNOWN: Statistics = {}


@dataclass(frozen=True, slots=True)
class Load:
    """What one source makes an operator do in a second: tuples that come, go, and wait."""

    flow: Flow
    structure: Structure
    probe: float = 1.0
    swept: float = 0.0
    """How many times in a second a list would be swept for what has expired."""


def cost_of(
    plan: Standing, statistics: Statistics = NOTHING_KNOWN, execution: Execution = "aware"
) -> float:
    """Return what a second of a standing query costs."""
    return _cost_below(plan.source, statistics, execution, Circumstances.of(plan, kept=True))


def costs_of(plan: Standing, statistics: Statistics = NOTHING_KNOWN) -> Mapping[Execution, float]:
    """Return what a second of a standing query costs in each execution."""
    return {execution: cost_of(plan, statistics, execution) for execution in EXECUTIONS}


def locate_cost(structure: Structure, living: float, premature: float) -> float:
    """Return what it takes to find a tuple that goes, if a share of them goes before its time."""
    slot = 1.0 + SORTING * log2(1.0 + living / PARTITIONS)
    match structure:
        case "none":
            return premature * living
        case "queue":
            return (1.0 - premature) + premature * living
        case "calendar queue":
            return (1.0 - premature) * slot + premature * living
        case "calendar queue with id map":
            return (1.0 - premature) * slot + premature
        case _:
            return 1.0


def work(load: Load, execution: Execution) -> float:
    """Return what a source makes an operator do: λ (probe + insert) + λ_gone · locate."""
    flow = load.flow
    match execution:
        case "aware":
            inserts = 2.0 if load.structure == "calendar queue with id map" else 1.0
            negatives = flow.premature * flow.rate
            found = flow.rate * locate_cost(load.structure, flow.living, flow.premature)
            return flow.rate * (load.probe + inserts) + negatives * load.probe + found
        case "negative":
            return 2.0 * flow.rate * load.probe + flow.rate * 2.0
        case "direct":
            negatives = flow.premature * flow.rate
            swept = load.swept * flow.living
            early = negatives * (load.probe + flow.living)
            return flow.rate * (load.probe + 1.0) + swept + early


def _cost_below(
    plan: Plan, statistics: Statistics, execution: Execution, circumstances: Circumstances
) -> float:
    own = 0.0
    for load in loads_of(plan, statistics, circumstances):
        own += work(load, execution)
    if isinstance(plan, Windowed):
        return own + _window_cost(plan, statistics, execution)
    return own + sum(
        _cost_below(source, statistics, execution, circumstances) for source in sources_of(plan)
    )


def loads_of(plan: Plan, statistics: Statistics, circumstances: Circumstances) -> tuple[Load, ...]:
    """Return what each source makes an operator do that remembers its tuples."""
    match plan:
        case WindowJoin():
            return _join_loads(plan, statistics, circumstances)
        case Distinct() | Difference() | Existence() | GroupAggregate() | Top():
            sources = [_load(plan, each, statistics, circumstances) for each in sources_of(plan)]
            # An answer that has to be exact at every tuple sweeps all its lists for each of them.
            swept = sum(load.flow.rate for load in sources)
            return tuple(
                Load(load.flow, load.structure, log2(2.0 + load.flow.living), swept)
                if isinstance(plan, Top)
                else Load(load.flow, load.structure, 1.0, swept)
                for load in sources
            )
        case AsOfJoin(left=left):
            # What waits is the newest event of each key, to the right; the left only passes.
            flow = flow_of(left, statistics)
            return (Load(Flow(flow.rate, 0.0, flow.distinct), "none"),)
        case Filter() | Project() | Merge():
            return tuple(
                Load(Flow(load.flow.rate, 0.0, {}, load.flow.premature), "none", probe=0.1)
                for load in (_load(plan, s, statistics, circumstances) for s in sources_of(plan))
            )
        case _:
            return ()


def _load(node: Plan, source: Plan, statistics: Statistics, circumstances: Circumstances) -> Load:
    flow = flow_of(source, statistics)
    structure = structure_below(node, source, circumstances)
    strict = pattern_of(source, circumstances).strict
    return Load(flow if strict else Flow(flow.rate, flow.living, flow.distinct), structure)


def _join_loads(
    join: WindowJoin, statistics: Statistics, circumstances: Circumstances
) -> tuple[Load, ...]:
    loads = [_load(join, source, statistics, circumstances) for source in join.sources]
    inputs = [load.flow.as_input(keys) for load, keys in zip(loads, join.keys, strict=True)]
    looked = cost_of_orders(best_orders(inputs), inputs)
    arrivals = max(sum(load.flow.rate for load in loads), 1e-9)
    probe = 1.0 + looked / arrivals
    return tuple(
        Load(
            load.flow,
            load.structure,
            probe,
            swept=SWEEPS / load.flow.lifetime if load.flow.lifetime else 0.0,
        )
        for load in loads
    )


def _window_cost(plan: Windowed, statistics: Statistics, execution: Execution) -> float:
    """Return what a window itself does: those of time only remember to tell of every expiry."""
    rate = flow_of(plan, statistics).rate
    remembers = isinstance(plan.window, RowsWindow | SessionWindow) or execution == "negative"
    return rate * (2.0 if remembers else 0.1)
