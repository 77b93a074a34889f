"""The SQL around the blocks of a query, run by Spark with all times in UTC.

Spark reads `date_trunc`, `extract`, casts and literals of time in the zone of the session. It fixes
that zone for every expression when it resolves names, so a text is resolved in a copy of the
session that is in UTC. The DataFrame belongs to the user's session, and later expressions of the
user have that session's zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from threading import Lock
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from eventide.engines.spark.session import is_connect
from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql.names.columns import unique_names

ZONE = "spark.sql.session.timeZone"
UTC = "UTC"
VIEWS = Lock()
"""Held while inputs have the names that a text gives them: another thread may use the same names.
"""


def around(session: SparkSession, text: str, inputs: Sequence[tuple[str, DataFrame]]) -> DataFrame:
    """Return the answer to a text over inputs by name."""
    run = over_connect if is_connect(session) else over_views
    try:
        frame = run(session, text, inputs)
        names = unique_names(frame.columns)
        return frame if names == frame.columns else frame.toDF(*names)
    except AnalysisException as error:
        said = error.getMessage() or str(error)
        message = f"the SQL around the streams is wrong: {said.splitlines()[0]}"
        raise BindError(message, hint=f"what remained was: {text}") from error


def over_views(
    session: SparkSession, text: str, inputs: Sequence[tuple[str, DataFrame]]
) -> DataFrame:
    """Return the answer to a text whose inputs are views for as long as it is read."""
    with VIEWS:
        # The DataFrame no longer needs the names once they are resolved.
        for name, frame in inputs:
            frame.createOrReplaceTempView(name)
        try:
            return resolved(session, text)
        finally:
            for name, _ in inputs:
                session.catalog.dropTempView(name)


def resolved(session: SparkSession, text: str) -> DataFrame:
    """Return the answer to a text whose times are in UTC."""
    if session.conf.get(ZONE) == UTC:
        return session.sql(text)
    own, jvm = session._jsparkSession, session._jvm
    assert jvm is not None
    copy = own.cloneSession()
    copy.conf().set(ZONE, UTC)
    plan = copy.sql(text).queryExecution().analyzed()
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(own, plan), session)


def over_connect(
    session: SparkSession, text: str, inputs: Sequence[tuple[str, DataFrame]]
) -> DataFrame:
    """Return the answer to a text on Spark Connect, where each query is resolved anew.

    So inputs are sent with the text, and the zone is that of the session at that time.
    """
    zone = session.conf.get(ZONE)
    if zone != UTC:
        message = f"on Spark Connect, SQL around streams needs a session in UTC, not in {zone}"
        hint = f"spark.conf.set({ZONE!r}, {UTC!r}), or leave to Spark what is around the streams"
        raise UnsupportedError(message, hint=hint)
    named = text.replace("{", "{{").replace("}", "}}")
    for name, _ in inputs:
        named = re.sub(rf"\b{name}\b", f"{{{name}}}", named)
    frames: dict[str, Any] = dict(inputs)
    return session.sql(named, None, **frames)
