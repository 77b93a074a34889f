"""The matches of a temporal pattern: rows that can also be drawn.

What draws is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.api.result import Result
from eventide.drawing import MOST_DRAWN
from eventide.errors import PlanError, SchemaError, UnsupportedError, pointing_into
from eventide.plan.situations.allen import possible_relations, words_of
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.situations.periods import pattern_of, period_columns, with_periods
from eventide.plan.tree import Plan
from eventide.schema import TS
from eventide.sinks.words import escape

if TYPE_CHECKING:
    from eventide.drawing.situations import Bar, SituationPicture

MOST_IN_NOTEBOOK = 3
FEW_ROWS = 2_000
"""A notebook draws this many rows without being asked: drawing runs the query once more."""
SOON_S = 1.0
"""A notebook draws only if the query took no longer than this."""
HOW_TO_DRAW = "<p><code>.plot()</code> draws the first matches, and runs the query once more.</p>"

Run = Callable[[Plan], pa.Table]


class Matches(Result):
    """The matches of a temporal pattern. `db.tpstream` makes it; `plot` draws the first ones.

    `run` answers a plan over the same events; answering took `seconds`. Without a plan the rows
    are the lines of EXPLAIN.
    """

    __slots__ = ("plan", "query", "run", "seconds")

    def __init__(
        self,
        table: pa.Table,
        plan: Plan | None = None,
        run: Run | None = None,
        query: str = "",
        seconds: float = 0.0,
    ) -> None:
        super().__init__(table)
        self.plan, self.run, self.query, self.seconds = plan, run, query, seconds

    def plot(self, path: str | Path | None = None, most: int = MOST_DRAWN) -> SituationPicture:
        """Draw the first matches: their situations as bars, when each was detected, its values.

        The query runs once more over the same events, to learn when each situation began and
        ended. With `path`, such as "matches.html" or "matches.svg", the picture is saved too.
        """
        from eventide.drawing.picture_file import checked_path
        from eventide.drawing.situations import (
            Member,
            SituationPicture,
            once_each,
            scene_of_matches,
        )

        check_most(most)
        if path is not None:
            checked_path(path)
        if self.plan is None or self.run is None:
            message = "the lines of EXPLAIN have no situations to draw"
            raise UnsupportedError(message, hint="leave EXPLAIN out")
        with pointing_into(self.query):
            pattern = drawable(self.plan)
        table = self.run(with_periods(self.plan))
        members = [Member(each.situation, each.start, each.end) for each in period_columns(pattern)]
        keys = [key.name for key in pattern.keys if key.name in self.columns]
        if pattern.confirm:
            table = once_each(table, keys, members)
        apart = {*keys, TS}
        scene = scene_of_matches(
            table,
            keys,
            members,
            [name for name in self.columns if name not in apart],
            relate=lambda bars: relations_between(pattern, bars),
            most=most,
        )
        picture = SituationPicture(scene, self.query)
        if path is not None:
            picture.save(path)
        return picture

    def _repr_html_(self) -> str:
        shown = super()._repr_html_()
        if self.plan is None or not len(self):
            return shown
        try:
            drawable(self.plan)
        except UnsupportedError:
            return shown
        if self.seconds > SOON_S or len(self) > FEW_ROWS:
            return shown + HOW_TO_DRAW
        try:
            return shown + self.plot(most=MOST_IN_NOTEBOOK).svg()
        except Exception as error:  # the rows exist, even if the picture failed
            return f"{shown}<p>The picture could not be drawn: {escape(str(error))}</p>"


def drawable(plan: Plan) -> TemporalPattern:
    """Return the pattern whose matches are the rows of a plan, if each row is one match."""
    pattern = pattern_of(plan)
    if pattern.is_summary:
        message = "a summary has no situations to draw: each row is over many matches"
        hint = "leave aggregates over matches, such as COUNT(*), out of RETURN and plot again"
        raise UnsupportedError(message, span=pattern.span, hint=hint)
    return pattern


def relations_between(pattern: TemporalPattern, bars: Sequence[Bar]) -> tuple[str, ...]:
    """Return for each constraint of a pattern which of its relations a match has, in words."""
    names = [item.name for item in pattern.situations]
    said = []
    for each in pattern.constraints:
        first, second = bars[each.first], bars[each.second]
        periods = (first.start_us, first.end_us), (second.start_us, second.end_us)
        mask = each.mask & possible_relations(*periods)
        # Events at the same time are in order too, but their times do not tell it.
        *others, last = words_of(mask or each.mask)
        words = f"{', '.join(others)} or {last}" if others else last
        said.append(f"{names[each.first]} {words} {names[each.second]}")
    return tuple(said)


def check_most(most: int) -> None:
    """Refuse a number of matches to draw that is less than 1."""
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        message = f"most is how many are drawn, a whole number from 1 on, not {most!r}"
        raise PlanError(message, hint=f"leave it out to draw {MOST_DRAWN}")


def plot_situations(
    rows: Result | pa.Table,
    path: str | Path | None = None,
    by: Sequence[str] | None = None,
    most: int = MOST_DRAWN,
) -> SituationPicture:
    """Draw situations, the rows of `SELECT * FROM cars SITUATIONS (…)`: a lane for each name.

    Each key has lanes of its own; keys are the columns before `situation` but ts and seq, unless
    `by` names them. With `path` the picture is saved too.
    """
    from eventide.drawing.picture_file import checked_path
    from eventide.drawing.situations import SituationPicture, scene_of_situations

    check_most(most)
    if path is not None:
        checked_path(path)
    try:
        table = rows.to_arrow() if isinstance(rows, Result) else pa.table(rows)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        message = f"a {type(rows).__name__} is no table of situations: {error}"
        hint = "draw the rows of SELECT * FROM a stream SITUATIONS (…)"
        raise SchemaError(message, hint=hint) from None
    picture = SituationPicture(scene_of_situations(table, by, most))
    if path is not None:
        picture.save(path)
    return picture
