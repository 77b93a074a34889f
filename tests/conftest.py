"""Shared by all tests: one Spark session, started only if a test needs it, and fixed seeds."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest
from hypothesis import is_hypothesis_test, settings
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

from tests.exploring import EXPLORING
from tests.warm import java, python

# Where Python may write no byte code, each process that a test starts would compile all sources
# again, and pytest would rewrite all assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

EXAMPLES = 12
"""So many a property is tried with at most, unless one explores."""

# A change is judged by the same examples every time. To look for new ones, set EVENTIDE_EXPLORE.
# Neither may depend on a quick machine.
settings.register_profile("new", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True, max_examples=EXAMPLES)
settings.load_profile("new" if EXPLORING else "same")

os.environ.setdefault("PYSPARK_SUBMIT_ARGS", java.SUBMITTED)

# Spark starts this instead of Python; a script's first line may name its interpreter.
WARM = Path(mkdtemp(prefix="eventide-tests-"), "python")
WARM.write_text(f"#!{sys.executable}\n" + Path(python.__file__).read_text())
WARM.chmod(0o755)
os.environ["PYSPARK_PYTHON"] = str(WARM)

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30
"""So many bytes are more than enough for the files of all tests."""


def has_room(folder: Path) -> bool:
    """Whether files of tests can be there, programs among them."""
    if not os.access(folder, os.W_OK):
        return False
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize >= ROOM and not system.f_flag & os.ST_NOEXEC


IN_MEMORY = None
"""The folder for all files, made by the process that starts the others."""

if "TMPDIR" not in os.environ and has_room(MEMORY):
    # No test can see whether a disk has kept what was synced, but every sync waits for it.
    IN_MEMORY = mkdtemp(prefix="ev-", dir=MEMORY)
    os.environ["TMPDIR"] = tempfile.tempdir = IN_MEMORY
os.environ.setdefault("SPARK_LOCAL_DIRS", tempfile.gettempdir())

ROOT = Path(__file__).parent.parent

KEPT = "_hypothesis_internal_use_settings"
"""Where hypothesis keeps the settings of a test."""

OWN_SESSION = "test_connect.py"
"""A file whose tests start a Spark of their own."""

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def shares_session(nodeid: str) -> bool:
    """Whether a test may need the session of Spark, or runs with those that do."""
    return "spark" in nodeid and OWN_SESSION not in nodeid


class SparkInOneProcess(LoadGroupScheduling):  # type: ignore[misc]
    """Keeps what needs Spark in one of the two processes: a second session would only be slower.

    By name, for marks of groups do not reach the scheduler: pytest-xdist 3.8 writes them into a
    field that pytest 9.2 no longer reads (pytest-xdist issue 1386). The tests of a file stay
    together as well: they share what they have prepared, and the kernels they compile.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if shares_session(nodeid) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer | None
) -> LoadGroupScheduling | None:
    return SparkInOneProcess(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Check that what needs Spark says so in its name, and put tests in the order to run them."""
    for item in items:
        needs_fixture = "spark" in getattr(item, "fixturenames", ())
        needs_spark = needs_fixture or item.get_closest_marker("spark") is not None
        if needs_spark and "spark" not in item.nodeid:
            message = f"{item.nodeid} needs Spark: its name has to say so"
            raise pytest.UsageError(message)
        if not EXPLORING:
            draw_few_examples(item)
    items[:] = in_order_to_run(items)


def draw_few_examples(item: pytest.Item) -> None:
    """Let a property be tried with few examples, however many its test asks for."""
    test = getattr(item, "obj", None)
    asked = getattr(test, KEPT, None) if is_hypothesis_test(test) else None
    if asked is not None and asked.max_examples > EXAMPLES:
        setattr(getattr(test, "__func__", test), KEPT, settings(asked, max_examples=EXAMPLES))


def in_order_to_run(items: list[pytest.Item]) -> list[pytest.Item]:
    """What needs Spark, and then files from both ends in turn.

    Spark's tests wait for each other, so they are what everybody waits for unless they begin first.
    Where kernels are not there yet, each is compiled once if nobody needs what another process is
    about to compile: files that are far apart need different ones.
    """
    on_spark = [item for item in items if shares_session(item.nodeid)]
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not shares_session(item.nodeid):
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    # Doctests take no time: who is ready first runs them at the end.
    doctests = [files.pop(name) for name in list(files) if name.startswith("src/")]
    left, turns = list(files.values()), [on_spark]
    while left:
        turns.append(left.pop(-(len(turns) % 2)))
    return list(chain.from_iterable(turns + doctests))


def pytest_collection_finish() -> None:
    """Let the collector not look again and again at thousands of tests, which stay anyway."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    """Give the memory back, unless somebody wants to see what a failed test has written."""
    if IN_MEMORY is not None and exitstatus != pytest.ExitCode.TESTS_FAILED:
        shutil.rmtree(IN_MEMORY, ignore_errors=True)


def pytest_unconfigure() -> None:
    gc.unfreeze()
    shutil.rmtree(WARM.parent, ignore_errors=True)


@pytest.fixture(scope="module")
def uncollected() -> None:
    """Let the collector look at nothing else either: benchmarks run it whenever they time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def warm_python() -> Iterator[None]:
    """A Python that imports what all workers of Spark will need, while the JVM starts."""
    path = WARM.with_name(python.SOCKET)
    command = [sys.executable, "-m", "tests.warm.server", str(path)]
    # Spark's workers have this seed, and PySpark insists on it.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE)
    yield
    server.communicate()
    path.unlink()


@pytest.fixture(scope="session")
def spark(warm_python: None) -> Iterator[SparkSession]:  # noqa: ARG001
    """One session for all tests."""
    from eventide.engines.spark.session import local_session

    session = local_session("eventide-tests", cores=2)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_live_queries_are_left() -> Iterator[None]:
    """End what a test leaves running, so that the next one has the machine for itself."""
    yield
    if "eventide.api.live.follower" in sys.modules:
        for followed in list(sys.modules["eventide.api.live.follower"].FOLLOWER.followed):
            for query in followed.subscriptions():
                query.cancel()


@pytest.fixture(autouse=True)
def no_function_is_left() -> None:
    """Forget what other tests have registered: hints name and count the functions there are."""
    if "eventide.plan.user_functions" in sys.modules:
        registered = sys.modules["eventide.plan.user_functions"].REGISTERED
        registered.functions.clear()
        registered.changes += 1
