"""The coming and going of rows as seen from outside: the net effect of each instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.lifetimes.view import Int8s, cancel, goers_first, mark_contested
from eventide.kernels.ordering import sorting_order
from eventide.operators.changes import Changes
from eventide.operators.fingerprints import fingerprints
from eventide.operators.standing.answer.keeping import Deaths
from eventide.operators.standing.answer.view import View, ViewState


@dataclass(frozen=True, slots=True)
class Signed:
    """Rows that come or go. Two are alike if their values and their `exp` are equal."""

    rows: pa.RecordBatch
    at: Int64s
    exp: Int64s
    sign: Int8s


@dataclass(frozen=True, slots=True)
class Turnover:
    """Which changes of a step are births, by their places, and which rows died."""

    births: Int64s
    deaths: Deaths


def left_over(signed: Signed) -> Bools:
    """Return which rows remain when equal rows that come and go at one instant cancel out."""
    fingers = fingerprints(signed.rows.columns, signed.rows.num_rows)
    order = sorting_order(signed.at)
    places: Int64s | slice = slice(None) if order is None else order
    stays = np.empty(len(signed.at), np.bool_)
    in_order = np.empty_like(stays)
    cancel(
        frozen(signed.at[places]),
        frozen(signed.exp[places]),
        frozen(fingers.first[places]),
        frozen(fingers.second[places]),
        frozen(signed.sign[places]),
        in_order,
    )
    stays[places] = in_order
    return stays


def contested(at: Int64s, sign: Int8s) -> Int64s:
    """Return the places of changes at instants at which rows both come and go.

    `at` is in order.
    """
    marked = np.empty(len(at), np.bool_)
    if not mark_contested(frozen(at), frozen(sign), marked):
        return np.zeros(0, np.int64)
    return np.flatnonzero(marked)


def net_changes(changes: Changes) -> Changes:
    """Return the net changes of each instant, rows that go first.

    A row that goes was there before the instant, so the operator that takes it back finds it.
    """
    places = contested(changes.at, changes.sign)
    if not len(places):
        return changes
    some = changes if len(places) == len(changes) else changes.take(places)
    stays = np.ones(len(changes), np.bool_)
    stays[places] = left_over(Signed(some.rows, some.at, some.exp, some.sign))
    ordered = np.empty(len(changes), np.int64)
    count = goers_first(frozen(changes.at), frozen(changes.sign), frozen(stays), ordered)
    if count == len(changes) and bool((np.diff(ordered) > 0).all()):
        return changes
    return changes.take(ordered[:count])


def net_turnover(
    view: View, state: ViewState, changes: Changes, until_us: int
) -> tuple[ViewState, Turnover, Deaths]:
    """Take the changes of a step into the view; a row that is replaced by an equal one stays.

    Return also the rows that died by id, even if an equal row was born at that instant.
    """
    state, deaths = view.step(state, changes, until_us)
    births = np.flatnonzero(changes.sign > 0)
    at = np.concatenate([changes.at[births], deaths.at])
    sign = np.ones(len(at), np.int8)
    sign[len(births) :] = -1
    order = np.argsort(at, kind="stable")
    places = np.sort(order[contested(at[order], sign[order])])
    if not len(places):
        return state, Turnover(births, deaths), deaths
    come, go = places[places < len(births)], places[places >= len(births)] - len(births)
    values = [changes.rows.take(to_arrow(births[come])), state.log.take(deaths.numbers[go])]
    rows = pa.concat_batches(values)
    alike = np.zeros(len(places), np.int64)
    stays = np.ones(len(at), np.bool_)
    stays[places] = left_over(Signed(rows, at[places], alike, sign[places]))
    born, died = stays[: len(births)], stays[len(births) :]
    net = Turnover(births[born], Deaths(deaths.numbers[died], deaths.at[died]))
    return state, net, deaths
