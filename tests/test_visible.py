"""Names, keys and values of any characters: shown, never obeyed."""

from __future__ import annotations

import unicodedata
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.result import Result
from eventide.sinks.words import cut, escape, pad, text_width
from eventide.visible import visible

WILD = "\x1b[2Jk\r\x07\u202e\x85\ufeff\u2028\x00\n"
NAME = "a\x1b[31m\nhistory: nothing\u202e"
TWO = "\U0001f468\u200d\U0001f469"


def obeyed(text: str, lines: bool = True) -> list[str]:
    """Return the characters that a terminal or a page would act on."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    kept = "\n" if lines else ""
    return [char for char in text if unicodedata.category(char) in kinds and char not in kept]


def drawn() -> ev.Matches:
    events = pa.table(
        {"ts": [0, 1_000_000, 2_000_000], "k": [WILD] * 3, "v": [1, 1, 0], "x y": [WILD] * 3}
    )
    text = (
        f'FROM x PARTITION BY k AS "{NAME}k" DEFINE "{NAME}" AS v > 0 PATTERN "{NAME}" WITHIN 1 h'
    )
    return ev.tpstream(f'{text} RETURN LAST("{NAME}"."x y") AS "{NAME}v"', x=events)


def test_every_control_character_is_a_sign() -> None:
    every = "".join(map(chr, [*range(0x300), *range(0x2000, 0x2100), 0xFEFF, 0xFFFE, 0xE0001]))
    assert not obeyed(visible(every).replace("\u200c", "").replace("\u200d", ""))
    assert visible("Ünï 漢字 \u00a0 ✓") == "Ünï 漢字 \u00a0 ✓"
    assert visible(TWO) == TWO
    assert visible("a\tb\nc", keep="\n\t") == "a\tb\nc"


def test_a_page_keeps_its_lines() -> None:
    assert escape("<a>\r\n\tb\r\x1b") == "&lt;a&gt;\n\tb␍␛"


def test_a_table_of_wild_values_is_a_table() -> None:
    table = Result(pa.table({NAME: [WILD, "b"], "n": [1, 2]}))
    shown = repr(table)
    assert len(shown.split("\n")) == 5
    assert not obeyed(shown)
    assert not obeyed(table._repr_html_())


def test_wild_names_stay_in_their_lanes() -> None:
    picture = drawn().plot()
    text = picture.text(100)
    assert not obeyed(text)
    assert not [line for line in text.split("\n") if line.startswith("history")]
    ElementTree.fromstring(picture.svg())
    assert not obeyed(picture.svg())
    assert "\x1b" not in picture.html()


def test_a_name_fakes_no_line_of_explain() -> None:
    events = pa.table({"ts": [0], "v": [1]})
    text = (
        f'FROM x DEFINE "{NAME}" AS v > 0 PATTERN "{NAME}" WITHIN 1 h RETURN START("{NAME}") AS s'
    )
    lines = [row["plan"] for row in ev.tpstream(f"EXPLAIN {text}", x=events)]
    assert not obeyed("".join(lines), lines=False)
    assert not [line for line in lines if line.startswith("history: nothing")]


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("ｈｉ", 4), ("", 0)]
)
def test_text_is_as_wide_as_it_looks(text: str, width: int) -> None:
    assert text_width(text) == width
    assert text_width(pad(text, 6)) == text_width(pad(text, 6, right=True)) == 6
    assert text_width(cut(text * 9, 5)) <= 5


def test_wide_characters_leave_lanes_and_columns_where_they_are() -> None:
    events = pa.table({"ts": [0, 1_000_000, 2_000_000], "v": [1, 1, 0], "w": [1, 0, 0]})
    text = "FROM x DEFINE 漢字 AS v > 0, b AS w > 0 PATTERN 漢字 started by b WITHIN 1 h"
    shown = ev.tpstream(f"{text} RETURN START(b) AS s", x=events).plot().text(80).split("\n")
    lanes = [line for line in shown if line.startswith(("  漢字", "  b ")) and "━" in line]
    first, second = (line[: line.index(line.strip(" 漢字b")[0])] for line in lanes)
    assert text_width(first) == text_width(second)
    table = repr(Result(pa.table({"k": ["漢字", "a"], "n": [1, 2]}))).split("\n")
    assert len({text_width(line[: line.index("│")]) for line in table if "│" in line}) == 1
