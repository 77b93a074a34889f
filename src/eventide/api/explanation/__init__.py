"""How a query is answered, for people: as text, and as a picture.

tracks.py   the contents of the picture, taken from the engine
"""

from __future__ import annotations

from pathlib import Path

from eventide.api.explanation.tracks import picture_of
from eventide.drawing.page import CodeBlock, Drawing, Page, render
from eventide.drawing.picture_file import save_picture
from eventide.drawing.plan import draw_plan
from eventide.engines.explain.explained import Explained
from eventide.engines.explain.placement import describe_embedded, describe_plan
from eventide.sinks.words import escape


class Explanation(str):
    """The text of a plan, which can also be drawn. `db.explain` makes it."""

    __slots__ = ("query", "seen")

    query: str
    seen: Explained

    @classmethod
    def of(cls, query: str, seen: Explained, named: str = "") -> Explanation:
        """Return the explanation of a query; `named` explains the named queries that it reads."""
        parts = (describe_plan(seen), named, describe_embedded(seen))
        self = cls("\n\n".join(part for part in parts if part))
        self.query, self.seen = query, seen
        return self

    def svg(self) -> str:
        """Return the picture: leaves, conditions and periods over time, and the ways compared."""
        return draw_plan(picture_of(self.query, self.seen))

    def html(self) -> str:
        """Return a page with the query, the picture and the text."""
        how = "as it was answered" if self.seen.analyzed else "as it would be answered"
        blocks = (
            CodeBlock(self.query.strip()),
            Drawing(self.svg()),
            CodeBlock(str(self), "The plan as text", unfolded=True),
        )
        return render(Page("A query, explained", f"The plan of a query, {how}.", blocks))

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file: `.svg`, or a page `.html` with the text as well."""
        return save_picture(path, self.svg, self.html)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>{self.svg()}"
