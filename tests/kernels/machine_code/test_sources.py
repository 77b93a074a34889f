"""Code is as old as the newest source that it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.kernels.machine_code import sources


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sources, "KERNELS", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "first.py").write_text("from eventide.kernels.second import piece\n")
    (tmp_path / "second.py").write_text("from eventide.kernels.room import deep\n")
    (tmp_path / "room" / "deep.py").write_text("import numpy\n")
    (tmp_path / "other.py").write_text("import eventide.kernels.machine_code.cache\n")
    return tmp_path


def digest(module: str) -> bytes:
    sources._reachable.cache_clear()
    sources._source.cache_clear()
    return sources.sources_digest(f"eventide.kernels.{module}")


@pytest.mark.parametrize("changed", ["first.py", "second.py", "room/deep.py"])
def test_a_change_of_what_is_imported_is_a_change(kernels: Path, changed: str) -> None:
    before = digest("first"), digest("other")
    with (kernels / changed).open("a") as file:
        file.write("# changed\n")
    assert digest("first") != before[0]
    assert digest("other") == before[1]


def test_sources_that_cannot_be_read_have_no_digest(kernels: Path) -> None:
    (kernels / "second.py").unlink()
    with pytest.raises(OSError, match="second"):
        digest("first")
