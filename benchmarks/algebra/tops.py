"""Double tops in prices, in five formulations that give the same rows.

A low a, a high b of at least 1.2 a, a low c within a tenth of a, a high d within a tenth of b, and
a fall to e, no higher than a, after which the price rises again.
"""

from __future__ import annotations

_NEXT_DAY = "closes NEXT{$1.name = $2.name} closes"
_RISING = "FOLD{$2.name = $.name, $2.price > $.price, } closes"
_FALLING = "FOLD{$2.name = $.name, $2.price < $.price, } closes"

FOLDED = f"""
SELECT name, a_1 AS a, b_1 AS b, c_1 AS c, d_1 AS d, price_1 AS e FROM FILTER{{price > price_1}}(
  FILTER{{price <= a}}(
    (SELECT name, a, b, c, price AS d, price FROM FILTER{{price BETWEEN 0.9 * b AND 1.1 * b}}(
      (SELECT name, a, b, price AS c, price FROM FILTER{{price BETWEEN 0.9 * a AND 1.1 * a}}(
        (SELECT name, a, price AS b, price FROM FILTER{{price >= 1.2 * a}}(
          (SELECT name, price AS a, price FROM FILTER{{price < price_1}}({_NEXT_DAY}))
          {_RISING}))
        {_FALLING}))
      {_RISING}))
    {_FALLING})
  NEXT{{$1.name = $2.name}} closes)
"""
"""One FOLD for each leg."""

_THREE = f"{_NEXT_DAY} NEXT{{$1.name = $2.name}} closes"
_HIGH, _LOW = "price_1 > price_1_1 AND price_1 > price", "price_1 < price_1_1 AND price_1 < price"
_HIGHS = f"SELECT name, price_1 AS x FROM FILTER{{{_HIGH}}}({_THREE})"
_LOWS = f"SELECT name, price_1 AS x FROM FILTER{{{_LOW}}}({_THREE})"
EXTREMA = f"(({_LOWS}) UNION ({_HIGHS}))"
RESUBSCRIBED = f"""
SELECT name, a_1 AS a, b_1 AS b, c_1 AS c, d_1 AS d, x AS e FROM FILTER{{x <= a_1}}(
  (SELECT name, a_1 AS a, b_1 AS b, c_1 AS c, x AS d
   FROM FILTER{{x BETWEEN 0.9 * b_1 AND 1.1 * b_1}}(
    (SELECT name, a_1 AS a, b_1 AS b, x AS c FROM FILTER{{x BETWEEN 0.9 * a_1 AND 1.1 * a_1}}(
      (SELECT name, a_1 AS a, x AS b FROM FILTER{{x >= 1.2 * a_1}}(
        (SELECT name, x AS a FROM ({_LOWS})) NEXT{{$1.name = $2.name}} {EXTREMA}))
      NEXT{{$1.name = $2.name}} {EXTREMA}))
    NEXT{{$1.name = $2.name}} {EXTREMA}))
  NEXT{{$1.name = $2.name}} {EXTREMA})
"""
"""Extrema of three events each, published and chained."""

MATCHED = """
SELECT name, a, b, c, d, e FROM closes MATCH_RECOGNIZE (
  PARTITION BY name ORDER BY ts
  MEASURES A.price AS a, LAST(UP1.price) AS b, LAST(DOWN1.price) AS c, LAST(UP2.price) AS d,
    LAST(DOWN2.price) AS e
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (S A UP1+ DOWN1+ UP2+ DOWN2+ T)
  DEFINE A AS price < PREV(price), UP1 AS price > PREV(price),
    DOWN1 AS price < PREV(price) AND LAST(UP1.price) >= 1.2 * A.price,
    UP2 AS price > PREV(price) AND LAST(DOWN1.price) BETWEEN 0.9 * A.price AND 1.1 * A.price,
    DOWN2 AS price < PREV(price)
      AND LAST(UP2.price) BETWEEN 0.9 * LAST(UP1.price) AND 1.1 * LAST(UP1.price),
    T AS price > PREV(price) AND LAST(DOWN2.price) <= A.price)
"""

_CHAINED = """
SELECT name, a, b, c, d, e FROM (
  SELECT name, is_low, x AS a, LEAD(x, 1) OVER w AS b, LEAD(x, 2) OVER w AS c,
    LEAD(x, 3) OVER w AS d, LEAD(x, 4) OVER w AS e
  FROM extrema WINDOW w AS (PARTITION BY name ORDER BY ts))
WHERE is_low AND b >= 1.2 * a AND c BETWEEN 0.9 * a AND 1.1 * a
  AND d BETWEEN 0.9 * b AND 1.1 * b AND e <= a
"""
WINDOWED = (
    """
WITH near AS (
  SELECT ts, name, price AS x, LAG(price) OVER w AS before, LEAD(price) OVER w AS after
  FROM closes WINDOW w AS (PARTITION BY name ORDER BY ts)),
extrema AS (
  SELECT name, ts, x, x < before AS is_low FROM near
  WHERE (x < before AND x < after) OR (x > before AND x > after))
"""
    + _CHAINED
)
"""DuckDB's best way: windows of rows."""

SELF_JOINED = (
    """
WITH days AS (SELECT name, ts, price, ROW_NUMBER() OVER (PARTITION BY name ORDER BY ts) AS day
  FROM closes),
extrema AS (
  SELECT y.name, y.ts, y.price AS x, y.price < p.price AS is_low
  FROM days p JOIN days y ON y.name = p.name AND y.day = p.day + 1
    JOIN days f ON f.name = y.name AND f.day = y.day + 1
  WHERE (y.price < p.price AND y.price < f.price) OR (y.price > p.price AND y.price > f.price))
"""
    + _CHAINED
)
"""As the document writes it for a relational engine: three closes joined for each extremum."""
