"""Machine code comes from disk where it fits, and is compiled where it does not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from numba import types
from numba.core.event import install_recorder
from numba.core.registry import cpu_target

from eventide.kernels.compiled import frozen, kernel
from eventide.kernels.hashing import spread_words
from eventide.kernels.machine_code import cache, shipped

SIGNATURE = (types.Array(types.uint64, 1, "C", readonly=True), types.Array(types.uint64, 1, "C"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that code is kept in, and let nothing be shipped."""
    kept = tmp_path / "kept"
    monkeypatch.setattr(cache, "folders", lambda: [kept])
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path / "shipped")
    shipped.shipped_level.cache_clear()
    return kept


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    shipped.shipped_level.cache_clear()


def split_mix(state: int) -> int:
    """Return the next value of SplitMix64."""
    word = (state + 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def compiled_functions() -> int:
    """Return how many functions are compiled when a process calls a kernel for the first time."""
    fresh: Callable[..., Any] = kernel(spread_words.py_func)  # type: ignore[attr-defined]
    words, out = np.array([1, 2, 3], np.uint64), np.zeros(3, np.uint64)
    with install_recorder("numba:compile") as recorder:
        fresh(frozen(words), out)
    assert out.tolist() == [split_mix(int(word)) for word in words]
    return sum(event.is_start for _, event in recorder.buffer)


def only_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_code_is_compiled_once_and_then_loaded(folder: Path) -> None:
    assert compiled_functions() == 1
    assert only_file(folder).name.startswith("hashing.spread_words.py3")
    assert compiled_functions() == 0


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(lambda stored: stored[:0], id="empty"),
        pytest.param(lambda stored: stored[: len(stored) // 2], id="cut"),
        pytest.param(lambda stored: stored[:999] + b"x" + stored[1000:], id="changed"),
    ],
)
def test_damaged_code_is_compiled_again(folder: Path, damaged: Callable[[bytes], bytes]) -> None:
    compiled_functions()
    path = only_file(folder)
    stored = path.read_bytes()
    assert damaged(stored) != stored
    path.write_bytes(damaged(stored))
    assert compiled_functions() == 1
    assert compiled_functions() == 0


def test_code_that_cannot_be_loaded_is_compiled_again(folder: Path) -> None:
    compiled_functions()
    cache.write_checked(only_file(folder), b"types\nno pickle")
    assert compiled_functions() == 1
    assert compiled_functions() == 0


def test_code_from_other_sources_is_compiled_again_and_forgotten_when_old(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_functions()
    before = only_file(folder)
    stamp = cache._stamp
    monkeypatch.setattr(cache, "_stamp", lambda _: "0" * 16)
    assert compiled_functions() == 1
    # Two checkouts that share a folder leave each other's code alone.
    monkeypatch.setattr(cache, "_stamp", stamp)
    assert compiled_functions() == 0
    long_ago = before.stat().st_mtime - cache.STALE_S
    os.utime(before, (long_ago, long_ago))
    monkeypatch.setattr(cache, "_stamp", lambda _: "1" * 16)
    assert compiled_functions() == 1
    assert not before.exists()
    assert len(list(folder.iterdir())) == 2


def test_without_a_folder_to_write_to_kernels_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cache, "folders", lambda: [tmp_path / "file" / "folder"])
    assert compiled_functions() == 1


def test_the_next_folder_takes_what_the_first_cannot(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cache, "folders", lambda: [tmp_path / "file" / "folder", folder])
    assert compiled_functions() == 1
    assert only_file(folder).exists()
    assert compiled_functions() == 0


def ship(folder: Path, level: str) -> Path:
    """Compile a kernel, and put it where a wheel would have put it."""
    compiled_functions()
    triple = cpu_target.target_context.codegen().magic_tuple()[0]
    name = cache.KernelCache(spread_words).file_name(SIGNATURE, (triple, level, ""))
    assert name is not None
    target = shipped.SHIPPED / level / name
    target.parent.mkdir(parents=True)
    only_file(folder).rename(target)
    shipped.shipped_level.cache_clear()
    return target


@pytest.mark.usefixtures("levels_of_x86")
def test_shipped_code_is_loaded(folder: Path) -> None:
    ship(folder, "x86-64-v3")
    assert compiled_functions() == 0
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("levels_of_x86")
def test_damaged_code_that_was_shipped_is_compiled(folder: Path) -> None:
    path = ship(folder, "x86-64-v3")
    path.write_bytes(path.read_bytes()[:-1])
    assert compiled_functions() == 1
    assert compiled_functions() == 0


@pytest.mark.usefixtures("levels_of_x86")
def test_code_shipped_for_other_sources_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(folder, "x86-64-v3")
    monkeypatch.setattr(cache, "_stamp", lambda _: "0" * 16)
    assert compiled_functions() == 1


@pytest.fixture
def levels_of_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this be a machine of the third level."""
    monkeypatch.setattr(shipped, "levels", lambda: shipped.LEVELS["x86_64"])
    features = dict.fromkeys(shipped.LEVELS["x86_64"]["x86-64-v3"], True)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: features)


@pytest.mark.usefixtures("levels_of_x86", "folder")
@pytest.mark.parametrize(
    ("brought", "lacking", "taken"),
    [
        ({"x86-64-v3", "x86-64-v4"}, set(), "x86-64-v3"),
        ({"x86-64-v4"}, set(), None),
        ({"x86-64-v3"}, {"avx2"}, None),
        (set(), set(), None),
    ],
)
def test_the_best_level_that_the_cpu_has_is_taken(
    brought: set[str], lacking: set[str], taken: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for level in brought:
        (shipped.SHIPPED / level).mkdir(parents=True)
    has = binding.get_host_cpu_features()
    monkeypatch.setattr(
        binding, "get_host_cpu_features", lambda: {**has, **dict.fromkeys(lacking, False)}
    )
    assert shipped.shipped_level() == taken


@pytest.mark.usefixtures("folder")
def test_a_cpu_of_the_fourth_level_takes_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "levels", lambda: shipped.LEVELS["x86_64"])
    features = dict.fromkeys(shipped.LEVELS["x86_64"]["x86-64-v4"], True)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: features)
    for level in shipped.levels():
        (shipped.SHIPPED / level).mkdir(parents=True)
    assert shipped.shipped_level() == "x86-64-v4"
