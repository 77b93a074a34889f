"""Make control characters visible, so that a terminal or a page does not obey them.

Keys, names and values may hold any character. One that clears the screen, reverses the direction of
writing, or begins a new line would make an answer look like another one.
"""

from __future__ import annotations

from unicodedata import category

_JOINERS = "\u200c\u200d"
"""Characters that are part of words and of emoji, and change nothing else."""
_PICTURES = 0x2400
_DELETE = 0x7F
_LINE = "⏎"


def visible(text: str, keep: str = "") -> str:
    r"""Return a text with visible signs for its control characters; those in `keep` stay.

    >>> visible("two\nlines, \x1b[31mred\u202e")
    'two⏎lines, ␛[31mred\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(char if char in keep else _shown(char) for char in text)


def _shown(char: str) -> str:
    code = ord(char)
    if char == "\n":
        return _LINE
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return "␡"
    kind = category(char)
    unseen = kind in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in _JOINERS
    if unseen or (kind == "Cn" and code & 0xFFFE == 0xFFFE):
        return char.encode("unicode_escape").decode()
    return char
