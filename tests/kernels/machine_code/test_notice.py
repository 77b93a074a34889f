"""A line says that something is compiled, if it takes long and somebody sees it."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
from numba.core.event import Event, EventStatus

from eventide.kernels.machine_code import notice
from eventide.kernels.machine_code.notice import CompilationNotice

LINE = "compiling the pattern matcher, once on this machine …\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def event(module: str) -> Event:
    """Return what numba says of a function that it compiles."""
    function = SimpleNamespace(__module__=module)
    return Event(
        "numba:compile", EventStatus.START, {"dispatcher": SimpleNamespace(py_func=function)}
    )


PATTERNS = event("eventide.kernels.patterns.search")


def heard(
    monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, patience: float, what: Event = PATTERNS
) -> str:
    """Return what is said while two kernels are compiled, one of them inside of another."""
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(notice, "PATIENCE_SECONDS", patience)
    listener = CompilationNotice()
    for _ in range(2):
        listener.on_start(what)
        timer = listener.timer
        listener.on_start(what)
        listener.on_end(what)
        if patience == 0 and timer is not None:
            timer.join()
        listener.on_end(what)
    assert listener.depth == 0
    assert listener.timer is None
    return stderr.getvalue()


def test_it_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heard(monkeypatch, Terminal(), 0) == LINE


def test_what_is_soon_compiled_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heard(monkeypatch, Terminal(), 3600) == ""


def test_nothing_is_written_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heard(monkeypatch, io.StringIO(), 0) == ""


def test_functions_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heard(monkeypatch, Terminal(), 0, event("somewhere.else")) == ""
