"""What is asked, in each contestant's words, and which ratio has to hold.

A ratio is the rival's time over Eventide's: 2 means that Eventide needs half the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from benchmarks import ways
from benchmarks.data import CARS, MANY_CARS, Traffic
from benchmarks.ways import Polars, Way

HALF_THE_SPEED = 1 / 2
FASTER = 1.0
HALF_AS_MUCH_AGAIN = 1 / 1.5


@dataclass(frozen=True, slots=True)
class Duel:
    """A way of Eventide's, a rival's way, and the least ratio that has to hold, if one has to."""

    eventide: Way
    rival: Way | None
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One question and all who answer it, over at most so many events."""

    name: str
    asked: str
    traffic: Traffic
    duels: tuple[Duel, ...]
    spark: bool = False
    at_most: int | None = None
    has_speed: bool = True

    def over(self, events: int) -> int:
        """Return how many of the events of a run the case is over."""
        return events if self.at_most is None else min(events, self.at_most)

    def ways(self) -> list[Way]:
        """Everybody, each once, Eventide first."""
        everybody = [duel.eventide for duel in self.duels]
        everybody += [duel.rival for duel in self.duels if duel.rival is not None]
        return list(dict.fromkeys(everybody))


@dataclass(frozen=True, slots=True)
class Question:
    """A query in everybody's words. DuckDB and Polars may have several, the best known ones."""

    name: str
    asked: str
    eventide: str
    duckdb: Mapping[str, str]
    polars: Mapping[str, Polars]
    spark: str
    traffic: Traffic = CARS
    least_of_duckdb: float | None = None
    least_of_spark: float | None = None
    least_of_polars: float | None = None

    def embedded(self) -> Case:
        """The question to embedded engines: over Arrow, and each over its own files."""
        arrow, store = ways.eventide_arrow(self.eventide), ways.eventide_store(self.eventide)
        duels = [
            Duel(arrow, ways.duckdb_arrow(f"{name}, Arrow", text), self.least_of_duckdb)
            for name, text in self.duckdb.items()
        ]
        duels += [
            Duel(arrow, ways.polars(name, ask), self.least_of_polars)
            for name, ask in self.polars.items()
        ]
        duels += [
            Duel(store, ways.duckdb_table(f"{name}, own table", text))
            for name, text in self.duckdb.items()
        ]
        return Case(self.name, self.asked, self.traffic, tuple(duels))

    def on_spark(self) -> Case:
        """The question to Spark, with Eventide over its store and over the same Parquet file."""
        rival = ways.spark_sql(self.spark)
        duels = tuple(
            Duel(way, rival, self.least_of_spark)
            for way in (
                ways.eventide_spark_store(self.eventide),
                ways.eventide_spark_parquet(self.eventide),
            )
        )
        return Case(f"{self.name} on Spark", self.asked, self.traffic, duels, spark=True)


def average() -> pl.Expr:
    """Polars' words for AVG(speed) AS mean."""
    return pl.col("speed").mean().alias("mean")


def grouped(every: str) -> Polars:
    """Tumbling windows in Polars' fastest words, on its streaming engine."""

    def ask(frame: pl.DataFrame) -> pl.DataFrame:
        window = pl.col("ts").dt.truncate(every).alias("window_start")
        return frame.lazy().group_by("car", window).agg(average()).collect(engine="streaming")

    return ask


def dynamic(every: str, period: str, first: str) -> Polars:
    """Windows in the words that Polars has for them; `first` reaches windows begun earlier."""

    def ask(frame: pl.DataFrame) -> pl.DataFrame:
        windows = frame.group_by_dynamic(
            "ts", every=every, period=period, offset=first, group_by="car"
        )
        return windows.agg(average()).rename({"ts": "window_start"})

    return ask


def hopped(frame: pl.DataFrame) -> pl.DataFrame:
    """Hopping windows by panes: sums of 10 s, each in six windows."""
    panes = (
        frame.lazy()
        .group_by("car", pl.col("ts").dt.truncate("10s").alias("pane"))
        .agg(pl.col("speed").sum().alias("total"), pl.col("speed").count().alias("n"))
    )
    hops = pl.LazyFrame({"hop": range(6)}).select(
        pl.duration(seconds=pl.col("hop") * 10).alias("back")
    )
    windows = panes.join(hops, how="cross").group_by(
        "car", (pl.col("pane") - pl.col("back")).alias("window_start")
    )
    mean = (pl.col("total").sum() / pl.col("n").sum()).alias("mean")
    return windows.agg(mean).collect(engine="streaming")


