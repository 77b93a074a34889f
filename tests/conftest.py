"""What all tests share: one Spark session, started only if a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from eventide.engines.spark.session import local_session

    session = local_session("eventide-tests", cores=2)
    yield session
    session.stop()
