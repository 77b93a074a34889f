"""A durable query runs in one process at a time, whatever becomes of the others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eventide.errors import BusyError
from tests.api.live.durable.numbered import PLAIN, Receiver, append, opened

OTHER = """
import sys, eventide as ev
query = ev.open(sys.argv[1]).subscribe("SELECT car, speed FROM cars", print, name="q")
print("ready", flush=True)
sys.stdin.readline()
"""
FORKED = """
import os, sys, warnings, eventide as ev
from eventide.errors import BusyError
from eventide.store.files import lock
from tests.api.live.durable.numbered import PLAIN, Receiver, append
warnings.simplefilter("ignore", DeprecationWarning)
db, received = ev.open(sys.argv[1]), Receiver()
query = db.subscribe(PLAIN, received, name="q")
append(db, 0, 3)
query.wait()
lock.WAIT_S = 0.1
child = os.fork()
if child == 0:
    try:
        db.subscribe(PLAIN, name="q")
    except BusyError:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0, "the child runs the query of its parent"
append(db, 3, 6)
query.wait()
assert len(received.whole()) == 5
"""
ORPHANED = """
import os, sys, warnings, eventide as ev
warnings.simplefilter("ignore", DeprecationWarning)
db = ev.open(sys.argv[1])
db.subscribe("SELECT car, speed FROM cars", print, name="q")
if os.fork() == 0:
    print("ready", flush=True)
    sys.stdin.readline()
os._exit(0)
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a lock."""
    monkeypatch.setattr("eventide.store.files.lock.WAIT_S", 0.1)


def child_of(code: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_query_that_runs_elsewhere_is_neither_run_nor_dropped(tmp_path: Path) -> None:
    db = opened(tmp_path)
    with child_of(OTHER, tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        with pytest.raises(BusyError, match=f"q runs already, in process {child.pid}"):
            db.subscribe(PLAIN, name="q")
        with pytest.raises(BusyError, match=f"q runs already, in process {child.pid}"):
            db.drop_query("q")
        (kept,) = db.kept_queries()
        assert (kept.running, kept.process) == (True, f"process {child.pid}")
        child.communicate(b"end\n")
    assert child.returncode == 0
    append(db, 0, 3)
    received = Receiver()
    db.subscribe(PLAIN, received, name="q").wait()
    assert len(received.whole()) == 2
    db.drop_query("q")
    assert db.kept_queries() == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_does_not_free_the_query_of_its_parent(tmp_path: Path) -> None:
    opened(tmp_path)
    command = [sys.executable, "-c", FORKED, str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_does_not_hold_the_query_of_its_dead_parent(tmp_path: Path) -> None:
    db = opened(tmp_path)
    with child_of(ORPHANED, tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.wait()
        db.subscribe(PLAIN, name="q").cancel()
        assert child.stdin is not None
        child.stdin.close()
