"""Keys in layers against a plain dictionary: what is taken, put back and forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.instants import END_OF_TIME_US
from eventide.kernels.compiled import Int64s
from eventide.operators import key_layers
from eventide.operators.key_layer import NEVER
from eventide.operators.key_layers import KeyLayers


@dataclass(frozen=True)
class Numbers:
    """A number for each key, and when it is due."""

    keys: tuple[pa.Array, ...]
    values: Int64s
    due: Int64s

    @classmethod
    def of(cls, known: Mapping[Any, tuple[int, int]]) -> Self:
        values, due = np.array(list(known.values()), np.int64).reshape(-1, 2).T
        return cls((pa.array(list(known), pa.string()),), values, due)

    @property
    def weight(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    def take(self, keys: Int64s) -> Self:
        return type(self)((self.keys[0].take(pa.array(keys)),), self.values[keys], self.due[keys])

    def joined(self, others: Sequence[Self]) -> Self:
        parts = [self, *others]
        return type(self)(
            (pa.concat_arrays([each.keys[0] for each in parts]),),
            np.concatenate([each.values for each in parts]),
            np.concatenate([each.due for each in parts]),
        )

    @property
    def shown(self) -> dict[str | None, tuple[int, int]]:
        names = self.keys[0].to_pylist()
        shown = dict(
            zip(names, zip(self.values.tolist(), self.due.tolist(), strict=True), strict=True)
        )
        assert len(shown) == len(names), "a key stands there twice"
        return shown


NAMES = [None, *"abcdefghijklmnop"]

# Of each step: how far the watermark goes, the keys of its events, and what becomes of each key
# that is looked at (by its place among the names): forgotten, or due so much later, or never.
steps = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.lists(st.sampled_from(NAMES), max_size=6),
        st.lists(st.sampled_from(["gone", "never", 0, 1, 2, 5]), min_size=17, max_size=17),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(steps)
@pytest.mark.parametrize(
    "limits",
    [
        {"FEW": 0, "MOST_WAITING": 2},
        {"FEW": 4, "MOST_WAITING": 4, "MOST_ENTRIES": 20},
        {"FEW": 16, "MOST_WAITING": 0},
        {"FEW": 1000},
    ],
    ids=str,
)
def test_layers_are_what_a_dictionary_would_be(
    limits: dict[str, Any], steps: list[tuple[int, list[str | None], list[str | int]]]
) -> None:
    known: dict[str | None, tuple[int, int]] = {}
    layers = KeyLayers.of(Numbers.of(known))
    watermark = 0
    with patch.multiple(key_layers, FOR_EACH_EVENT=0, **limits):
        for number, (passed, names, fates) in enumerate(steps):
            watermark += passed
            taken = layers.taken([pa.array(names, pa.string())], len(names), watermark)
            due = {name for name, (_, time) in known.items() if time < watermark}
            looked_at = {name for name in names if name in known} | due
            shown = taken.part.shown
            assert shown.keys() >= looked_at
            assert shown == {name: known[name] for name in shown}
            if not taken.is_whole:
                assert shown.keys() == looked_at
            codes, (keys,), count = taken.numbered()
            numbered = keys.to_pylist()
            assert [numbered[code] for code in codes] == names
            assert numbered[: len(shown)] == taken.part.keys[0].to_pylist()
            assert len({*numbered}) == len(numbered) == count
            kept, places = {}, []
            for place, name in enumerate(numbered):
                known.pop(name, None)
                fate = fates[NAMES.index(name)]
                if fate != "gone":
                    time = NEVER if fate == "never" else watermark + int(fate)
                    known[name] = kept[name] = (number, time)
                    places.append(place)
            told = np.array(places, np.int64) if number % 2 else None
            layers = taken.put(Numbers.of(kept), watermark, told)
            assert layers.whole.shown == known
            least = min([99, *(value for value, _ in known.values())])
            assert layers.least(lambda part: part.values, 99) == least
    assert layers.taken([pa.array(["a"])], 1, END_OF_TIME_US).part.shown == known


def test_what_is_forgotten_takes_no_room() -> None:
    layers = KeyLayers.of(Numbers.of({}))
    weights, most = [], 0
    with patch.object(key_layers, "FEW", 64):
        for step in range(400):
            names = [f"{step} {i}" for i in range(10)]
            taken = layers.taken([pa.array(names)], len(names), step)
            most = max(most, taken.part.weight)
            kept = dict.fromkeys(names, (step, step + 10))
            layers = taken.put(Numbers.of(kept), step)
            weights.append(layers.weight)
    # About 110 keys live, and half as many and 64 may be out of date.
    assert max(weights[300:]) <= max(weights[100:300]) <= 240
    assert most <= 64 + 4 * 10
    assert len(layers.whole.values) <= 110


def test_a_burst_is_forgotten_though_little_follows() -> None:
    names = [str(i) for i in range(10_000)]
    layers = KeyLayers.of(Numbers.of(dict.fromkeys(names, (0, 5))))
    for step in range(4, 8):
        taken = layers.taken([pa.array(["one"])], 1, step)
        layers = taken.put(Numbers.of({"one": (step, NEVER)}), step)
    assert layers.weight < 10
