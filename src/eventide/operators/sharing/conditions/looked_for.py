"""What a test of a text looks for: a constant part, which all texts that pass have."""

from __future__ import annotations

import re
from typing import NamedTuple

from eventide.kernels.sharing.conditions.patterns import AT_END, AT_START
from eventide.plan.expressions import Literal

_PLAIN = re.compile(r"[\w \-/:,;=@%&'\"<>!#~`]*", re.ASCII)
_ANCHORS = {"starts_with": AT_START, "ends_with": AT_END, "contains": 0}


class LookedFor(NamedTuple):
    """A part of texts that pass a test.

    With `folded`, it is in lower case and in texts as `folded_texts` has them. If it is not
    `enough`, a text with the part may still fail the test.
    """

    part: str
    anchors: int = 0
    folded: bool = False
    enough: bool = True


def looked_for(function: str, constants: tuple[Literal, ...]) -> LookedFor | None:
    """Return what a test looks for, None if that is not known."""
    text = str(constants[0].value)
    if function in _ANCHORS:
        return LookedFor(text, _ANCHORS[function]) if text else None
    if function == "regexp_matches":
        return LookedFor(text) if text and _PLAIN.fullmatch(text) else None
    if function in ("like", "ilike"):
        escape = str(constants[1].value) if len(constants) > 1 else ""
        return _of_like(_like_parts(text, escape), folded=function == "ilike")
    return None


def _like_parts(pattern: str, escape: str) -> list[str | None]:
    """Return the characters of a LIKE pattern, wildcards as '%' and '_' behind a None."""
    parts: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(next(characters))
        elif character in "%_":
            parts += [None, character]
        else:
            parts.append(character)
    return parts


def _of_like(parts: list[str | None], *, folded: bool) -> LookedFor | None:
    pieces, wild = [""], []
    place = 0
    while place < len(parts):
        part = parts[place]
        if part is None:
            wild.append(parts[place + 1])
            pieces.append("")
            place += 2
            continue
        pieces[-1] += part
        place += 1
    ascii_only = all(piece.isascii() for piece in pieces)
    kept = [piece for piece in pieces if piece]
    if not kept:
        return None
    if set(wild) <= {"%"} and len(kept) == 1 and (ascii_only or not folded):
        anchors = (AT_START if pieces[0] else 0) | (AT_END if pieces[-1] else 0)
        return LookedFor(_lower(kept[0]) if folded else kept[0], anchors, folded)
    if folded:
        kept = [run for piece in kept for run in re.findall(r"[\x00-\x7f]+", piece)]
    longest = max(kept, key=len, default="")
    if not longest:
        return None
    return LookedFor(_lower(longest) if folded else longest, 0, folded, enough=False)


def _lower(text: str) -> str:
    return "".join(each.lower() if each.isascii() else each for each in text)
