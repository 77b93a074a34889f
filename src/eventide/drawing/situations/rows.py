"""From rows to a scene: a timeline for each match, or one for each key with all its situations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.drawing import MOST_DRAWN
from eventide.drawing.chart.model import Times
from eventide.drawing.situations.model import MARGIN, Bar, Lane, Scene, Timeline
from eventide.errors import SchemaError, listed
from eventide.schema import SEQ, TS
from eventide.sinks.text import cell
from eventide.sinks.words import lasting_text, moment_text, plural, rough_period_text, time_text

MOST_OTHERS = 100
MOST_BARS = 1_000
"""With more bars in a lane, they are joined where gaps are invisible."""
EYE = 6_000
"""How many places along the axis are distinguishable, on a page that can be zoomed."""
MOST_WORDS = 60
MOST_NUMBERS = 1 << 22
"""Up to here rows are numbered with gaps."""
SITUATION, START, END = "situation", "start_ts", "end_ts"

Relate = Callable[[Sequence[Bar]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Member:
    """A situation of a pattern, and the columns that hold its period."""

    name: str
    start: str
    end: str


def scene_of_matches(
    table: pa.Table,
    keys: Sequence[str],
    members: Sequence[Member],
    values: Sequence[str],
    *,
    relate: Relate = lambda _: (),
    most: int = MOST_DRAWN,
) -> Scene:
    """Return the first matches of a table, one row each, as a scene.

    `ts` holds the instant of detection. `relate` returns the relations between the bars of a match,
    which are in order of the members.
    """
    drawn = first_matches(table, [*keys, *(each.start for each in members)], most)
    periods = [(micros(drawn[each.start]), micros(drawn[each.end])) for each in members]
    detected = micros(drawn[TS]).to_pylist()
    matched = [[bar_at(start, end, row) for start, end in periods] for row in range(drawn.num_rows)]
    bares = [
        Timeline("", tuple(Lane("", (bar,)) for bar in bars), at)
        for bars, at in zip(matched, detected, strict=True)
    ]
    others = rows_near(table, members, [bare.period for bare in bares])
    known = [known_periods(others, member) for member in members]
    timelines = []
    for row, found in enumerate(drawn.to_pylist()):
        bars, at, bare = matched[row], int(detected[row]), bares[row]
        same_key = rows_where(others, {key: found[key] for key in keys})
        lanes = tuple(
            Lane(
                member.name,
                (bar,),
                tuple(bars_near(start, end, same_key, bar, bare.period)),
                note_of(bar, at),
            )
            for member, bar, (start, end) in zip(members, bars, known, strict=True)
        )
        said = ", ".join(f"{name} {value_text(found[name])}" for name in values)
        title = key_text(keys, found) or f"Match {row + 1}"
        timelines.append(Timeline(title, lanes, at, said, relate(bars)))
    count = table.num_rows
    left = count - len(timelines)
    matches = "no matches" if not count else f"{count:,} match{'' if count == 1 else 'es'}"
    if count:
        matches += f", {rough_period_text(*detected_between(table))}"
    rest = f"and {left:,} more match{'' if left == 1 else 'es'}" if left else ""
    names = listed([member.name for member in members])
    return Scene(f"Matches of {names}", matches, tuple(timelines), rest)


def first_matches(table: pa.Table, order: Sequence[str], most: int) -> pa.Table:
    """Return the matches that were detected first, in order; rows come in any order."""
    if table.num_rows > most:
        # Of millions of rows only those that can be among the first are sorted.
        detected = micros(table[TS]).to_numpy()
        table = table.filter(pa.array(detected <= np.partition(detected, most - 1)[most - 1]))
    return table.sort_by([(name, "ascending") for name in (TS, *order)]).slice(0, most)


def rows_near(
    table: pa.Table, members: Sequence[Member], periods: Sequence[tuple[int, int]]
) -> pa.Table:
    """Return the rows that know of a situation within the periods that are drawn."""
    first = min((start for start, _ in periods), default=0)
    last = max((end for _, end in periods), default=0)
    near = pa.chunked_array([pa.repeat(False, table.num_rows)])
    for member in members:
        start, end = known_periods(table, member)
        inside = pc.and_(pc.less(start, last), pc.greater_equal(end, first))
        near = pc.or_(near, pc.fill_null(inside, False))
    return table.filter(near)


def known_periods(table: pa.Table, member: Member) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return what matches know of a situation: an open one held up to their detection."""
    return micros(table[member.start]), pc.coalesce(micros(table[member.end]), micros(table[TS]))


def detected_between(table: pa.Table) -> tuple[int, int]:
    """Return when the first and the last match were detected."""
    found = pc.min_max(micros(table[TS])).as_py()
    return int(found["min"]), int(found["max"])


