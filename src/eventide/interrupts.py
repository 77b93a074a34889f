"""Make Ctrl-C work at once, even while compiled code is running.

Python handles signals between two steps of the main thread, never inside a kernel, a sort or a
query of DuckDB. So work that may take long runs in another thread, while the main thread waits and
can be interrupted at any time.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # CPython has it, typeshed not
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import wraps
from queue import SimpleQueue
from types import FrameType
from typing import Any, Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

# `_signal` sets handlers as `signal` does, which also looks each of them up among its constants:
# that takes longer than all the rest, and every append waits for it twice.

GRACE_S = 0.3
"""How long an interrupt waits for the work to stop, so that usually nothing goes on after it."""


SORTED_AT_ONCE = 1 << 20
STEPPED_AT_ONCE = 10_000
"""How many rows are sorted, or are taken in one step of a live query, without a thread."""


class Interrupted(SystemExit):
    """Raised in the thread that does the work, which ends silently."""


def interruptible(work: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Let Ctrl-C end a call within a second.

    The work stops at the end of the kernel it is in, and its result is dropped. So this is for
    calls that change nothing but what they return, or whose changes are dropped too.
    """

    @wraps(work)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        if threading.current_thread() is not threading.main_thread():
            return work(*args, **kwargs)  # signals reach the main thread only
        return Task(lambda: work(*args, **kwargs)).result()

    return call


def interruptible_if_long(
    work: Callable[Arguments, Returned], rows: int, at_once: int
) -> Callable[Arguments, Returned]:
    """Let Ctrl-C end a call over more than `at_once` rows; for fewer a thread costs too much."""
    return interruptible(work) if rows > at_once else work


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let the first Ctrl-C wait until the block is done; a second one ends it at once.

    For work that leaves something half changed if it stops in the midst.
    """
    handler = _signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(handler) or isinstance(handler, WaitingInterrupt):
        yield
        return
    waiting = WaitingInterrupt(handler)
    try:
        _signal.signal(signal.SIGINT, waiting)
        yield
    finally:
        _signal.signal(signal.SIGINT, handler)
        if waiting.came is not None:
            handler(*waiting.came)


class WaitingInterrupt:
    """Remembers the first interrupt, and hands the second one over."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self.handler = handler
        self.came: tuple[int, FrameType | None] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Take an interrupt."""
        if self.came is not None:
            self.came = None
            self.handler(number, frame)
        else:
            self.came = (number, frame)


class Task(Generic[Returned]):
    """Work that a worker does."""

    def __init__(self, work: Callable[[], Returned]) -> None:
        self.work = work
        self.context = copy_context()
        self.done = threading.Event()
        self.returned: Returned | None = None
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Do the work, and signal when it is done."""
        try:
            self.returned = self.context.run(self.work)
        except BaseException as failure:
            self.failure = failure
        finally:
            self.done.set()

    def result(self) -> Returned:
        """Return the result of the work, or raise its error; stop it if interrupted."""
        worker = idle_worker()
        if worker is None:
            return self.work()
        try:
            worker.tasks.put(self)
            self.done.wait()
        except BaseException:
            worker.stop(self)
            raise
        _idle.append(worker)
        if self.failure is not None:
            try:
                raise self.failure
            finally:
                # Or the traceback keeps this frame alive, and the frame the traceback.
                self.failure = None
        return self.returned  # type: ignore[return-value]


class Worker:
    """A thread that does tasks, one after another.

    To begin a thread takes as long as a small query, so it is kept for the next one.
    """

    def __init__(self) -> None:
        self.tasks: SimpleQueue[Task[Any] | None] = SimpleQueue()
        # A daemon: a program that was interrupted may end while a kernel still runs.
        self.thread = threading.Thread(target=self.serve, name="eventide query", daemon=True)
        self.thread.start()

    def serve(self) -> None:
        """Do what is given until there is nothing more to come; keep nothing of it."""
        while (task := self.tasks.get()) is not None:
            task.run()
            del task

    def stop(self, task: Task[Any]) -> None:
        """Make the thread raise `Interrupted` as soon as it is back in Python, and let go of it."""
        self.tasks.put(None)
        if self.thread.ident is not None and not task.done.is_set():
            thread = ctypes.c_ulong(self.thread.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Interrupted))
            task.done.wait(GRACE_S)


_idle: list[Worker] = []
"""Workers that wait for a task: one, but where a signal handler asked for more."""
# A child has none of the threads of its parent.
os.register_at_fork(after_in_child=_idle.clear)


def idle_worker() -> Worker | None:
    """Return a worker that has nothing to do, or None while the interpreter ends."""
    if sys.is_finalizing():
        return None
    try:
        return _idle.pop() if _idle else Worker()
    except RuntimeError:
        return None  # no thread can be started any more
