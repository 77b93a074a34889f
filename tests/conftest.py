"""What all tests share: one Spark session, started only if a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

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
