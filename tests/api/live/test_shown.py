"""A live query draws itself, and goes on being drawn until it is over or interrupted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import eventide as ev
from eventide.api.database import Database
from eventide.api.live.shown import drawn
from eventide.api.live.subscription import Subscription

FAST = "SELECT car, speed FROM cars WHERE speed > 70"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(tmp_path / "traffic.ev") as opened:
        opened.create_stream("cars", {"car": "string", "speed": "float64"})
        yield opened


def drive(db: Database, *speeds: float, start: int = 0) -> None:
    events = [{"ts": at, "car": "a", "speed": speed} for at, speed in enumerate(speeds, start)]
    db.stream("cars").append(events)


class FakeNotebook:
    """IPython's `display`, whose handles remember what they show."""

    def __init__(self) -> None:
        self.displays: list[list[str]] = []

    def display(self, query: Subscription, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        drawn = [query._repr_html_()]
        self.displays.append(drawn)
        return SimpleNamespace(update=lambda each: drawn.append(each._repr_html_()))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> FakeNotebook:
    fake = FakeNotebook()
    top, display = ModuleType("IPython"), ModuleType("IPython.display")
    top.get_ipython = lambda: fake  # type: ignore[attr-defined]
    display.display = fake.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", top)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return fake


def each_turn(monkeypatch: pytest.MonkeyPatch, *turns: Callable[[], object]) -> list[float]:
    """Do something instead of each wait between two drawings; return how long they would take."""
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        turns[len(waits) - 1]()

    monkeypatch.setattr(drawn, "sleep", sleep)
    return waits


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_query_is_drawn_with_its_newest_rows_first(db: Database) -> None:
    query = db.live("SELECT car, speed FROM cars WHERE speed < 100")
    drive(db, *range(40))
    html = query._repr_html_()
    assert "<code>SELECT car, speed FROM cars WHERE speed &lt; 100</code>" in html
    assert "running, 40 events, 39 rows, 39 of them wait" in html
    speeds = [int(cell) for cell in html_cells(html)[1::2]]
    assert speeds == list(range(38, 18, -1))


def html_cells(html: str) -> list[str]:
    return [part.split("</td>")[0] for part in html.split("<td>")[1:]]


def test_few_rows_are_kept_for_the_drawing(db: Database) -> None:
    query = db.subscribe(FAST)
    for at in range(100):
        drive(db, 80 + at, start=at)
    assert sum(map(len, query.newest)) == 20
    drive(db, *range(1000, 1100), start=100)
    (newest,) = query.newest
    assert (newest.first_row, len(newest)) == (179, 20)


def test_a_notebook_has_one_picture_that_changes(
    db: Database, notebook: FakeNotebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = db.live(FAST)
    waits = each_turn(
        monkeypatch, lambda: drive(db, 80, 0), lambda: drive(db, 90, 0, start=2), interrupt
    )
    query.show(every="250 ms")
    assert waits == [0.25] * 3
    ((none, one, two),) = notebook.displays
    assert (html_cells(none), html_cells(one)) == ([], ["a", "80"])
    assert html_cells(two) == ["a", "90", "a", "80"]
    assert query.status == "running"
    assert query.to_arrow().num_rows == 2


def test_a_durable_query_is_drawn_with_its_name(db: Database) -> None:
    html = db.live(FAST, name="fast")._repr_html_()
    assert "<b>fast</b> <code>SELECT car, speed FROM cars WHERE speed &gt; 70</code>" in html


def test_drawing_ends_with_the_query_and_shows_why(
    db: Database, notebook: FakeNotebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = db.live("SELECT CAST(speed AS BIGINT) AS s FROM cars")
    each_turn(monkeypatch, lambda: drive(db, 1e30, 0))
    query.show()
    assert "failed" in notebook.displays[0][-1]
    assert f"<pre>{str(query.failure).splitlines()[0]}" in notebook.displays[0][-1]


def test_a_terminal_gets_what_has_changed(
    db: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    query = db.live(FAST)
    each_turn(monkeypatch, lambda: drive(db, 80, 0), lambda: None, query.cancel)
    query.show()
    out = capsys.readouterr().out
    assert out.count(FAST) == 3
    assert out.count("running, 2 events, 1 row, 1 of them wait") == 1
    assert "finished, 2 events, 1 row" in out


def test_ipython_that_is_installed_but_does_not_run_draws_nothing(
    db: Database,
    notebook: FakeNotebook,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    query = db.live(FAST)
    each_turn(monkeypatch, query.cancel)
    query.show()
    assert notebook.displays == []
    assert FAST in capsys.readouterr().out
