"""Formats of times: the letters of to_char and strftime, element by element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eventide.errors import Span, UnsupportedError

TEXT = ""
"""The code of a part that stands for itself."""


@dataclass(frozen=True, slots=True)
class FormatPart:
    """A part of a format: a code of strftime without its %, or text; `span` is its place."""

    code: str
    text: str
    span: Span


# The longest first: HH24 is not HH and then 24.
_LETTERS: Mapping[str, str] = {
    "FMMonth": "B",
    "FMHH24": "-H",
    "FMHH12": "-I",
    "FMDay": "A",
    "FMMM": "-m",
    "FMDD": "-d",
    "FMMI": "-M",
    "FMSS": "-S",
    "FMHH": "-I",
    "YYYY": "Y",
    "HH24": "H",
    "HH12": "I",
    "DDD": "j",
    "FF3": "g",
    "FF6": "f",
    "Mon": "b",
    "YY": "y",
    "MM": "m",
    "DD": "d",
    "Dy": "a",
    "HH": "I",
    "MI": "M",
    "SS": "S",
    "MS": "g",
    "US": "f",
    "AM": "p",
    "PM": "p",
}
_SPELLED = ("Month", "MONTH", "month", "Day", "DAY", "day", "MON", "mon", "DY", "dy")
"""Names that to_char pads with spaces or writes in other letters."""
_CODES = frozenset("YymdHIMSfgpjBbAa") | {"-m", "-d", "-H", "-I", "-M", "-S", "-j", "-y"}
_KNOWN = "YYYY YY MM DD DDD HH24 HH12 MI SS MS US AM FMMonth Mon FMDay Dy"


def read_letters(text: str) -> Iterator[FormatPart]:
    """Yield the parts of a format of to_char; letters without a meaning are an error.

    >>> [part.code or part.text for part in read_letters('YYYY-MM"T"HH24')]
    ['Y', '-', 'm', 'T', 'H']
    """
    place = 0
    while place < len(text):
        if text[place] == '"':
            end = text.find('"', place + 1)
            end = len(text) if end < 0 else end
            yield FormatPart(TEXT, text[place + 1 : end], Span(place, end + 1))
            place = end + 1
            continue
        spelled = next((each for each in _SPELLED if text.startswith(each, place)), None)
        found = next((each for each in _LETTERS if text.startswith(each, place)), None)
        if spelled is not None and (found is None or len(spelled) > len(found)):
            hint = "FMMonth and Mon, FMDay and Dy are names of months and days, without padding"
            raise _beyond(spelled, place, hint)
        if found is not None:
            yield FormatPart(_LETTERS[found], found, Span(place, place + len(found)))
            place += len(found)
            continue
        if text[place].isalpha():
            end = place
            while end < len(text) and text[end].isalpha():
                end += 1
            hint = f'text stands in double quotes, as in YYYY"-"MM; there are {_KNOWN}'
            raise _beyond(text[place:end], place, hint)
        yield FormatPart(TEXT, text[place], Span(place, place + 1))
        place += 1


def read_codes(text: str) -> Iterator[FormatPart]:
    """Yield the parts of a format of strftime.

    >>> [part.code or part.text for part in read_codes("%d.%m.")]
    ['d', '.', 'm', '.']
    """
    place = 0
    while place < len(text):
        if text[place] != "%":
            yield FormatPart(TEXT, text[place], Span(place, place + 1))
            place += 1
            continue
        size = 3 if text[place + 1 : place + 2] == "-" else 2
        code = text[place + 1 : place + size]
        if code == "%":
            yield FormatPart(TEXT, "%", Span(place, place + 2))
        elif code in _CODES:
            yield FormatPart(code, text[place : place + size], Span(place, place + size))
        else:
            codes = " ".join(f"%{each}" for each in sorted(_CODES) if "-" not in each)
            raise _beyond(text[place : place + size], place, f"there are {codes}")
        place += size


def as_codes(parts: Iterator[FormatPart]) -> str:
    """Return parts as a format of strftime.

    >>> as_codes(read_letters("DD.MM.YY"))
    '%d.%m.%y'
    """
    return "".join(f"%{each.code}" if each.code else _escaped(each.text) for each in parts)


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _beyond(element: str, place: int, hint: str) -> UnsupportedError:
    message = f"{element!r} is no element of a time's format"
    return UnsupportedError(message, span=Span(place, place + len(element)), hint=hint)
