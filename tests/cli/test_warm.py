"""`eventide warm` from a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.kernels.machine_code import cache, warming
from tests.cli.test_cli import run

LINE = "hashing.spread_words: readonly array(uint64, 1d, C), array(uint64, 1d, C)\n"


@pytest.fixture(autouse=True)
def one_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one kernel be listed."""
    (tmp_path / "listed.txt").write_text(LINE)
    monkeypatch.setattr(warming, "LISTED", tmp_path / "listed.txt")


def keep_code_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep code in another folder, here and in new processes."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    monkeypatch.setattr(cache, "folders", lambda: [folder / "eventide"])


def test_what_is_listed_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_code_in(tmp_path / "kept", monkeypatch)
    first = run("warm")
    assert first.exit_code == 0, first.stderr
    assert first.stderr.startswith("compiled 1 kernel in ")
    (path,) = (tmp_path / "kept" / "eventide").iterdir()
    assert path.name.startswith("hashing.spread_words.")
    assert run("warm").stderr == "all kernels are compiled\n"


def test_code_that_cannot_be_kept_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    keep_code_in(tmp_path / "file", monkeypatch)
    monkeypatch.setattr(warming, "compile_kernels", lambda *_: None)
    result = run("warm")
    assert result.exit_code == 1
    assert "cannot store machine code in" in result.stderr
    assert "hint: set NUMBA_CACHE_DIR" in result.stderr
