"""A wheel has machine code only if it was asked for, and is named by what it runs on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import llvmlite
import numba
import pytest
from tools.hatch_hook import VARIABLE, ShippedKernels, tag_of


def hooked(folder: Path) -> dict[str, Any]:
    """Return what the hook makes of the data of a build."""
    data: dict[str, Any] = {"pure_python": True, "force_include": {}, "dependencies": []}
    hook: Any = ShippedKernels
    hook(str(folder), {}, None, None, str(folder), "wheel").initialize("standard", data)
    return data


def test_a_wheel_is_pure_unless_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    pure = {"pure_python": True, "force_include": {}, "dependencies": []}
    assert hooked(tmp_path) == pure


def test_the_folder_goes_into_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/made/here")
    data = hooked(tmp_path)
    assert data["pure_python"] is False
    assert data["force_include"] == {"/made/here": "eventide/kernels/machine_code/shipped"}
    assert data["dependencies"] == [
        f"numba=={numba.__version__}",
        f"llvmlite=={llvmlite.__version__}",
    ]


def test_the_tag_names_python_and_the_platform() -> None:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert tag_of("numba").startswith(f"{python}-{python}-")
    assert tag_of("numba").count("-") == 2
