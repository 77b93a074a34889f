"""Charts over time as one SVG without scripts.

model.py    Chart, Panel, and the four kinds of series: Line, Points, Bars, Periods
ticks.py    round times and round numbers for the axes
thin.py     millions of points as the few that can be seen, extremes kept
scale.py    from time and value to places on the page
marks.py    one series as SVG
svg.py      a whole chart as SVG

>>> import numpy as np
>>> minutes = np.arange(60) * 60_000_000
>>> speed = Line("speed", minutes, 50 + 10 * np.sin(minutes / 5e8))
>>> draw(Chart("One hour", (Panel("Speed", (speed,), unit="km/h"),)))[:20]
'<svg class="ev-chart'
"""

from eventide.drawing.chart.model import (
    Bars,
    Chart,
    Line,
    Panel,
    PeriodBar,
    PeriodBars,
    Points,
    Series,
)
from eventide.drawing.chart.svg import draw

__all__ = ["Bars", "Chart", "Line", "Panel", "PeriodBar", "PeriodBars", "Points", "Series", "draw"]
