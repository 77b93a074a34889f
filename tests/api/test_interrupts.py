"""Ctrl-C ends a call at once, even while compiled code runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

from eventide.interrupts import Interrupted, interruptible

# Each would take days. The child says when it has begun, and how it ended.
FOREVER = {
    "a kernel": """
from eventide.kernels.compiled import kernel

@kernel
def count(turns: int) -> int:
    found = 0
    for turn in range(turns):
        found = (found * 31 + turn) % 1_000_003
    return found

count(1)
work = lambda: interruptible(count)(1 << 60)
""",
    "DuckDB": """
import eventide as ev
table = [{"ts": ts, "v": ts} for ts in range(3000)]
text = "SELECT SUM(a.v * b.v % (c.v + d.v + 1)) AS n FROM t a, t b, t c, t d WHERE a.v < c.v * d.v"
work = lambda: ev.sql(text, t=table)
""",
    "a pattern": """
import eventide as ev
table = [{"ts": ts, "v": 1} for ts in range(300)]
text = '''SELECT COUNT(*) AS n FROM t MATCH_RECOGNIZE (MEASURES COUNT(*) AS n
    PATTERN (A+ B+ C+ D) WITHIN 1 HOUR STRATEGY skip_till_any
    DEFINE D AS v < 0 AND SUM(A.v) > SUM(B.v) + SUM(C.v))'''
work = lambda: ev.sql(text, t=table)
""",
}
CHILD = """
import os, sys
from eventide.interrupts import interruptible
{}
try:
    print("begun", flush=True)
    work()
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.parametrize("name", FOREVER)
def test_ctrl_c_is_obeyed(name: str) -> None:
    command = [sys.executable, "-c", CHILD.format(FOREVER[name])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "begun\n"
            time.sleep(0.5)  # most often it is in the midst of it by then; any time will do
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
        finally:
            child.kill()


def test_a_call_returns_and_raises_as_ever() -> None:
    def divide(number: int, by: int = 1) -> float:
        return number / by

    call = interruptible(divide)
    assert call(6, by=3) == 2
    assert call.__name__ == "divide"
    with pytest.raises(ZeroDivisionError):
        call(6, by=0)


def test_calls_within_calls_and_in_threads_run_where_they_are() -> None:
    def here() -> int:
        return threading.get_ident()

    def outer() -> bool:
        return interruptible(here)() == here()

    assert interruptible(outer)()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(outer()))
    thread.start()
    thread.join()
    assert found == [True]


def test_calls_from_the_main_thread_share_one_other_thread() -> None:
    one, another = (interruptible(threading.current_thread)() for _ in range(2))
    assert one is another is not threading.main_thread()


def test_nothing_of_a_call_is_kept_for_the_next_one() -> None:
    class Rows:
        """What can be watched."""

    given = Rows()
    returned = interruptible(lambda rows: rows)(given)
    kept = weakref.ref(given)
    del given, returned
    # The thread lets go of it when it waits again.
    while kept() is not None:
        time.sleep(0.001)


def test_a_call_within_an_interrupt_has_a_thread_of_its_own() -> None:
    """A handler may ask while the main thread waits for the answer before."""
    asked: list[bool] = []
    found: list[int] = []

    def ask(*_: object) -> None:
        if not asked:
            asked.append(True)
            found.append(interruptible(threading.get_ident)())

    def work() -> int:
        while not found:
            # One that comes just before the main thread waits is not looked at.
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.001)
        return threading.get_ident()

    before = signal.signal(signal.SIGUSR1, ask)
    try:
        assert interruptible(work)() != found[0]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_what_is_interrupted_stops_and_the_next_call_runs() -> None:
    stopped = threading.Event()

    came = threading.Event()

    def interrupt(*_: object) -> None:
        if not came.is_set():
            came.set()
            raise KeyboardInterrupt

    def endless() -> None:
        try:
            while True:
                if not came.is_set():
                    os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0.001)
        except Interrupted:
            stopped.set()
            raise

    # SIGINT itself is what processes that run tests may ignore.
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(endless)()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert stopped.wait(600)
    assert interruptible(lambda: 7)() == 7


def test_a_child_of_a_fork_has_a_thread_of_its_own() -> None:
    assert interruptible(lambda: 7)() == 7
    child = os.fork()
    if child == 0:
        os._exit(interruptible(lambda: 7)())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
