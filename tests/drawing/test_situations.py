"""Situations drawn: bars where they belong, the same in a page and in a terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from eventide.drawing.situations import (
    Bar,
    Lane,
    Member,
    Scene,
    SituationPicture,
    Timeline,
    draw_scene,
    once_each,
    scene_of_matches,
    scene_of_situations,
    scene_text,
)
from eventide.drawing.situations.rows import row_numbers
from eventide.errors import EventideError, PlanError, SchemaError, StoreError

SECOND = 1_000_000
EIGHT = 8 * 3_600 * SECOND


def at(*seconds: float | None) -> pa.Array:
    times = [None if each is None else EIGHT + int(each * SECOND) for each in seconds]
    return pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))


def us(seconds: float) -> int:
    return EIGHT + int(seconds * SECOND)


def lane(name: str, start: float, end: float | None, **options: object) -> Lane:
    return Lane(name, (Bar(us(start), None if end is None else us(end)),), **options)  # type: ignore[arg-type]


MATCH = Timeline(
    "car <a>",
    (lane("fast", 0, 6, note="6 s"), lane("brake", 4, None, note="4 s, goes on")),
    us(8),
    "top 96.5",
    ("fast overlaps brake",),
    us(0),
    us(12),
)
SCENE = Scene("Matches & more", "2 matches", (MATCH,), "and 1 more match")


def drawn(scene: Scene) -> ElementTree.Element:
    return ElementTree.fromstring(draw_scene(scene))


def marks(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [each for each in root.iter() if kind in each.get("class", "").split()]


def place(mark: ElementTree.Element) -> tuple[float, float]:
    left = float(mark.get("x", "nan"))
    return left, left + float(mark.get("width", "nan"))


def test_bars_stand_where_their_times_are() -> None:
    root = drawn(SCENE)
    fast, brake = marks(root, "ev-period")
    (moment,) = marks(root, "ev-moment")
    left, right = place(fast)
    detected = float(moment.get("x1", "nan"))
    # fast is [0, 6), detected at 8: as far behind its start as 8 is to 6.
    assert detected - left == pytest.approx((right - left) * 8 / 6, abs=0.2)
    assert place(brake)[1] == pytest.approx(detected, abs=0.2)  # known up to the detection
    goes_on, tip, *legend = marks(root, "ev-goes-on")
    assert place(goes_on)[0] == pytest.approx(detected, abs=0.2)
    assert tip.get("d", "").startswith(f"M{place(goes_on)[1]:.1f} ")
    assert len(legend) == 2


def test_all_that_is_known_is_said() -> None:
    text = "\n".join("".join(each.itertext()) for each in drawn(SCENE).iter())
    for words in (
        "car <a>",
        "detected 1970-01-01 08:00:08",
        "top 96.5",
        "fast overlaps brake",
        "6 s",
    ):
        assert words in text
    assert "and 1 more match" in text
    assert "brake, 1970-01-01 08:00:04, goes on" in text


def test_no_text_leaves_the_picture() -> None:
    long = "n" * 300
    lanes = (replace(MATCH.lanes[0], name=long, note=long),)
    scene = Scene(long, long, (replace(MATCH, title=long, caption=long, lanes=lanes),))
    root = drawn(scene)
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        said = text.text or ""
        assert len(said) < 160
    assert all(len(line) <= 70 for line in scene_text(scene, 70).splitlines())


@pytest.mark.parametrize("moment", [0.0, 0.1, 12.0])
def test_the_time_of_the_moment_stays_inside(moment: float) -> None:
    root = drawn(replace(SCENE, timelines=(replace(MATCH, detected_us=us(moment)),)))
    (line,) = marks(root, "ev-moment")
    x = float(line.get("x1", "nan"))
    label = next(each for each in marks(root, "ev-num") if (each.text or "").startswith("08:00"))
    anchor, label_x = label.get("text-anchor"), float(label.get("x", "nan"))
    assert anchor == ("start" if moment < 6 else "end")
    assert abs(label_x - x) < 40


def test_a_match_in_a_terminal() -> None:
    assert scene_text(SCENE, 60) == "\n".join(
        [
            "Matches & more",
            "2 matches",
            "",
            "car <a>, detected 1970-01-01 08:00:08",
            "  fast   ━━━━━━━━━━━━━━━━━━╸     │              6 s",
            "  brake              ╺━━━━━━━━━━━┿╍╍╍╍╍╍╍╍╍╍╍→  4 s, goes on",
            "         ┬───────────────────────┴──────┬─────",
            "         08:00:00                   08:00:10",
            "  Thu 1 January 1970, UTC",
            "  top 96.5",
            "  fast overlaps brake",
            "",
            "and 1 more match",
        ]
    )


def test_a_terminal_without_lines() -> None:
    text = scene_text(SCENE, 60, ascii_only=True)
    assert text.isascii()
    assert "==|....." in text
    widths = [len(line) for line in scene_text(SCENE, 60).splitlines()]
    assert widths == [len(line) for line in text.splitlines()]


def test_half_columns_and_others() -> None:
    others = (Bar(us(8), us(11)),)
    line = Timeline("k", (replace(lane("a", 1, 4), others=others),), start_us=us(0), end_us=us(14))
    text = scene_text(Scene("t", "s", (line,)), 40)
    assert text.splitlines()[4] == "  a    ╺━━━━━━━          ───────╴"


def test_the_shortest_situation_is_seen() -> None:
    line = Timeline("k", (lane("a", 1, 1),), start_us=us(0), end_us=us(100_000))
    scene = Scene("t", "s", (line,))
    (mark, legend) = marks(drawn(scene), "ev-instant")
    assert mark.get("d") == legend.get("d") == "M-5 0L0 -8L5 0L0 8z"
    assert mark.get("data-at") == str(SECOND)
    text = scene_text(scene, 60)
    assert text.splitlines()[4].count("◆") == 1
    assert text.splitlines()[-1] == "◆ begins and ends at one instant"
    assert "* begins" in scene_text(scene, 60, ascii_only=True)
    short = Timeline("k", (lane("a", 1, 2),), start_us=us(0), end_us=us(100_000))
    (bar,) = marks(drawn(Scene("t", "s", (short,))), "ev-period")
    assert place(bar)[1] - place(bar)[0] >= 2


def test_what_pale_marks_mean_is_said() -> None:
    plain = Timeline("k", (lane("a", 1, 4),))
    assert "not known" not in draw_scene(Scene("t", "s", (plain,)))
    others = replace(plain, lanes=(replace(plain.lanes[0], others=(Bar(us(2), us(3)),)),))
    many = Timeline("k", (Lane("a", (Bar(us(0), us(9), 40),)),))
    for timeline, words in (
        (MATCH, "goes on, until when is not known"),
        (others, "of the same key, in other matches"),
        (many, "several, too close to be told apart"),
    ):
        said = draw_scene(Scene("t", "s", (timeline,)))
        assert f">{words}</text>" in said
        assert said.count("not known") == (timeline is MATCH)


def test_marks_say_when_they_are() -> None:
    """A page moves them by these numbers: they have to be those of the times."""
    root = drawn(SCENE)
    (line,) = marks(root, "ev-timeline")
    assert (line.get("data-start"), line.get("data-length")) == (str(us(0)), str(12 * SECOND))
    left, right = (float(root.get(f"data-{side}", "nan")) for side in ("left", "right"))
    times = [each for each in line.iter() if each.get("data-s")]
    assert len(times) == 3
    for each in times:
        end = each.get("data-e")
        until = right - 7 if end is None else left + int(end) / (12 * SECOND) * (right - left)
        start = left + int(each.get("data-s", "")) / (12 * SECOND) * (right - left)
        assert place(each)[0] == pytest.approx(start, abs=0.1)
        assert place(each)[1] == pytest.approx(until, abs=0.2)
    moments = [each for each in line.iter() if each.get("data-at")]
    assert {each.get("data-at") for each in moments} == {str(8 * SECOND)}


MATCHES = pa.table(
    {
        "car": ["a", "a", "b", None],
        "ts": at(12, 40, 75, 90),
        "top": [96.5, 88.0, None, 1.0],
        "held": pa.array([4 * SECOND, 90 * SECOND, None, 0], pa.duration("us")),
        "fast.start": at(5, 13, 66, 80),
        "fast.end": at(None, 39, 70, 85),
        "brake.start": at(9, 39, 73, 85),
        "brake.end": at(12, 45, None, 86),
    }
)
MEMBERS = [Member(name, f"{name}.start", f"{name}.end") for name in ("fast", "brake")]


def test_a_scene_from_rows() -> None:
    scene = scene_of_matches(MATCHES, ["car"], MEMBERS, ["top", "held"], most=3)
    assert scene.title == "Matches of fast, brake"
    assert scene.summary == "4 matches, 1970-01-01 08:00:12 to 08:01:30"
    assert scene.rest == "and 1 more match"
    first, second, third = scene.timelines
    assert (first.title, first.caption) == ("car a", "top 96.5, held 4 s")
    assert third.caption == "top null, held null"
    assert first.lanes[0].bars == (Bar(us(5), None),)
    assert [each.note for each in first.lanes] == ["7 s, goes on", "3 s"]
    # The other match of the same car knows of another fast; it starts within this picture.
    assert first.lanes[0].others == (Bar(us(13), us(39)),)
    assert second.lanes[0].others == (Bar(us(5), us(12)),)
    assert third.lanes[0].others == ()


def test_rows_may_be_none_and_keys_too() -> None:
    nothing = scene_of_matches(MATCHES.slice(0, 0), ["car"], MEMBERS, ["top"])
    assert (nothing.summary, nothing.timelines) == ("no matches", ())
    assert drawn(nothing) is not None
    whole = scene_of_matches(MATCHES, [], MEMBERS, [], relate=lambda bars: (f"{len(bars)} bars",))
    assert [each.title for each in whole.timelines][:2] == ["Match 1", "Match 2"]
    assert whole.timelines[0].relations == ("2 bars",)


def test_a_match_that_is_confirmed_is_one_match() -> None:
    rows = pa.table(
        {
            "car": ["a", None, "a", None, "b"],
            "ts": at(12, 12, 20, 21, 30),
            "top": [1.0, 2.0, 3.0, 4.0, 5.0],
            "confirmed": [False, False, True, True, False],
            "fast.start": at(5, 5, 5, 5, 25),
            "fast.end": at(None, 9, 20, 9, None),
            "brake.start": at(9, 9, 9, 9, 28),
            "brake.end": at(12, None, 12, 21, None),
        }
    )
    once = once_each(rows, ["car"], MEMBERS)
    assert once_each(rows.take([4, 3, 2, 1, 0]), ["car"], MEMBERS).num_rows == 3
    # The confirmed row, at the moment of the first.
    assert once["ts"].equals(pa.chunked_array([at(12, 12, 30)]))
    assert once["top"].to_pylist() == [3.0, 4.0, 5.0]
    scene = scene_of_matches(once, ["car"], MEMBERS, ["confirmed"], most=1)
    assert scene.summary.startswith("3 matches, ")
    assert scene.rest == "and 2 more matches"
    assert scene.timelines[0].lanes[0].bars == (Bar(us(5), us(20)),)
    assert once_each(rows.slice(0, 0), ["car"], MEMBERS).num_rows == 0


def test_the_first_matches_are_those_detected_first() -> None:
    rows = pa.table(
        {
            "car": ["c", "b", None, "a", "b"],
            "ts": at(30, 12, 12, 12, 12),
            "fast.start": at(20, 6, 5, 5, 5),
            "fast.end": at(25, 9, 9, 9, 9),
            "brake.start": at(24, 8, 8, 8, 8),
            "brake.end": at(None, None, None, None, None),
        }
    )
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 1, 3]):
        scene = scene_of_matches(rows.take(order), ["car"], MEMBERS, [], most=3)
        assert [each.title for each in scene.timelines] == ["car a", "car b", "car b"]
        starts = [each.lanes[0].bars[0].start_us for each in scene.timelines]
        assert starts == [us(5), us(5), us(6)]


@pytest.mark.parametrize("width", [50, 80, 120])
@pytest.mark.parametrize("seconds", [2.0, 0.02, 0.0002])
def test_short_periods_have_whole_clock_times(width: int, seconds: float) -> None:
    scene = Scene("t", "s", (Timeline("k", (lane("a", 0, seconds),)),))
    labels = scene_text(scene, width).splitlines()[-2].split()
    *said, _ = [each.text or "" for each in marks(drawn(scene), "ev-num")]
    assert len(labels) > 1
    assert len(said) > 1
    assert all(re.fullmatch(r"08:00:0\d(\.\d+)?", each) for each in (*labels, *said))


SITUATIONS = pa.table(
    {
        "car": ["a", "b", "a", "a"],
        "situation": ["fast", "brake", "brake", "fast"],
        "start_ts": at(0, 10, 20, 50),
        "end_ts": at(5, 12, 30, None),
        "top": [1.0, 2.0, 3.0, 4.0],
    }
)


def test_situations_by_key_over_one_axis() -> None:
    scene = scene_of_situations(SITUATIONS)
    assert scene.summary == "4 situations of 2 keys (car), 1970-01-01 08:00:00 to 08:00:50"
    a, b = scene.timelines
    assert a.period == b.period
    assert [each.name for each in a.lanes] == [each.name for each in b.lanes] == ["fast", "brake"]
    assert a.lanes[0].bars == (Bar(us(0), us(5)), Bar(us(50)))
    assert b.lanes[0].bars == ()
    assert draw_scene(scene).count("1 January 1970") == 1
    assert [each.title for each in scene_of_situations(SITUATIONS, by=[]).timelines] == [
        "All situations"
    ]
    assert scene_of_situations(SITUATIONS, most=1).rest == "and 1 more key"


def test_a_stored_stream_of_situations_has_its_own_keys() -> None:
    stored = SITUATIONS.add_column(0, "ts", at(5, 12, 30, 60)).add_column(
        1, "_seq", pa.array(range(4))
    )
    assert scene_of_situations(stored) == scene_of_situations(SITUATIONS)
    assert "(ts)" in scene_of_situations(stored, by=["ts"]).summary


def test_many_situations_become_what_can_be_seen() -> None:
    starts = np.arange(200_000) * 1_000
    times = pa.array(starts).cast(pa.timestamp("us"))
    ends = pa.array(starts + 500).cast(pa.timestamp("us"))
    table = pa.table({"situation": ["s"] * len(starts), "start_ts": times, "end_ts": ends})
    (line,) = scene_of_situations(table).timelines
    assert len(line.lanes[0].bars) == 1
    assert line.lanes[0].bars[0].count == 200_000
    assert "200,000 times" in line.lanes[0].note


def test_rows_that_cannot_be_drawn() -> None:
    with pytest.raises(SchemaError, match="no column start_ts, end_ts"):
        scene_of_situations(SITUATIONS.drop_columns(["start_ts", "end_ts"]))
    with pytest.raises(SchemaError, match="no column bus"):
        scene_of_situations(SITUATIONS, by=["bus"])
    with pytest.raises(ValueError, match="before it starts"):
        Bar(5, 4)


def test_a_picture_saves_itself(tmp_path: Path) -> None:
    picture = SituationPicture(SCENE, "FROM cars WITHIN 1 MINUTE")
    ElementTree.parse(picture.save(tmp_path / "m.svg"))
    page = picture.save(tmp_path / "m.html").read_text()
    assert '<b class="keyword">WITHIN</b>' in page
    assert page.count("Matches &amp; more") >= 2
    assert picture._repr_html_() == picture.svg()
    assert str(picture).startswith("Matches & more\n2 matches")
    with pytest.raises(PlanError, match="what to draw") as error:
        picture.save(tmp_path / "m.png")
    assert isinstance(error.value, EventideError)


def test_a_picture_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    picture = SituationPicture(SCENE)
    for path in (tmp_path / "no" / "x.svg", "a\0b.svg"):
        with pytest.raises(StoreError, match=r"cannot write|is not a path") as error:
            picture.save(path)
        assert error.value.hint is not None
    with pytest.raises(PlanError, match="not to int"):
        picture.save(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"])
@pytest.mark.parametrize("years", [0, 3_000])
def test_the_ends_of_time_can_be_drawn(ends: str, years: int) -> None:
    moment = np.datetime64(ends, "us")
    other = moment + np.timedelta64(365 * years * (1 if ends < "1" else -1), "D")
    first, last = sorted([moment, other])
    table = pa.table({"situation": ["a"], "start_ts": [first], "end_ts": [last]})
    for times in (table, table.set_column(2, "end_ts", pa.nulls(1, pa.timestamp("us")))):
        scene = scene_of_situations(times)
        ElementTree.fromstring(draw_scene(scene))
        assert scene_text(scene, 80)


def test_periods_that_cannot_be_are_refused() -> None:
    wrong = [
        {"start_ts": at(5, 6), "end_ts": at(7, 5)},
        {"start_ts": at(5, None), "end_ts": at(7, 8)},
        {"start_ts": ["x", "y"], "end_ts": at(7, 8)},
    ]
    for periods in wrong:
        with pytest.raises(SchemaError) as error:
            scene_of_situations(pa.table({"situation": ["a", "b"], **periods}))
        assert error.value.hint is not None


def test_no_situations_are_said_to_be_none() -> None:
    scene = scene_of_situations(SITUATIONS.slice(0, 0))
    assert scene_text(scene, 80) == "Situations\nno situations"
    ElementTree.fromstring(draw_scene(scene))
    assert "no situations" in SituationPicture(scene).html()


def test_one_key_may_be_a_name() -> None:
    key = SITUATIONS.column_names[0]
    assert scene_of_situations(SITUATIONS, by=key) == scene_of_situations(SITUATIONS, by=[key])


def test_rows_are_numbered_by_what_they_hold() -> None:
    random = np.random.default_rng(3)
    columns = [random.integers(0, 3_000, 20_000) for _ in range(3)]
    columns = [column // 1_000 if place == 2 else column for place, column in enumerate(columns)]
    numbers = row_numbers([pa.chunked_array([column]) for column in columns])
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert len(set(zip(rows, numbers.tolist(), strict=True))) == len(set(rows))
    assert len(set(numbers.tolist())) == len(set(rows))
    assert numbers.min() >= 0
    some = row_numbers([pa.chunked_array([[1, None, 1, None]]), pa.chunked_array([["a"] * 4])])
    assert some.tolist() == [0, 1, 0, 1]


def test_the_first_of_many_matches_are_those_of_all_in_order() -> None:
    random = np.random.default_rng(5)
    count = 500
    start = random.integers(0, 100, count) * SECOND
    times = {
        "ts": pa.array(start + random.integers(1, 9, count) * SECOND).cast(pa.timestamp("us")),
        "a": pa.array(start).cast(pa.timestamp("us")),
        "b": pa.array(start + 5 * SECOND).cast(pa.timestamp("us")),
    }
    table = pa.table({"k": random.integers(0, 3, count), **times})
    member = Member("a", "a", "b")
    few = scene_of_matches(table, ["k"], [member], [], most=7)
    everything = scene_of_matches(table, ["k"], [member], [], most=count)
    assert few.timelines == everything.timelines[:7]
    assert few.summary == everything.summary
    assert few.rest == "and 493 more matches"
