"""The queries of docs/nexmark.md, and the same in DuckDB's SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "nexmark.md"
_BLOCK = re.compile(r"^```sql\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_VIEW = re.compile(r"^(\w+) AS \((.*?)^\)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Query:
    """A query as it is published, with the views in front that it reads, and its live form."""

    name: str
    title: str
    text: str
    live: str | None


@cache
def queries() -> dict[str, Query]:
    """Return all queries by name."""
    head, *sections = re.split(r"^## ", DOCS.read_text(), flags=re.MULTILINE)
    with_views = _BLOCK.search(head)
    assert with_views is not None
    views = dict(_VIEW.findall(with_views[1].removeprefix("WITH ")))
    found = {}
    for section in sections:
        name, title = section.split("\n", 1)[0].split(": ", 1)
        text, *live = (block[1] for block in _BLOCK.finditer(section))
        found[name] = Query(name, title, with_front(text, views), live[0] if live else None)
    return found


def with_front(text: str, views: dict[str, str]) -> str:
    """Return a query with those views in front that it reads."""
    named = r"(?:TABLE|FROM|JOIN) {0}\b(?!\.)|, {0} (?:AS )?[AB]\b"
    read = [name for name in views if re.search(named.format(name), text)]
    if not read:
        return text
    written = ", ".join(f"{name} AS ({' '.join(views[name].split())})" for name in read)
    return f"WITH {written}\n{text}"


UNENDING = ("q0", "q1", "q2", "q10", "q11", "q12", "q13", "q14", "q21", "q22")
"""The queries that run live as they are published."""

_BUCKET = "time_bucket(INTERVAL '10' SECOND, dateTime)"
_HOPS = """
  SELECT auction, COUNT(*) AS num, s AS starttime
  FROM bid, generate_series(0, 4) AS g(i),
    LATERAL (SELECT time_bucket(INTERVAL '2' SECOND, dateTime) - INTERVAL '2' SECOND * i AS s)
  GROUP BY auction, s"""

DUCKDB = {
    "q5": f"""WITH h AS ({_HOPS})
      SELECT auction, num FROM h JOIN (SELECT MAX(num) AS n, starttime FROM h GROUP BY ALL) m
      ON h.starttime = m.starttime AND num >= n""",
    "q7": f"""SELECT B.auction, B.bidder, B.price, B.dateTime, B.extra FROM bid B JOIN (
      SELECT MAX(price) AS top, {_BUCKET} AS s FROM bid GROUP BY s) w
      ON B.price = w.top AND B.dateTime BETWEEN s AND s + INTERVAL '10' SECOND""",
    "q8": f"""SELECT DISTINCT P.id, P.name, P.s
      FROM (SELECT *, {_BUCKET} AS s FROM person) P
      JOIN (SELECT *, {_BUCKET} AS s FROM auction) A ON P.id = A.seller AND P.s = A.s""",
    "q10": """SELECT auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d'),
      strftime(dateTime, '%H:%M') FROM bid""",
    "q11": """SELECT bidder, COUNT(*), MIN(dateTime), MAX(dateTime) + INTERVAL '10' SECOND FROM (
      SELECT *, SUM(first) OVER (PARTITION BY bidder ORDER BY dateTime) AS session FROM (
        SELECT *, CASE WHEN dateTime - LAG(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime)
          < INTERVAL '10' SECOND THEN 0 ELSE 1 END AS first FROM bid)) GROUP BY bidder, session""",
    "q12": f"""SELECT bidder, COUNT(*), {_BUCKET} AS s, s + INTERVAL '10' SECOND FROM bid
      GROUP BY bidder, s""",
    "q13": """SELECT auction, bidder, price, dateTime, value FROM bid
      JOIN side_input ON auction % 10000 = key""",
    "q22": """SELECT auction, bidder, price, channel, string_split(url, '/')[4],
      string_split(url, '/')[5], string_split(url, '/')[6] FROM bid""",
}
"""The queries that DuckDB does not take as they are published."""


def for_duckdb(query: Query) -> str:
    """Return a query for DuckDB, over its views `person`, `auction` and `bid`."""
    known = DUCKDB.get(query.name)
    if known is not None:
        return known
    text = query.text.partition("\n")[2] if query.text.startswith("WITH ") else query.text
    text = re.sub(r"DATE_FORMAT\((\w+), 'yyyy-MM-dd'\)", r"strftime(\1, '%Y-%m-%d')", text)
    text = re.sub(r"DATE_FORMAT\((\w+), 'HH:mm'\)", r"strftime(\1, '%H:%M')", text)
    return text.replace("`", '"')
