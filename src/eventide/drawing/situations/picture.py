"""A scene that can be shown in a terminal and in a notebook, and saved to a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size

from eventide.drawing.page import Block, CodeBlock, Drawing, Page, render
from eventide.drawing.picture_file import save_picture
from eventide.drawing.situations.model import Scene
from eventide.drawing.situations.svg import draw_scene
from eventide.drawing.situations.terminal import scene_text

WIDEST = 120
"""The largest width in a terminal: beyond it, a drawing is not easier to read."""


@dataclass(frozen=True, slots=True)
class SituationPicture:
    """Situations over time. `print` draws them, a notebook shows them, `save` writes a file."""

    scene: Scene
    query: str = ""

    def svg(self) -> str:
        """Return the picture as SVG."""
        return draw_scene(self.scene)

    def html(self) -> str:
        """Return a page with the picture, and the query if it is known."""
        blocks: list[Block] = [CodeBlock(self.query.strip())] if self.query.strip() else []
        if self.scene.timelines:
            drawn = draw_scene(self.scene, headed=False)
            text = CodeBlock(scene_text(self.scene, 100), "The same as text", plain=True)
            blocks += [Drawing(drawn, zoom=True), text]
        return render(Page(self.scene.title, self.scene.summary, tuple(blocks)))

    def text(self, width: int | None = None, *, ascii_only: bool = False) -> str:
        """Return the picture as lines of text, by default as wide as the terminal."""
        wide = min(get_terminal_size((100, 24)).columns, WIDEST) if width is None else width
        return scene_text(self.scene, wide, ascii_only=ascii_only)

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file: `.svg`, or a page `.html`."""
        return save_picture(path, self.svg, self.html)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.svg()
