"""The pictures of docs on situations. `python -m tests.golden.situation_pictures` draws them anew.

situations.svg         the thirteen relations that two periods can have
match-situations.svg   matches of a pattern: drivers that speed up, are fast and brake hard
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import eventide as ev
from eventide.drawing.chart.svg import STYLE
from eventide.plan.situations.allen import NAMES, mask_named

DOCS = Path(__file__).parents[2] / "docs"
RELATIONS, MATCHES = DOCS / "situations.svg", DOCS / "match-situations.svg"

PERIODS = {
    "before": ((0, 3), (5, 9)),
    "meets": ((0, 4), (4, 9)),
    "overlaps": ((0, 6), (3, 9)),
    "starts": ((0, 5), (0, 9)),
    "during": ((3, 6), (0, 9)),
    "finishes": ((5, 9), (0, 9)),
    "equals": ((0, 9), (0, 9)),
}
"""Periods (a, b) that have a relation; the other way round, its inverse."""
NO_NOTE = "a and b: the periods of two situations, time goes to the right"

WIDTH, LEFT, TOP, ROW, BAR = 860, 24, 76, 66, 13
CELL = (WIDTH - 2 * LEFT) // 2
WORDS, UNIT = 190, 20

OWN_STYLE = """
.ev-chart .ev-big{fill:var(--ink);font-weight:650;font-size:16px}
.ev-chart .ev-name{fill:var(--ink);font-weight:600;font-size:13px}
.ev-chart .ev-letter{fill:var(--ink);font-size:11px}
.ev-chart .ev-edge{stroke:var(--axis);stroke-dasharray:3 3}
"""


def drawn_relations() -> str:
    """Return the thirteen relations, each beside its inverse."""
    height = TOP + len(PERIODS) * ROW + 6
    title = "The thirteen relations between two periods"
    body = [
        f'<text class="ev-big" x="{LEFT}" y="34">{title}</text>',
        f'<text x="{LEFT}" y="54">{NO_NOTE}</text>',
    ]
    for row, name in enumerate(PERIODS):
        y = TOP + row * ROW
        body.append(f'<line class="ev-grid" x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{y}" y2="{y}"/>')
        a, b = PERIODS[name]
        body += draw_relation(name, a, b, LEFT, y)
        if name != "equals":
            inverse = NAMES[NAMES.index(name) + 1]
            body += draw_relation(inverse, b, a, LEFT + CELL, y)
    return (
        f'<svg class="ev-chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{title}"><title>{title}</title><style>{STYLE}{OWN_STYLE}</style>'
        f'<rect class="ev-paper" width="100%" height="100%" rx="8"/>{"".join(body)}</svg>'
    )


def draw_relation(
    name: str, a: tuple[int, int], b: tuple[int, int], x: int, y: int
) -> Iterator[str]:
    """Yield a relation: its name, and a above b, with lines where they begin and end."""
    middle = y + ROW / 2
    paper = paper_name(name)
    up = 4 if paper != name else -4
    yield f'<text class="ev-name" x="{x}" y="{middle - up:g}">a {name} b</text>'
    if paper != name:
        yield f'<text class="ev-num" x="{x}" y="{middle + 13:g}">DIALECT PAPER: {paper}</text>'
    left, top = x + WORDS, y + 16
    for edge in sorted({*a, *b}):
        at = left + edge * UNIT
        yield f'<line class="ev-edge" x1="{at}" x2="{at}" y1="{y + 9}" y2="{y + ROW - 9}"/>'
    for letter, (start, end), color, at in (("a", a, "blue", top), ("b", b, "orange", top + 21)):
        yield (
            f'<rect class="ev-period ev-{color}" x="{left + start * UNIT}" y="{at}" '
            f'width="{(end - start) * UNIT}" height="{BAR}" rx="3">'
            f"<title>{letter}, {start} to {end}</title></rect>"
            f'<text class="ev-letter" x="{left - 14}" y="{at + 10}">{letter}</text>'
        )


def paper_name(name: str) -> str:
    """Return what the dialect of the TPStream paper calls a relation."""
    return next(each for each in NAMES if mask_named(each, "paper") == mask_named(name))


QUERY = """
FROM cars
PARTITION BY car
DEFINE speedup AS accel > 2.5,
       fast    AS speed > 33 AT LEAST 4 SECONDS,
       brake   AS accel < -3
PATTERN speedup meets fast; speedup overlaps fast; speedup starts fast; speedup during fast
    AND fast meets brake; fast overlaps brake; fast contains brake; fast finished by brake
WITHIN 1 MINUTE
RETURN MAX(fast.speed) AS top, MIN(brake.accel) AS hardest
"""
START_US = 1_772_438_400_000_000  # 2026-03-02 08:00
DRIVES = {
    "M-AX 417": ((8, 0.2), (5, 3.6), (9, 0.1), (4, -5.5), (10, 0.4)),
    "M-ES 2054": ((14, 0.3), (4, 3.9), (2, 0.6), (7, -3.8), (9, 0.2)),
    "M-KU 88": ((10, 0.4), (9, 0.6), (12, -0.2), (5, -1.5)),
}
"""How each car accelerates: seconds, and metres a second each second."""


def cars() -> pa.Table:
    """Return what three cars report each second: two drive hard, one does not."""
    columns: dict[str, list[object]] = {"ts": [], "car": [], "speed": [], "accel": []}
    for car, parts in DRIVES.items():
        accel = np.concatenate([np.full(seconds, value) for seconds, value in parts])
        columns["ts"] += (START_US + np.arange(len(accel)) * 1_000_000).tolist()
        columns["car"] += [car] * len(accel)
        columns["speed"] += np.round(18 + np.cumsum(accel), 1).tolist()
        columns["accel"] += accel.tolist()
    table = pa.table(columns)
    ts = table["ts"].cast(pa.timestamp("us", "UTC"))
    return table.set_column(0, "ts", ts).sort_by("ts")


def drawn_matches() -> str:
    """Return the matches of drivers that speed up, are fast and brake hard."""
    return ev.tpstream(QUERY, cars=cars()).plot().svg()


def regenerate() -> None:
    """Draw both pictures anew."""
    for file, draw in ((RELATIONS, drawn_relations), (MATCHES, drawn_matches)):
        file.write_text(draw() + "\n")
        sys.stdout.write(f"{file.name}: {file.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    regenerate()
