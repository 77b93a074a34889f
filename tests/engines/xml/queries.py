"""Queries over XML documents, and their answers by the twin, which tries every node."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eventide.lang.xscl.parse import parse_pattern
from eventide.schema import Schema
from tests.engines.compositions import as_events, matched, now_of
from tests.naive import windows as naive
from tests.naive.windows import Event
from tests.naive.xml.embeddings import witnesses

SECOND = 1_000_000
DOCUMENTS = Schema.of({"document": "binary"})
SCHEMAS = {"blog": DOCUMENTS, "news": DOCUMENTS}
Streams = Mapping[str, Sequence[Event]]


@dataclass(frozen=True)
class XmlQuery:
    """A query and its answer."""

    name: str
    text: str
    answer: Callable[[Streams], list[Event]]


def arrivals(seed: int, count: int = 60) -> dict[str, list[Event]]:
    """Documents of both streams in order of arrival: ties, nulls, and some that come late."""
    choose = random.Random(seed)
    found = {}
    for name in SCHEMAS:
        ts, events = -20 * SECOND, []
        for _ in range(count):
            ts += choose.choice([0, 0, SECOND // 2, SECOND, 2 * SECOND])
            document = None if choose.random() < 0.1 else feed(choose)
            events.append({"ts": ts, "document": document})
        order = sorted(range(count), key=lambda place: place + choose.uniform(0, 6))
        found[name] = [{**events[i], "_seq": seq} for seq, i in enumerate(order)]
    return found


def feed(choose: random.Random) -> bytes:
    items = "".join(item(choose) for _ in range(choose.randrange(3)))
    return f"<rss version='2.0'><channel>{items}</channel></rss>".encode()


def item(choose: random.Random) -> str:
    authors = (f"<author>{choose.choice('abé')}</author>" for _ in range(choose.randrange(3)))
    title = f"<title>t<b>{choose.randrange(4)}</b></title>" * (choose.random() < 0.9)
    return f"<item id='{choose.randrange(100)}'><who>{''.join(authors)}</who>{title}</item>"


def rows_of(pattern: str, events: Sequence[Event]) -> Iterator[Event]:
    """Yield the witnesses of a pattern, each with the time of its document."""
    root = parse_pattern(pattern).pattern.root
    for event in events:
        if event["document"] is not None:
            for values in witnesses(root, event["document"]):
                yield {"ts": event["ts"], **values}


ITEMS = "blog//item[.//author->a][title->t]/@id->i"
NEWS = "news//item[.//author->a][title->t]"
WITH_B = "blog//item[.//author = 'b'][title->t]"


def items(streams: Streams) -> list[Event]:
    return list(rows_of(ITEMS, streams["blog"]))


def chosen(streams: Streams) -> list[Event]:
    rows = [row for row in items(streams) if row["a"] == "a" and row["ts"] >= -5 * SECOND]
    return [{"t": row["t"], "i": row["i"]} for row in rows]


def counted(streams: Streams) -> list[Event]:
    rows = naive.windows(
        as_events(rows_of(WITH_B, streams["blog"]), "t"),
        ["t"],
        10 * SECOND,
        10 * SECOND,
        [("n", "count(*)", "t")],
    )
    return [{name: row[name] for name in ("t", "window_start", "n")} for row in rows]


_RISES = (
    "MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES FIRST(X.t) AS first, LAST(Y.t) AS last,"
    " COUNT(*) AS n PATTERN (X Y+ Z) DEFINE Y AS t > PREV(t), Z AS t <= PREV(t))"
)


def rises(streams: Streams) -> list[Event]:
    rows = as_events(rows_of(NEWS, streams["news"]), "a", "t")
    return matched(_RISES, Schema.of({"a": "string", "t": "string"}), rows)


def joined(streams: Streams) -> list[Event]:
    left = list(rows_of(WITH_B, streams["blog"]))
    right = list(rows_of(NEWS, streams["news"]))
    now = now_of(streams, ["blog", "news"])
    return [
        {"t": one["t"], "a": other["a"]}
        for one in left
        for other in right
        if one["t"] == other["t"]
        and min(one["ts"], other["ts"]) > now - 30 * SECOND
        and max(one["ts"], other["ts"]) <= now
    ]


QUERIES = (
    XmlQuery("witnesses", f"SELECT * FROM XPATH ({ITEMS})", items),
    XmlQuery(
        "some witnesses",
        f"SELECT t, i FROM XPATH ({ITEMS}) WHERE a = 'a' AND ts >= TIMESTAMP '1969-12-31 23:59:55'",
        chosen,
    ),
    XmlQuery(
        "windows",
        f"SELECT t, window_start, COUNT(*) AS n FROM XPATH ({WITH_B}) "
        "GROUP BY t, TUMBLE(ts, INTERVAL '10' SECOND)",
        counted,
    ),
    XmlQuery("row pattern", f"SELECT * FROM XPATH ({NEWS}) {_RISES}", rises),
    XmlQuery(
        "standing join",
        f"SELECT b.t, n.a FROM XPATH ({WITH_B}) [RANGE 30 SECONDS] b "
        f"JOIN XPATH ({NEWS}) [RANGE 30 SECONDS] n ON b.t = n.t",
        joined,
    ),
)
