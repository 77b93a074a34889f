"""The benchmark of joins of XML documents: it measures what it says, and renders."""

from __future__ import annotations

from benchmarks.report import Machine
from benchmarks.xml.feeds import FeedTimes, feed_values, path_s, timed_feed
from benchmarks.xml.joins import JoinTimes, Schema, check_joins, timed_joins
from benchmarks.xml.report import FLAT, NESTED, JoinsFound, figures, joins_section


def test_joins_are_measured() -> None:
    check_joins(Schema("nested", 4, 2), 20)
    found = timed_joins(Schema("flat", 3), 4)
    assert found.templates >= 2
    assert found.rows > 0
    assert found.alone_s > found.alone_loading_s > 0


def test_feeds_are_measured_and_views_change_no_row() -> None:
    values = feed_values(300)
    found, without = timed_feed(values, 50), timed_feed(values, 50, view_entries=0)
    assert found.rows == without.rows > 0
    assert path_s(values, 50) > 0


def test_the_report_renders() -> None:
    def times(schema: Schema, queries: int) -> JoinTimes:
        return JoinTimes(schema, queries, 4, 0.8, 6, 19.0, 9e-6, 4e-6, 5e-3, 4e-3)

    feeds = tuple(FeedTimes(count, 1000, 64, 0.1, 5000, 40) for count in (10, 100, 100))
    counts = tuple(times(schema, count) for schema in (FLAT, NESTED) for count in (10, 1000))
    pair = (times(FLAT, 1000), times(FLAT, 1000))
    found = JoinsFound(counts, pair, pair, pair, feeds, 2e-5)
    assert [each.met for each in figures(found)] == [True] * 5
    page = joins_section(found, Machine.here())
    assert "| flat, 6 leaves | 1,000 | 4 | 0.8 | 6 | 19 | 9.0 | 5.0 | 5,000 | 1,000 | 200 |" in page
    assert "The path stage takes 20.0 µs an item, and the join 100.0 µs." in page
