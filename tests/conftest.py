"""Shared by all tests: one Spark session, started only if a test needs it, and fixed seeds."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
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
from tests.warm import python

# Where Python may write no byte code, each process that a test starts would compile all sources
# again, and pytest would rewrite all assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

EXAMPLES = 20
"""So many a property is tried with at most, unless one explores."""

# A change is judged by the same examples every time. To look for new ones, set EVENTIDE_EXPLORE.
# Neither may depend on a quick machine.
settings.register_profile("new", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True, max_examples=EXAMPLES)
settings.load_profile("new" if EXPLORING else "same")

# Most code of a short-lived JVM runs too seldom to be worth the second, better compiler: without
# it, Spark takes a quarter less of the processors that the other tests run on. And its memory is
# so small that one thread collects what is not used any more with less work than several.
SUBMITTED = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", SUBMITTED)

# Spark starts this instead of Python; a script's first line may name its interpreter.
WARM = Path(mkdtemp(prefix="eventide-tests-"), "python")
WARM.write_text(f"#!{sys.executable}\n" + Path(python.__file__).read_text())
WARM.chmod(0o755)
os.environ["PYSPARK_PYTHON"] = str(WARM)

ROOT = Path(__file__).parent.parent

KEPT = "_hypothesis_internal_use_settings"
"""Where hypothesis keeps the settings of a test."""

SPARK_BEGINS = 0.3
"""When this part of all files with tests has begun."""

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkInOneProcess(LoadGroupScheduling):  # type: ignore[misc]
    """Keeps what needs Spark in one of the two processes: a second session would only be slower.

    By name, for marks of groups do not reach the scheduler: pytest-xdist 3.8 writes them into a
    field that pytest 9.2 no longer reads (pytest-xdist issue 1386). The tests of a file stay
    together as well: they share what they have prepared, and the kernels they compile.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if "spark" in nodeid else nodeid.partition("::")[0]


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
    """Files from both ends in turn, and what needs Spark in their midst.

    In a new clone all kernels are compiled, once if nobody needs what another process is about to
    compile. So two processes begin far apart, and Spark, which runs Python in two more, begins
    when most kernels are there; early enough, though, not to be what everybody waits for.
    """
    on_spark = [item for item in items if "spark" in item.nodeid]
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        if "spark" not in item.nodeid:
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    # Doctests take no time: who is ready first runs them at the end.
    doctests = [files.pop(name) for name in list(files) if name.startswith("src/")]
    left, turns = list(files.values()), list[list[pytest.Item]]()
    while left:
        turns.append(left.pop(-(len(turns) % 2)))
    turns.insert(int(len(turns) * SPARK_BEGINS), on_spark)
    return list(chain.from_iterable(turns + doctests))


def pytest_collection_finish() -> None:
    """Let the collector not look again and again at thousands of tests, which stay anyway."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()
    shutil.rmtree(WARM.parent, ignore_errors=True)


@pytest.fixture(scope="module")
def uncollected() -> None:
    """Let the collector look at nothing else either: benchmarks run it whenever they time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session; while the JVM starts, a Python imports what all workers will need."""
    path = WARM.with_name(python.SOCKET)
    command = [sys.executable, "-m", "tests.warm.server", str(path)]
    # Spark's workers have this seed, and PySpark insists on it.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE)

    from eventide.engines.spark.session import local_session

    session = local_session("eventide-tests", cores=2)
    yield session
    session.stop()
    server.communicate()
    path.unlink()


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
