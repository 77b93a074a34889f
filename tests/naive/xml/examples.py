"""Random documents and patterns, of few names, so that much of one is found in the other."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import strategies as st

from eventide.plan.xml.patterns import PatternStep

ELEMENTS = ["a", "b", "{u}a"]
ATTRIBUTES = ["k", "{u}k"]
TEXTS = ["", "x", "é", "x y"]


def elements(depth: int) -> st.SearchStrategy[ET.Element]:
    inside = st.lists(elements(depth - 1), max_size=3) if depth else st.just([])
    attributes = st.dictionaries(st.sampled_from(ATTRIBUTES), st.sampled_from(TEXTS), max_size=2)
    names, texts = st.sampled_from(ELEMENTS), st.sampled_from(TEXTS)
    return st.builds(_element, names, attributes, texts, inside, texts)


def _element(
    name: str, attributes: dict[str, str], text: str, inside: list[ET.Element], tail: str
) -> ET.Element:
    found = ET.Element(name, attributes)
    found.text, found.tail = text, tail
    found.extend(inside)
    return found


def written(top: ET.Element) -> bytes:
    top.tail = None  # nothing stands behind the root element
    text: bytes = ET.tostring(top)
    return text


DOCUMENTS = elements(4).map(written)

_NAMES = st.sampled_from(
    ["a", "b", "{u}a", "{*}a", "*", "*", "@k", "@{u}k", "@{*}k", "@*", "nowhere"]
)
_AXES = st.sampled_from(["child", "descendant", "descendant"])
_TESTS = st.one_of(st.none(), st.none(), st.none(), st.sampled_from(["", "x", "é"]))


def steps(depth: int) -> st.SearchStrategy[PatternStep]:
    below = st.lists(steps(depth - 1), max_size=2) if depth else st.just([])
    return st.builds(
        PatternStep, _AXES, _NAMES, st.sampled_from(["v", None]), _TESTS, below.map(tuple)
    )


PATTERNS = steps(3)
"""Steps with the variable `v` are wanted; variables of the same name are not told apart here."""
