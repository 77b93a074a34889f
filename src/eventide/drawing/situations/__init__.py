"""Situations as bars over time, and the matches they make: as SVG, as a page, in a terminal.

model.py      Scene, Timeline, Lane, Bar
rows.py       from tables of matches, or of situations, to a scene
lifetimes.py  from changes of answers to a scene
svg.py        a scene as SVG
terminal.py   a scene as lines of text
picture.py    SituationPicture: a scene that shows and saves itself
"""

from eventide.drawing.situations.lifetimes import scene_of_lifetimes
from eventide.drawing.situations.model import Bar, Lane, Scene, Timeline
from eventide.drawing.situations.picture import SituationPicture
from eventide.drawing.situations.rows import (
    Member,
    once_each,
    scene_of_matches,
    scene_of_situations,
)
from eventide.drawing.situations.svg import draw_scene
from eventide.drawing.situations.terminal import scene_text

__all__ = [
    "Bar",
    "Lane",
    "Member",
    "Scene",
    "SituationPicture",
    "Timeline",
    "draw_scene",
    "once_each",
    "scene_of_lifetimes",
    "scene_of_matches",
    "scene_of_situations",
    "scene_text",
]
