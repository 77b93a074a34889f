"""Texts numbered one after the other, as `kernels/texts.py` numbers them."""

from __future__ import annotations

from collections.abc import Sequence


def numbered(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the number of each text in order of first occurrence, and where each occurs first."""
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        first.setdefault(text, place)
    numbers = {text: number for number, text in enumerate(first)}
    return [numbers[text] for text in texts], list(first.values())
