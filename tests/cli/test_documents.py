"""`eventide ingest` of XML documents."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from tests.cli.test_cli import run


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    folder = tmp_path / "posts"
    folder.mkdir()
    for day in (2, 1):
        text = f"<post><author>a{day}</author><at>2026-03-0{day}</at></post>"
        (folder / f"{day}.xml").write_text(text)
    return folder


def test_documents_become_a_stream(posts: Path, tmp_path: Path) -> None:
    db = tmp_path / "news.ev"
    done = run("ingest", posts, "--into", db, "--stream", "blog", "--ts", "//at")
    assert done.exit_code == 0, done.output
    assert "stored 2 events in blog" in done.output
    assert "it spans 2026-03-01 00:00:00 to 2026-03-02 00:00:00" in done.output
    again = run("ingest", posts / "1.xml", "--into", db, "--stream", "blog")
    assert again.exit_code == 0, again.output
    found = ev.open(db).sql("SELECT ts, a FROM XPATH (blog//author->a)").to_arrow()
    assert found.column("a").to_pylist() == ["a1", "a1", "a2"]


def test_all_documents_are_stored_or_none(posts: Path, tmp_path: Path) -> None:
    db, bad = tmp_path / "news.ev", tmp_path / "bad.xml"
    bad.write_text("<post>")
    done = run("ingest", posts, bad, "--into", db, "--stream", "blog")
    assert done.exit_code != 0
    assert "bad.xml: line 1, column 7: no element found" in done.output
    assert ev.open(db).streams() == ()
    table = pa.table({"ts": pa.array([0], pa.timestamp("us")), "document": [b"<post>"]})
    pq.write_table(table, tmp_path / "posts.parquet")
    ev.open(db).create_stream("blog", format="xml")
    done = run("ingest", tmp_path / "posts.parquet", "--into", db, "--stream", "blog")
    assert "posts.parquet, row 0: line 1, column 7" in done.output
    assert len(ev.open(db).stream("blog")) == 0


def test_what_is_asked_wrongly(posts: Path, tmp_path: Path) -> None:
    db = tmp_path / "news.ev"
    ev.open(db).create_stream("cars", {"car": "string"})
    ev.open(db).create_stream("blog", format="xml", time="//at")
    (tmp_path / "x.csv").write_text("ts,car\n")
    cases: dict[str, tuple[str | Path, ...]] = {
        "has events, no documents": (posts, "--stream", "cars"),
        "have //at": (posts, "--stream", "blog", "--ts", "//author"),
        "documents have no attributes": (posts, "--stream", "new", "--attribute", "a:string"),
        "XML documents and files of events": (posts, tmp_path / "x.csv", "--stream", "blog"),
        "not the path of a time": (posts, "--stream", "new", "--ts", "at"),
    }
    for says, arguments in cases.items():
        done = run("ingest", *arguments, "--into", db)
        assert done.exit_code != 0
        assert says in done.output
        assert "hint" in done.output
