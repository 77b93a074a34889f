from __future__ import annotations

import random

import pytest

from eventide.plan.xml.graph_templates import StepKind, numbered
from tests.naive.xml.graph_templates import shapes

COUNTS = [(1, 1, 1), (2, 3, 3), (3, 6, 16), (4, 16, 215)]


@pytest.mark.parametrize(("equal", "flat", "all_"), COUNTS)
def test_there_are_as_many_templates_as_graphs_up_to_numbers(
    equal: int, flat: int, all_: int
) -> None:
    assert len({numbered(*shape)[0] for shape in shapes(equal)}) == all_
    assert len({numbered(*shape)[0] for shape in shapes(equal, flat=True)}) == flat


@pytest.mark.parametrize("seed", range(5))
def test_a_graph_has_one_template_however_it_is_numbered(seed: int) -> None:
    rng = random.Random(seed)
    for lefts, parents, equal in shapes(4):
        count = len(parents)
        if rng.random() < 0.2:
            new = [
                *rng.sample(range(lefts), lefts),
                *rng.sample(range(lefts, count), count - lefts),
            ]
            moved = [-1] * count
            for node, above in enumerate(parents):
                moved[new[node]] = new[above] if above >= 0 else -1
            turned = tuple(sorted((new[one], new[other]) for one, other in equal))
            template, places = numbered(lefts, tuple(moved), turned)
            assert template == numbered(lefts, parents, equal)[0]
            assert sorted(places) == list(range(count))
            for one, other in template.equal:
                assert (places[one], places[other]) in turned


def test_steps_reach_every_node_and_know_what_they_go_on_from() -> None:
    for shape in shapes(4):
        template, _ = numbered(*shape)
        known: set[int] = set()
        edges = set()
        for step in template.steps():
            assert step.other_known == (step.other in known)
            if step.kind == StepKind.EQUAL:
                assert step.one_known == (step.one in known)
                edges.add((step.one, step.other))
            else:
                assert step.one in known
                ends = (step.one, step.other)
                edges.add(ends if step.kind == StepKind.UP else ends[::-1])
            known |= {step.one, step.other}
        above = {(node, up) for node, up in enumerate(template.parents) if up >= 0}
        assert edges == {*template.equal} | above
        assert known == {*range(len(template.parents))}
