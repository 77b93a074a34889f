"""The set-up that `make` runs: its messages if something is missing. Nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parent.parent / "setup.sh"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with what a shell script needs, and no Java; not root."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("sh", "sed", "head", "grep"):
        (folder / name).symlink_to(str(shutil.which(name)))
    fake(folder, "python3", f'exec "{sys.executable}" "$@"')
    fake(folder, "id", "echo 1000")
    return folder


def fake(tools: Path, name: str, body: str) -> None:
    (tools / name).unlink(missing_ok=True)  # never write through a link to the real tool
    (tools / name).write_text(f"#!/bin/sh\n{body}\n")
    (tools / name).chmod(0o755)


def set_up(tools: Path, venv: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(tools), "HOME": os.environ.get("HOME", "/"), **variables}
    command = [str(tools / "sh"), str(SETUP), str(venv)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("java", [None, "11.0.2", "1.8.0_292"])
def test_without_java_17_one_sentence_says_how_to_get_it(
    tools: Path, tmp_path: Path, java: str | None
) -> None:
    if java is not None:
        fake(tools, "java", f"echo 'openjdk version \"{java}\"' >&2")
    result = set_up(tools, tmp_path / "venv")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "apt-get install openjdk-17-jre-headless" in result.stderr
    assert not (tmp_path / "venv").exists()


def test_java_that_root_cannot_install_ends_the_set_up(tools: Path, tmp_path: Path) -> None:
    fake(tools, "id", "echo 0")
    fake(tools, "apt-get", "exit 100")
    result = set_up(tools, tmp_path / "venv")
    assert result.returncode == 1
    assert "install a JDK 17 by hand" in result.stderr
    assert not (tmp_path / "venv").exists()


def test_an_old_python_is_refused(tools: Path, tmp_path: Path) -> None:
    fake(tools, "python3.9", "exit 1")
    result = set_up(tools, tmp_path / "venv", PYTHON="python3.9")
    assert result.returncode == 1
    assert "Python 3.11 or newer" in result.stderr


@pytest.mark.parametrize(
    ("home", "call"), [("venv", "pip"), ("other", "-m venv --clear"), ("", "-m venv")]
)
def test_an_environment_from_another_folder_is_made_anew(
    tools: Path, tmp_path: Path, home: str, call: str
) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    if home:
        (venv / "pyvenv.cfg").touch()
    # Stands for pip: notes what it was asked, and fails, so that nothing is installed.
    fake(
        venv / "bin", "pip", f"# {tmp_path / home}/bin/python\necho pip >> {tmp_path}/calls; exit 1"
    )
    fake(tools, "java", "echo 'openjdk version \"17.0.1\"' >&2")
    fake(tools, "python3", f'[ "$1" = -c ] || {{ echo "$@" >> {tmp_path}/calls; exit 1; }}')
    assert set_up(tools, venv).returncode == 1
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [call if call == "pip" else f"{call} {venv}"]
