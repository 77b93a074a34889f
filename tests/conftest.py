"""What all tests share: one Spark session, started only if a test needs it, and the same draws."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

# A change is judged by the same examples every time. To look for new ones, set EVENTIDE_EXPLORE.
settings.register_profile("same", derandomize=True)
settings.load_profile("default" if os.environ.get("EVENTIDE_EXPLORE") else "same")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep what needs Spark in one of the two processes: a second session would only be slower."""
    for item in items:
        needs_fixture = "spark" in getattr(item, "fixturenames", ())
        if needs_fixture or item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from eventide.engines.spark.session import local_session

    session = local_session("eventide-tests", cores=2)
    yield session
    session.stop()
