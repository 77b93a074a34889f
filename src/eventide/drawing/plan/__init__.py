"""How a query is answered, drawn as one SVG: what lies where in time, and the ways compared.

model.py    PlanPicture, Section, Track, Marks, and the rows of its tables
bins.py     millions of periods and instants as the few hundred visible columns
tracks.py   the tracks of a section over its axis of time
tables.py   the ways and the steps, with bars
svg.py      a whole picture
"""

from eventide.drawing.plan.model import (
    Marks,
    PlanPicture,
    Section,
    StepRow,
    Track,
    WayRow,
)
from eventide.drawing.plan.svg import draw_plan

__all__ = ["Marks", "PlanPicture", "Section", "StepRow", "Track", "WayRow", "draw_plan"]
