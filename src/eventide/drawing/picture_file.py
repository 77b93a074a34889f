"""A picture into a file: as SVG, or as a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eventide.errors import PlanError, StoreError
from eventide.local_path import local_path

FORMATS = (".svg", ".html")


def save_picture(path: str | Path, svg: Callable[[], str], html: Callable[[], str]) -> Path:
    """Write a picture to a file; its suffix decides the form."""
    target = checked_path(path)
    drawn = svg() if target.suffix.lower() == ".svg" else html()
    try:
        target.write_text(drawn, encoding="utf-8")
    except (OSError, ValueError) as error:
        # A name with a NUL is a ValueError.
        why = error.strerror if isinstance(error, OSError) else None
        message = f"cannot write {str(target)!r}: {why or error}"
        raise StoreError(message, hint="check the path and its permissions") from None
    return target


def checked_path(path: object) -> Path:
    """Return the path of a picture, if its suffix is known."""
    if not isinstance(path, str | Path):
        message = f"a picture is saved to a path, not to {type(path).__name__}"
        raise PlanError(message, hint='name a file, as in "matches.svg"')
    target = local_path(path)
    if target.suffix.lower() not in FORMATS:
        message = f"cannot tell from {target.name!r} what to draw"
        raise PlanError(message, hint="name a file that ends with .svg or .html")
    return target
