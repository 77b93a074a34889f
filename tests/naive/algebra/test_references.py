"""The twin of the event algebra on examples whose results are known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.naive.algebra.events import (
    Bag,
    Event,
    Row,
    at,
    at_instants,
    bag,
    event,
    introduce,
    length,
    mu,
    project,
    rename,
    select,
    seq,
    union,
)

Short = tuple[Any, ...]


def quote(name: str, price: float, time: int, volume: int = 100) -> Event:
    return at(time, name=name, price=price, volume=volume)


def short(events: Bag, *names: str) -> list[Short]:
    """Events as (attributes…, start, end), in order."""
    rows = [(*(each.attributes[name] for name in names), each.start, each.end) for each in events]
    return sorted(rows, key=str)


def same_name(row: Row) -> bool:
    return bool(row["name"] == row["name.last"])


def rising(found: Bag) -> Bag:
    return select(lambda row: row["price"] > row["price.last"], found)


def falling(found: Bag) -> Bag:
    return select(lambda row: row["price"] < row["price.last"], found)


def named(name: str) -> Any:  # noqa: ANN401
    return lambda row: row["name"] == name


TWO_STOCKS = [
    quote("IBM", 80, 1),
    quote("Dell", 22, 2),
    quote("IBM", 82, 3),
    quote("Dell", 24, 4),
    quote("IBM", 84, 5),
    quote("Dell", 22, 6),
]


def test_monotone_rise() -> None:
    once = [("Dell", 22, 24, 2, 4), ("IBM", 80, 82, 1, 3), ("IBM", 82, 84, 3, 5)]
    found = mu(TWO_STOCKS, TWO_STOCKS, same_name, rising)
    names = ("name", "price.first", "price")
    assert short(found, *names) == sorted([*once, ("IBM", 80, 84, 1, 5)], key=str)
    lasting = select(lambda row: length(row) >= 4, found)
    assert short(lasting, *names) == [("IBM", 80, 84, 1, 5)]


def test_sequences_are_not_associative() -> None:
    quotes = [
        quote("IBM", 80, 1),
        quote("MSFT", 50, 2),
        quote("MSFT", 49, 3),
        quote("Dell", 24, 4),
    ]
    ibm, msft, dell = (select(named(name), quotes) for name in ("IBM", "MSFT", "Dell"))
    assert short(seq(ibm, seq(msft, dell)), "price") == [(24, 1, 4), (24, 1, 4)]
    assert short(seq(seq(ibm, msft), dell), "price") == [(24, 1, 4)]


@pytest.mark.parametrize("m", range(5))
@pytest.mark.parametrize("n", range(4))
def test_the_family_that_no_left_nested_expression_has(m: int, n: int) -> None:
    """S₁;(S₂;S₃) has m events, which all end at m + 1."""
    first, others = [at(0)], [at(time) for time in range(1, m + n + 3)]
    last = [at(m + 1), at(m + n + 2)]
    found = seq(first, seq(others, last))
    assert short(found) == [(0, m + 1)] * m or m == 0
    # The first event is followed by all pairs that end first, for none of them begins before it.
    assert len(found) == (m or n + 1)


MINUTE = 1
TRADES = [
    quote("IBM", 90, 9 * 60 + 10, 15_000),
    quote("IBM", 85, 9 * 60 + 15, 7_000),
    quote("Dell", 40, 9 * 60 + 17, 11_000),
    quote("IBM", 81, 9 * 60 + 21, 8_000),
    quote("MSFT", 25, 9 * 60 + 23, 6_000),
    quote("IBM", 91, 9 * 60 + 24, 9_000),
]


def rebounds(trades: Bag) -> Bag:
    """A large trade, a fall of ten minutes, and a next quote 5 % above the bottom."""
    large = select(lambda row: row["volume"] > 10_000, trades)
    falls = select(lambda row: length(row) >= 10, mu(large, trades, same_name, falling))
    names = {"price.first": "most", "price": "least", "name": "who"}
    bottoms = project(names.values(), rename(names, falls))
    ended = seq(bottoms, trades, lambda row: row["who"] == row["name"])
    return select(lambda row: row["price"] >= 1.05 * row["least"], ended)


REBOUND = [("IBM", 90, 81, 91, 9 * 60 + 10, 9 * 60 + 24)]


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ([], REBOUND),
        ([quote("IBM", 80, 9 * 60 + 24)], REBOUND),  # another that follows at the same instant
        ([quote("IBM", 99, 9 * 60 + 17)], []),  # rises while it should fall
    ],
)
def test_a_fall_and_a_rebound(beside: Bag, expected: list[Short]) -> None:
    for trades in (union(TRADES, beside), union(beside, TRADES)):
        assert short(rebounds(trades), "who", "most", "least", "price") == expected


# What is asked of stocks and feeds


def test_a_price_above_a_bound() -> None:
    found = select(lambda row: row["name"] == "IBM" and row["price"] > 82, TWO_STOCKS)
    assert found == [quote("IBM", 84, 5)]


def test_a_price_that_has_just_crossed_a_bound() -> None:
    ibm = select(named("IBM"), TWO_STOCKS)
    pairs = seq(rename({"price": "before", "name": "n", "volume": "v"}, ibm), ibm)
    found = select(lambda row: row["before"] <= 82 < row["price"], pairs)
    assert short(found, "before", "price") == [(82, 84, 3, 5)]


def test_more_than_the_quote_before() -> None:
    before = rename({"price": "before", "name": "n", "volume": "v"}, TWO_STOCKS)
    pairs = seq(before, TWO_STOCKS, lambda row: row["n"] == row["name"])
    found = select(lambda row: 1.05 * row["before"] <= row["price"], pairs)
    assert short(found, "name", "before", "price") == [("Dell", 22, 24, 2, 4)]


def averages(quotes: Bag) -> Bag:
    """The mean of all quotes since each one."""
    begun = introduce({"mean": lambda row: row["price"], "count": lambda _: 1}, quotes)

    def more(found: Bag) -> Bag:
        values = {
            "mean": lambda row: (row["count"] * row["mean"] + row["price"]) / (row["count"] + 1),
            "count": lambda row: row["count"] + 1,
        }
        return introduce(values, found)

    return mu(begun, quotes, chain=more)


def test_a_price_above_the_mean_of_a_time() -> None:
    ibm = [quote("IBM", price, time) for time, price in enumerate([80, 82, 87, 70, 90])]
    means = select(lambda row: length(row) == 2, averages(ibm))
    assert short(means, "mean", "count") == [
        (239 / 3, 3, 1, 3),
        (247 / 3, 3, 2, 4),
        (83.0, 3, 0, 2),
    ]
    means = project(["mean"], means)
    found = select(lambda row: row["price"] > row["mean"], seq(means, ibm))
    assert short(found, "price", "mean") == [(90, 239 / 3, 1, 4)]


FEED = [
    at(1, site="apple", link="/1", text="news"),
    at(2, site="blog", link="/2", text="see /9"),
    at(3, site="blog", link="/3", text="see /1"),
    at(4, site="blog", link="/4", text="see /1 and /3"),
    at(5, site="blog", link="/5", text="see /4"),
]


def test_the_first_post_about_an_item() -> None:
    items = project(["link"], select(lambda row: row["site"] == "apple", FEED))
    items = rename({"link": "of"}, items)
    blogs = select(lambda row: row["site"] == "blog", FEED)
    found = seq(items, blogs, lambda row: row["of"] in row["text"])
    assert short(found, "of", "link") == [("/1", "/3", 1, 3)]


def test_a_rumour_that_spreads() -> None:
    first = select(lambda row: row["site"] == "apple", FEED)
    found = mu(first, FEED, lambda row: row["link.last"] in row["text"])
    chains = [("/1", "/3", 1, 3), ("/1", "/4", 1, 4), ("/1", "/5", 1, 5)]
    assert short(found, "link.first", "link") == chains


def test_a_rise_that_does_not_come_back() -> None:
    """A rise, and for as long as quotes stay above its first price, all of them."""
    quotes = [quote("IBM", price, time) for time, price in enumerate([80, 84, 81, 82, 80, 90])]
    rises = rename({"price.first": "low"}, mu(quotes, quotes, same_name, rising))
    stays = mu(
        project(["name", "price", "volume", "low"], rises),
        quotes,
        same_name,
        lambda found: select(lambda row: row["price"] > row["low"], found),
    )
    assert short(stays, "low", "price") == [(80, 81, 0, 2), (80, 82, 0, 3)]


def test_the_best_at_an_instant() -> None:
    """Of all stocks, the one whose mean is greatest whenever another is above a bound."""
    quotes = [quote("A", 10, 1), quote("B", 20, 1), quote("A", 30, 2), quote("GOOG", 401, 3)]
    means = project(["of", "value"], rename({"name": "of", "price": "value"}, quotes[:3]))
    alarms = select(lambda row: row["price"] > 400, seq(means, quotes, named("GOOG")))
    best = at_instants(lambda rows: {"value": max(row["value"] for row in rows)}, alarms)
    assert best == [event(3, 3, {"value": 30})]


def test_bags_keep_equal_events() -> None:
    twice = [at(1, name="a"), at(1, name="a")]
    assert len(seq(twice, [at(2, other=1), at(2, other=1)])) == 4
    assert bag(union(twice, twice)) == bag([at(1, name="a")] * 4)