def once_each(table: pa.Table, keys: Sequence[str], members: Sequence[Member]) -> pa.Table:
    """Return each match of a pattern with CONFIRM once, by its confirmed row if it has one.

    A match is identified by the starts of its situations. Its last row has their ends, its first
    one the instant of detection.
    """
    if not table.num_rows:
        return table
    columns = [table[name] for name in (*keys, *(each.start for each in members))]
    match = row_numbers(columns)
    over = np.ones(table.num_rows, bool)
    for each in members:
        over &= pc.is_valid(table[each.end]).to_numpy()
    count = int(match.max()) + 1
    is_over = np.zeros(count, bool)
    is_over[match[over]] = True
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, match, micros(table[TS]).to_numpy())
    kept = over | ~is_over[match]
    moments = pa.array(first[match[kept]]).cast(table[TS].type)
    place = table.column_names.index(TS)
    return table.filter(pa.array(kept)).set_column(place, TS, moments)


def row_numbers(columns: Sequence[pa.ChunkedArray]) -> Times:
    """Return a number for each row from 0 on, the same for rows that are equal in all columns."""
    numbers = np.zeros(len(columns[0]), np.int64)
    count = 1
    for column in columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        size = len(encoded.dictionary)
        numbers = numbers * size + encoded.indices.to_numpy()
        # Numbers with gaps are fine as long as they are few; packed ones cannot overflow.
        count *= size
        if count > MOST_NUMBERS:
            found = pa.array(numbers).dictionary_encode()
            numbers, count = found.indices.to_numpy().astype(np.int64), len(found.dictionary)
    return numbers


def bar_at(start: pa.ChunkedArray, end: pa.ChunkedArray, row: int) -> Bar:
    """Return one period of a table."""
    return Bar(start[row].as_py(), end[row].as_py())


def note_of(bar: Bar, detected_us: int) -> str:
    """Return how long a situation lasted, or has lasted."""
    if bar.end_us is None and bar.start_us >= detected_us:
        return "just begun"
    if bar.end_us is None:
        return f"{lasting_text(detected_us - bar.start_us)}, goes on"
    return lasting_text(bar.end_us - bar.start_us)


def bars_near(
    start: pa.ChunkedArray,
    end: pa.ChunkedArray,
    same_key: pa.ChunkedArray,
    own: Bar,
    period: tuple[int, int],
) -> Iterator[Bar]:
    """Yield what other matches of a key know of the same situation, within a period."""
    near = pc.and_(same_key, pc.less(start, period[1]))
    near = pc.and_(near, pc.greater_equal(end, period[0]))
    near = pc.and_(near, pc.not_equal(start, own.start_us))
    # A situation has one start; the match that was detected last knows most about its end.
    ends = pa.table({START: start.filter(near), END: end.filter(near)})
    ends = ends.group_by(START).aggregate([(END, "max")]).sort_by(START).slice(0, MOST_OTHERS)
    for one in ends.to_pylist():
        yield Bar(one[START], one[f"{END}_max"])


def scene_of_situations(
    table: pa.Table, by: Sequence[str] | None = None, most: int = MOST_DRAWN
) -> Scene:
    """Return situations as a scene: a timeline for each key, a lane for each name of them.

    The keys are the columns before `situation`, unless `by` names them; ts and seq, which a
    stored stream of situations has, are none.
    """
    missing = [name for name in (SITUATION, START, END) if name not in table.column_names]
    if missing:
        message = f"the rows have no column {listed(missing)}, so there is nothing to draw"
        hint = "draw the rows of SELECT * FROM a stream SITUATIONS (…)"
        raise SchemaError(message, hint=hint)
    columns = table.column_names
    before = columns[: columns.index(SITUATION)]
    keys = [name for name in before if name not in (TS, SEQ)]
    if by is not None:
        keys = [by] if isinstance(by, str) else list(by)
    unknown = [key for key in keys if key not in columns]
    if unknown:
        message = f"the rows have no column {listed(unknown)}"
        raise SchemaError(message, hint=f"there are {listed(columns)}")
    if not table.num_rows:
        return Scene("Situations", "no situations", ())
    names = [str(name) for name in pc.unique(table[SITUATION]).to_pylist()]
    groups = distinct(table, keys)
    start, end = periods_of(table)
    period = whole_period(start, end)
    timelines = tuple(
        Timeline(
            key_text(keys, group) or "All situations",
            tuple(situation_lanes(table, start, end, group, names, period)),
            start_us=period[0],
            end_us=period[1],
        )
        for group in groups[:most]
    )
    summary = plural(table.num_rows, "situation")
    if keys:
        summary += f" of {plural(len(groups), 'key')} ({', '.join(keys)})"
    summary += f", {rough_period_text(*known_period(start, end))}"
    left = len(groups) - len(timelines)
    rest = f"and {plural(left, 'more key')}" if left else ""
    return Scene(f"Situations {listed(names)}", summary, timelines, rest, one_axis=True)


