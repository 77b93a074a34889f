"""Whether a Sigma rule, as plain values, is about an event: true or false, never null."""

from __future__ import annotations

import base64
import fnmatch
import ipaddress
import re
from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]
Detection = Mapping[str, Any]
Value = str | int | float | None
Selection = Mapping[str, Any] | list[Any]


def holds(detection: Detection, event: Event, keywords: tuple[str, ...] = ()) -> bool:
    """Whether the condition of a detection is true on an event."""
    selections = {name: each for name, each in detection.items() if name != "condition"}
    truths = {name: selected(each, event, keywords) for name, each in selections.items()}
    tokens = re.findall(r"[()]|[\w*]+", detection["condition"])
    words: list[bool | str] = []
    place = 0
    while place < len(tokens):
        if tokens[place + 1 : place + 2] == ["of"]:
            pattern = "*" if tokens[place + 2] == "them" else tokens[place + 2]
            found = [truths[name] for name in truths if fnmatch.fnmatchcase(name, pattern)]
            words.append(all(found) if tokens[place] == "all" else any(found))
            place += 3
        else:
            words.append(truths.get(tokens[place], tokens[place]))
            place += 1
    truth, rest = either(words)
    assert not rest
    return truth


def either(words: list[Any]) -> tuple[bool, list[Any]]:
    """Read `a or b`; return its truth, and what is left to read."""
    truth, words = both(words)
    while words[:1] == ["or"]:
        other, words = both(words[1:])
        truth = truth or other
    return truth, words


def both(words: list[Any]) -> tuple[bool, list[Any]]:
    """Read `a and b`."""
    truth, words = one(words)
    while words[:1] == ["and"]:
        other, words = one(words[1:])
        truth = truth and other
    return truth, words


def one(words: list[Any]) -> tuple[bool, list[Any]]:
    """Read `not a`, `(a)` or a truth."""
    if words[0] == "not":
        truth, rest = one(words[1:])
        return not truth, rest
    if words[0] == "(":
        truth, rest = either(words[1:])
        return truth, rest[1:]
    return words[0], words[1:]


def selected(selection: Selection, event: Event, keywords: tuple[str, ...]) -> bool:
    """Whether a selection is true: a table is all of its items, a list one of its tables."""
    if isinstance(selection, Mapping):
        return all(item(key, value, event) for key, value in selection.items())
    if all(isinstance(each, Mapping) for each in selection):
        return any(selected(each, event, keywords) for each in selection)
    found = [event[name] for name in keywords if event[name] is not None]
    return any(like(f"*{value}*", text) for value in selection for text in found)


def item(key: str, values: Value | list[Value], event: Event) -> bool:
    """Whether a field has one of some values, or all of them."""
    field, *modifiers = key.split("|")
    listed = values if isinstance(values, list) else [values]
    truths = [atom(event.get(field), value, modifiers, event) for value in listed]
    return all(truths) if "all" in modifiers else any(truths)


def atom(actual: Value, value: Value, modifiers: list[str], event: Event) -> bool:
    """Whether a field has a value. One that is missing has none but null."""
    if value is None or "exists" in modifiers:
        return (actual is None) == (value is None or value is False)
    if actual is None:
        return False
    if "fieldref" in modifiers:
        other = event.get(str(value))
        return other is not None and str(actual).lower() == str(other).lower()
    for word, compare in COMPARED.items():
        if word in modifiers:
            return isinstance(actual, int) and isinstance(value, int) and compare(actual, value)
    if "cidr" in modifiers:
        try:
            return ipaddress.ip_address(str(actual)) in ipaddress.ip_network(str(value))
        except ValueError:
            return False
    if "re" in modifiers:
        flags = re.IGNORECASE if "i" in modifiers else re.NOFLAG
        return re.search(str(value), str(actual), flags) is not None
    return like(pattern_of(str(value), modifiers), str(actual), cased="cased" in modifiers)


COMPARED = {"lt": int.__lt__, "lte": int.__le__, "gt": int.__gt__, "gte": int.__ge__}


def pattern_of(value: str, modifiers: list[str]) -> str:
    """Return a value with the wildcards that modifiers add."""
    if "base64" in modifiers:
        value = base64.b64encode(value.encode()).decode()
    if {"contains", "endswith"} & set(modifiers):
        value = f"*{value}"
    return f"{value}*" if {"contains", "startswith"} & set(modifiers) else value


def like(pattern: str, text: str, *, cased: bool = False) -> bool:
    r"""Whether a text matches one with `*` and `?`; `\` in front of them, or of itself, is none."""
    if not cased:
        pattern, text = pattern.lower(), text.lower()
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == "*":
        return any(like(rest, text[place:], cased=True) for place in range(len(text) + 1))
    if head == "\\" and rest[:1] in ("*", "?", "\\"):
        head, rest = rest[0], rest[1:]
    elif head == "?":
        head = text[:1] or "?"
    return text[:1] == head and like(rest, text[1:], cased=True)
