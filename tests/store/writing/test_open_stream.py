"""Streams of a process: those written to long ago have no files open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import eventide as ev
from eventide.store.writing import open_stream


def files_open_below(folder: Path) -> int:
    links = (Path("/proc/self/fd", number) for number in os.listdir("/proc/self/fd"))  # noqa: PTH208
    return sum(str(link.readlink()).startswith(str(folder)) for link in links if link.is_symlink())


def test_many_streams_keep_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_stream, "WRITTEN", {})
    monkeypatch.setattr(open_stream, "MOST_WRITTEN", 4)
    db = ev.open(tmp_path / "db")
    streams = [db.create_stream(f"s{number}", {"x": "int64"}) for number in range(20)]
    for turn in range(3):
        for stream in streams:
            stream.append([{"ts": turn, "x": turn}])
            assert files_open_below(tmp_path) <= 4 * 3
    # A stream whose files were closed goes on where it was.
    assert [len(db.sql(f"SELECT x FROM {stream.name}")) for stream in streams] == [3] * 20
    streams[0].append([{"ts": 9, "x": 9}])
    assert db.sql("SELECT MAX(x) AS x FROM s0").rows() == [{"x": 9}]