def periods_of(table: pa.Table) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return when situations began and ended; refuse a table that does not have these times."""
    hint = "start_ts and end_ts are times, end_ts the later one, or null while a situation goes on"
    try:
        start, end = micros(table[START]), micros(table[END])
    except pa.ArrowException as error:
        message = f"the periods of the rows are no times: {error}"
        raise SchemaError(message, hint=hint) from None
    if start.null_count:
        message = "a situation has no start_ts"
        raise SchemaError(message, hint=hint)
    wrong = pc.index(pc.fill_null(pc.less(end, start), False), True).as_py()
    if wrong >= 0:
        first, last = time_text(start[wrong].as_py()), time_text(end[wrong].as_py())
        message = f"row {wrong}: a situation ends at {last}, before it starts at {first}"
        raise SchemaError(message, hint=hint)
    return start, end


def situation_lanes(
    table: pa.Table,
    start: pa.ChunkedArray,
    end: pa.ChunkedArray,
    group: dict[str, object],
    names: Sequence[str],
    period: tuple[int, int],
) -> Iterator[Lane]:
    """Yield the lanes of one key."""
    same_key = rows_where(table, group)
    for name in names:
        own = pc.and_(same_key, pc.equal(table[SITUATION], name))
        starts, ends = start.filter(own), end.filter(own)
        open_starts = starts.filter(pc.is_null(ends)).to_pylist()
        over = pc.is_valid(ends)
        from_us = starts.filter(over).to_numpy()
        to_us = ends.filter(over).to_numpy()
        bars = [*joined(from_us, to_us, period), *(Bar(at) for at in open_starts)]
        lasted = lasting_text(int((to_us - from_us).sum()))
        times = f"{len(starts):,} times, " if len(starts) > 1 else ""
        yield Lane(name, tuple(bars), note=f"{times}{lasted}" if len(starts) else "")


def joined(start_us: Times, end_us: Times, period: tuple[int, int]) -> list[Bar]:
    """Return periods as bars; if there are many, they are joined where gaps are invisible."""
    order = np.argsort(start_us, kind="stable")
    start_us, end_us = start_us[order], end_us[order]
    first = np.ones(len(start_us), bool)
    if len(start_us) > MOST_BARS:
        end_us = np.maximum.accumulate(end_us)
        first[1:] = start_us[1:] - end_us[:-1] > (period[1] - period[0]) // EYE
    at = np.flatnonzero(first)
    behind = np.append(at, len(start_us))[1:]
    return [
        Bar(int(start_us[i]), int(end_us[j - 1]), j - i)
        for i, j in zip(at.tolist(), behind.tolist(), strict=True)
    ]


def known_period(start: pa.ChunkedArray, end: pa.ChunkedArray) -> tuple[int, int]:
    """Return the first and the last time that situations have."""
    edges = [pc.min(start).as_py(), pc.max(start).as_py(), pc.max(end).as_py()]
    known = [edge for edge in edges if edge is not None] or [0]
    return min(known), max(known)


def whole_period(start: pa.ChunkedArray, end: pa.ChunkedArray) -> tuple[int, int]:
    """Return the times that all situations lie in, with a margin."""
    first, last = known_period(start, end)
    margin = int(MARGIN * max(last - first, 1_000)) // 2
    return first - margin, last + margin


def distinct(table: pa.Table, keys: Sequence[str]) -> list[dict[str, object]]:
    """Return the keys of a table in order of appearance; without any, one that all rows have."""
    if not keys:
        return [{}]
    found = table.select(keys).group_by(list(keys), use_threads=False).aggregate([])
    rows: list[dict[str, object]] = found.to_pylist()
    return rows


def rows_where(table: pa.Table, values: dict[str, object]) -> pa.ChunkedArray:
    """Return which rows have some values; null is a value too."""
    same = pa.chunked_array([pa.repeat(True, table.num_rows)])
    for name, value in values.items():
        column = table[name]
        if value is None:
            same = pc.and_(same, pc.is_null(column))
        else:
            equal = pc.equal(column, pa.scalar(value, column.type))
            same = pc.and_(same, pc.fill_null(equal, False))
    return same


def micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as microseconds since 1970, null where there is none."""
    if not pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())


def key_text(keys: Sequence[str], row: dict[str, object]) -> str:
    """Return a key as text: `car 7, lane 2`."""
    return ", ".join(f"{key} {cell(row[key])}" for key in keys)


def value_text(value: object) -> str:
    """Return a value of a match; times and lengths of time are short."""
    match value:
        case timedelta():
            return lasting_text(value // timedelta(microseconds=1))
        case datetime():
            since = value.replace(tzinfo=None) - datetime(1970, 1, 1)
            return moment_text(since // timedelta(microseconds=1))
        case _:
            return cell(value, MOST_WORDS)
