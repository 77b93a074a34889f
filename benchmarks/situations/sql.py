"""The situation cases in the rivals' SQL: situations by gaps and islands, then joins of periods.

Both rivals say what `DETECT FINAL` says: all situations of a match are over. For checks, matches
are also counted from situations as they were drawn, early ones too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.situations.data import Spans
from benchmarks.situations.queries import Ask
from eventide.plan.situations import allen

MEANINGS = {
    "before": "{a}.end_ts < {b}.start_ts",
    "after": "{b}.end_ts < {a}.start_ts",
    "meets": "{a}.end_ts = {b}.start_ts",
    "met by": "{b}.end_ts = {a}.start_ts",
    "overlaps": "{a}.start_ts < {b}.start_ts AND {b}.start_ts < {a}.end_ts "
    "AND {a}.end_ts < {b}.end_ts",
    "overlapped by": "{b}.start_ts < {a}.start_ts AND {a}.start_ts < {b}.end_ts "
    "AND {b}.end_ts < {a}.end_ts",
    "starts": "{a}.start_ts = {b}.start_ts AND {a}.end_ts < {b}.end_ts",
    "started by": "{a}.start_ts = {b}.start_ts AND {b}.end_ts < {a}.end_ts",
    "during": "{b}.start_ts < {a}.start_ts AND {a}.end_ts < {b}.end_ts",
    "contains": "{a}.start_ts < {b}.start_ts AND {b}.end_ts < {a}.end_ts",
    "finishes": "{b}.start_ts < {a}.start_ts AND {a}.end_ts = {b}.end_ts",
    "finished by": "{a}.start_ts < {b}.start_ts AND {a}.end_ts = {b}.end_ts",
    "equals": "{a}.start_ts = {b}.start_ts AND {a}.end_ts = {b}.end_ts",
}
APART = allen.BEFORE | allen.AFTER
OPEN_S = 1 << 60


def related(mask: int, a: str, b: str) -> str:
    """Return the condition that two periods have a relation of a mask.

    >>> related(allen.BEFORE | allen.MEETS, "a", "b")
    '((a.end_ts < b.start_ts) OR (a.end_ts = b.start_ts))'
    """
    each = (f"({MEANINGS[name].format(a=a, b=b)})" for name in allen.names_of(mask))
    return f"({' OR '.join(each)})"


def near(mask: int, a: str, b: str) -> str:
    """Return what every such pair has in common, in the form that a join by ranges can use."""
    if mask & APART:
        return ""
    return f" AND {a}.start_ts <= {b}.end_ts AND {b}.start_ts <= {a}.end_ts"


def duckdb_text(ask: Ask) -> str:
    """Return the query for DuckDB: one window function over all events, the rest over edges."""
    key, letters = ask.key, ask.letters
    held = " + ".join(
        f"{1 << bit} * ({condition})::INTEGER" for bit, condition in enumerate(ask.conditions)
    )
    derived = "".join(
        f", {letter}_edges AS (SELECT {key}, ts AS start_ts, held & {1 << bit} AS begins, "
        f"lead(ts) OVER (PARTITION BY {key} ORDER BY ts) AS end_ts FROM edges "
        f"WHERE (held & {1 << bit}) <> (was & {1 << bit})), "
        f"{letter} AS (SELECT {key}, start_ts, end_ts FROM {letter}_edges "
        "WHERE begins <> 0 AND end_ts IS NOT NULL)"
        for bit, letter in enumerate(letters)
    )
    return (
        f"WITH flags AS (SELECT {key}, ts, {held} AS held FROM {ask.stream}), "
        "edges AS MATERIALIZED (SELECT * FROM (SELECT *, "
        f"lag(held, 1, 0) OVER (PARTITION BY {key} ORDER BY ts) AS was FROM flags) "
        f"WHERE held <> was){derived} {duckdb_join(ask)}"
    )


def duckdb_join(ask: Ask) -> str:
    """Return the part that finds the matches among situations."""
    key, letters, within = ask.key, ask.letters, f"to_seconds({ask.within_s})"
    joined = letters[0]
    for place, letter in enumerate(letters[1:], 1):
        masks = {
            letters[one]: mask for (one, other), mask in ask.relations.items() if other == place
        }
        partner = next(iter(masks))
        conditions = "".join(
            f"{near(mask, other, letter)} AND {related(mask, other, letter)}"
            for other, mask in masks.items()
        )
        window = (
            f"{letter}.start_ts >= {partner}.end_ts - {within} "
            f"AND {letter}.end_ts <= {partner}.start_ts + {within}"
        )
        joined += f" JOIN {letter} ON {letter}.{key} = {partner}.{key} AND {window}{conditions}"
    starts = ", ".join(f"{letter}.start_ts AS {letter}_start" for letter in letters)
    first = f"least({', '.join(f'{letter}.start_ts' for letter in letters)})"
    last = f"greatest({', '.join(f'{letter}.end_ts' for letter in letters)})"
    return (
        f"SELECT {letters[0]}.{key}, {last} AS ts, {starts} FROM {joined} "
        f"WHERE {last} <= {first} + {within}"
    )


def flink_text(ask: Ask) -> str:
    """Return the query for Flink SQL: MATCH_RECOGNIZE finds situations, joins find the matches.

    Joins are on ranges of event time, so that Flink can forget what is too old.
    """
    key, letters = ask.key, ask.letters
    minutes, seconds = divmod(ask.within_s, 60)
    # Flink's intervals have few digits of each unit.
    within = f"INTERVAL '{minutes // 60:02}:{minutes % 60:02}:{seconds:02}' HOUR TO SECOND"
    views = [
        f"(SELECT * FROM {ask.stream} MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY ts MEASURES "
        "FIRST(S.ts) AS start_ts, E.ts AS end_ts, MATCH_ROWTIME() AS at_time "
        "ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (S+ E) "
        f"DEFINE S AS {condition}, E AS NOT ({condition}))) AS {letter}"
        for letter, condition in zip(letters, ask.conditions, strict=True)
    ]
    joined = views[0]
    for place, (before, letter) in enumerate(pairwise(letters), 1):
        masks = {
            letters[one]: mask for (one, other), mask in ask.relations.items() if other == place
        }
        conditions = "".join(
            f" AND {related(mask, other, letter)}" for other, mask in masks.items()
        )
        joined += (
            f" JOIN {views[place]} ON {before}.{key} = {letter}.{key} AND {letter}.at_time BETWEEN "
            f"{before}.at_time - {within} AND {before}.at_time + {within}{conditions}"
        )
    starts = ", ".join(f"{letter}.start_ts AS {letter}_start" for letter in letters)
    first = f"LEAST({', '.join(f'{letter}.start_ts' for letter in letters)})"
    last = f"GREATEST({', '.join(f'{letter}.end_ts' for letter in letters)})"
    return (
        f"SELECT {letters[0]}.{key}, {last} AS ts, {starts} FROM {joined} "
        f"WHERE {last} <= {first} + {within}"
    )


def drawn_count(
    ask: Ask, spans: Sequence[Spans], until_s: int, connection: duckdb.DuckDBPyConnection
) -> int:
    """Return how many matches drawn situations have, by definition, up to an event that is last.

    Constraints have one relation each: from the closed form of the moment at which that becomes
    certain follows when a match is found. Nothing here derives situations or searches for them.
    """
    letters = ask.letters
    for letter, (starts, ends) in zip(letters, spans, strict=False):
        begun = starts < until_s
        # What does not end among the events is open for ever.
        over = np.where(ends < until_s, ends, OPEN_S)
        connection.register(
            f"{letter}_drawn", pa.table({"start_ts": starts[begun], "end_ts": over[begun]})
        )
    joined, moments = f"{letters[0]}_drawn {letters[0]}", []
    for place, letter in enumerate(letters[1:], 1):
        conditions = []
        for (one, other), mask in ask.relations.items():
            assert mask.bit_count() == 1, "one relation each"
            if max(one, other) == place:
                a, b = letters[one], letters[other]
                conditions.append(related(mask, a, b))
                conditions.append(f"abs({a}.start_ts - {b}.start_ts) <= {ask.within_s}")
                moments.append(certain_at(mask, a, b))
        joined += f" JOIN {letter}_drawn {letter} ON {' AND '.join(conditions)}"
    if ask.detection == "final":
        moments = [f"{letter}.end_ts" for letter in letters]
    moment = f"greatest({', '.join(moments)})"
    first = f"least({', '.join(f'{letter}.start_ts' for letter in letters)})"
    text = (
        f"SELECT count(*) FROM {joined} "
        f"WHERE {moment} < {until_s} AND {moment} - {first} <= {ask.within_s}"
    )
    ((found,),) = connection.sql(text).fetchall()
    return int(found)


def certain_at(mask: int, a: str, b: str) -> str:
    """Return when one relation of two periods becomes certain: a closed form."""
    if mask & (APART | allen.MEETS | allen.MET_BY):
        return f"greatest({a}.start_ts, {b}.start_ts)"
    return f"least({a}.end_ts, {b}.end_ts)"
