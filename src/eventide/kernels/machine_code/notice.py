"""A line on the terminal while kernels are compiled: otherwise it would look like a hang."""

from __future__ import annotations

import sys
from collections import defaultdict
from threading import Timer
from time import monotonic

from numba.core.event import Event, Listener, register

PATIENCE_SECONDS = 1.0
SUBJECTS = {
    "aggregates": "aggregates",
    "groups": "aggregates",
    "joins": "joins",
    "lifetimes": "windows",
    "panes": "windows",
    "patterns": "the pattern matcher",
    "situations": "the matcher of situations",
    "store": "the encodings of the store",
}
"""What the kernels of a folder are for."""


class CompilationNotice(Listener):
    """Says what is compiled once it has taken a second, and only to a terminal."""

    def __init__(self) -> None:
        self.depth = 0
        self.began = 0.0
        self.timer: Timer | None = None
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.said = set[str]()

    def on_start(self, event: Event) -> None:
        """Hear that a function is going to be compiled: it was not found on disk."""
        subject = subject_of(event)
        if subject is None:
            return
        self.depth += 1
        if self.depth > 1 or subject in self.said:
            return
        self.began = monotonic()
        patience = max(0.0, PATIENCE_SECONDS - self.seconds[subject])
        self.timer = Timer(patience, self.say, [subject])
        self.timer.daemon = True
        self.timer.start()

    def on_end(self, event: Event) -> None:
        """Hear that it has been compiled."""
        subject = subject_of(event)
        if subject is None:
            return
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.seconds[subject] += monotonic() - self.began

    def say(self, subject: str) -> None:
        """Write the line, once for each subject."""
        self.said.add(subject)
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(f"compiling {subject}, once on this machine …\n")
            sys.stderr.flush()


def subject_of(event: Event) -> str | None:
    """Return what a kernel is for, None for functions of others."""
    path = event.data["dispatcher"].py_func.__module__.split(".")
    if path[:2] != ["eventide", "kernels"]:
        return None
    return SUBJECTS.get(path[2], "kernels")


NOTICE = CompilationNotice()


def tell() -> None:
    """Say from now on what is compiled."""
    register("numba:compile", NOTICE)


def keep_quiet() -> None:
    """Say nothing in this process: another one shows how far it is."""
    NOTICE.said.update(SUBJECTS.values(), {"kernels"})
