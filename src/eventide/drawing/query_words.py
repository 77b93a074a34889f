"""The keywords of queries, to highlight them: SQL, row patterns, situations, standing queries."""

import re

from eventide.sinks.words import escape

_SQL = """
    SELECT DISTINCT ALL FROM WHERE GROUP ORDER BY HAVING QUALIFY LIMIT OFFSET WITH RECURSIVE AS
    UNION EXCEPT INTERSECT VALUES AND OR NOT IN IS NULL TRUE FALSE EXISTS LIKE ILIKE BETWEEN ANY
    CASE WHEN THEN ELSE END CAST JOIN LEFT RIGHT FULL OUTER INNER CROSS NATURAL ASOF ON USING
    OVER PARTITION RANGE ROWS GROUPS UNBOUNDED PRECEDING FOLLOWING CURRENT ROW FILTER WINDOW
    NULLS DESC ASC INTERVAL TIMESTAMP DATE MICROSECOND MICROSECONDS MILLISECOND MILLISECONDS
    SECOND SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS WEEK WEEKS EXPLAIN ANALYZE CREATE STREAM
    INSERT INTO
"""
_AGGREGATES = "COUNT SUM AVG MIN MAX STDDEV FIRST LAST"
_WINDOWS = """
    TUMBLE HOP SESSION SLIDE LATEST NOW LANDMARK SINCE JUMP INTERNAL UNTIL ISTREAM DSTREAM
    RSTREAM WSTREAM RESTORE FOR SYSTEM_TIME OF
"""
_PATTERNS = """
    MATCH_RECOGNIZE MEASURES PATTERN DEFINE SUBSET WITHIN STRATEGY ONE PER MATCH AFTER SKIP TO
    NEXT PAST SHOW OMIT EMPTY MATCHES UNMATCHED TIMEOUT PERMUTE RUNNING FINAL PREV CLASSIFIER
    MATCH_NUMBER
"""
_SITUATIONS = """
    TPSTREAM SITUATIONS GAP DIALECT ALLEN PAPER DETECT EARLY CONFIRM KEY RETURN AT LEAST MOST
    START DURATION OPEN BEFORE MEETS MET OVERLAPS OVERLAPPED STARTS STARTED DURING CONTAINS
    FINISHES FINISHED EQUALS INTERSECTS PRECEDES FOLLOWS
"""
WORDS = frozenset(" ".join((_SQL, _AGGREGATES, _WINDOWS, _PATTERNS, _SITUATIONS)).split())

_TOKENS = re.compile(
    r"(?P<comment>(?:--|\#)[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>\"(?:[^\"]|\"\")*\")"
    r"|(?P<word>\b[A-Za-z_]\w*)|(?P<number>\b\d+(?:\.\d+)?)",
    re.DOTALL,
)


def query_html(text: str) -> str:
    """Return a query with its keywords marked for the style sheet.

    >>> query_html("select 1")
    '<b class="keyword">select</b> <b class="number">1</b>'
    """
    parts, done = [], 0
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "word":
            # Behind a dot it is a column, even if it has the name of a keyword.
            column = text[token.start() - 1 : token.start()] == "."
            kind = "keyword" if token[0].upper() in WORDS and not column else None
        said = escape(token[0], quote=False)
        parts.append(escape(text[done : token.start()], quote=False))
        parts.append(said if kind in (None, "name") else f'<b class="{kind}">{said}</b>')
        done = token.end()
    return "".join([*parts, escape(text[done:], quote=False)])