def rolling(period: str) -> Polars:
    """Sliding averages in the words that Polars has for them."""

    def ask(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.rolling("ts", period=period, group_by="car", closed="both").agg(average())

    return ask


def rolling_mean_by(period: str) -> Polars:
    """Sliding averages in Polars' fastest words."""

    def ask(frame: pl.DataFrame) -> pl.DataFrame:
        mean = pl.col("speed").rolling_mean_by("ts", period, closed="both").over("car")
        return frame.select("ts", "car", mean.alias("mean"))

    return ask


def fast_and_braking(frame: pl.DataFrame) -> pl.DataFrame:
    """Filter and project, lazily, so that Polars may do both at once."""
    fast = frame.lazy().filter((pl.col("speed") > 100) & (pl.col("accel") < 0))
    return fast.select("ts", "car", (pl.col("speed") / 3.6).alias("ms")).collect(engine="streaming")


FILTER = (
    "SELECT ts, car, CAST(speed AS DOUBLE) / CAST(3.6 AS DOUBLE) AS ms FROM cars "
    "WHERE speed > 100 AND accel < 0"
)

# DuckDB counts buckets from 2000-01-03, Eventide from 1970: for windows that divide a day, the
# same. The guard would notice.
QUESTIONS = (
    Question(
        name="tumbling average",
        asked="average speed of each car, every 10 s",
        eventide="SELECT car, window_start, AVG(speed) AS mean FROM cars "
        "GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)",
        duckdb={
            "DuckDB": "SELECT car, time_bucket(INTERVAL '10 seconds', ts) AS window_start, "
            "avg(speed) AS mean FROM cars GROUP BY ALL"
        },
        polars={"Polars": grouped("10s"), "Polars dynamic": dynamic("10s", "10s", "0s")},
        spark="SELECT car, window.start AS window_start, avg(speed) AS mean FROM cars "
        "GROUP BY car, window(ts, '10 seconds')",
        least_of_duckdb=FASTER,
        least_of_polars=FASTER,
        least_of_spark=HALF_AS_MUCH_AGAIN,
    ),
    Question(
        name="hopping average",
        asked="average speed of each car over 60 s, every 10 s",
        eventide="SELECT car, window_start, AVG(speed) AS mean FROM cars "
        "GROUP BY car, HOP(ts, INTERVAL '10' SECOND, INTERVAL '60' SECOND)",
        duckdb={
            "DuckDB": "SELECT car, time_bucket(INTERVAL '10 seconds', ts) - "
            "to_seconds(10 * hop) AS window_start, avg(speed) AS mean "
            "FROM cars, range(6) AS hops(hop) GROUP BY ALL",
            "DuckDB panes": "WITH panes AS (SELECT car, "
            "time_bucket(INTERVAL '10 seconds', ts) AS pane, sum(speed) AS total, "
            "count(speed) AS n FROM cars GROUP BY ALL) "
            "SELECT car, pane - to_seconds(10 * hop) AS window_start, "
            "sum(total) / sum(n) AS mean FROM panes, range(6) AS hops(hop) GROUP BY ALL",
        },
        polars={"Polars panes": hopped, "Polars dynamic": dynamic("10s", "60s", "-50s")},
        spark="SELECT car, window.start AS window_start, avg(speed) AS mean FROM cars "
        "GROUP BY car, window(ts, '60 seconds', '10 seconds')",
    ),
    Question(
        name="sliding average",
        asked="at each event, average speed of its car over the last 10 s",
        eventide="SELECT ts, car, AVG(speed) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN "
        "INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS mean FROM cars",
        duckdb={
            "DuckDB": "SELECT ts, car, avg(speed) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN "
            "INTERVAL 10 SECONDS PRECEDING AND CURRENT ROW) AS mean FROM cars"
        },
        polars={"Polars": rolling_mean_by("10s"), "Polars rolling": rolling("10s")},
        spark="SELECT ts, car, avg(speed) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN "
        "INTERVAL 10 SECONDS PRECEDING AND CURRENT ROW) AS mean FROM cars",
        least_of_duckdb=FASTER,
        least_of_spark=HALF_AS_MUCH_AGAIN,
    ),
    Question(
        name="filter",
        asked="readings above 100 km/h while braking, in m/s",
        eventide=FILTER,
        duckdb={"DuckDB": FILTER},
        polars={"Polars": fast_and_braking},
        spark=FILTER,
        least_of_polars=HALF_THE_SPEED,
    ),
    Question(
        name="tumbling average, many cars",
        asked="average speed of each of 100,000 cars, every hour",
        eventide="SELECT car, window_start, AVG(speed) AS mean FROM cars "
        "GROUP BY car, TUMBLE(ts, INTERVAL '1' HOUR)",
        duckdb={
            "DuckDB": "SELECT car, time_bucket(INTERVAL '1 hour', ts) AS window_start, "
            "avg(speed) AS mean FROM cars GROUP BY ALL"
        },
        polars={"Polars": grouped("1h")},
        spark="SELECT car, window.start AS window_start, avg(speed) AS mean FROM cars "
        "GROUP BY car, window(ts, '1 hour')",
        traffic=MANY_CARS,
    ),
    Question(
        name="sliding average, many cars",
        asked="at each event, average speed of its car (of 100,000) over the last hour",
        eventide="SELECT ts, car, AVG(speed) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN "
        "INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) AS mean FROM cars",
        duckdb={
            "DuckDB": "SELECT ts, car, avg(speed) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN "
            "INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS mean FROM cars"
        },
        polars={"Polars": rolling_mean_by("1h")},
        spark="SELECT ts, car, avg(speed) OVER (PARTITION BY car ORDER BY ts RANGE BETWEEN "
        "INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS mean FROM cars",
        traffic=MANY_CARS,
    ),
)
