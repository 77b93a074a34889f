"""CREATE STREAM, CREATE VIEW and DROP: what a statement says, and what is wrong with it."""

from __future__ import annotations

import pytest

from eventide.errors import BindError, EventideError, ParseError, UnsupportedError
from eventide.lang.sql.named.head import CreateRequest, DropRequest, named_request
from eventide.lang.sql.statement import read_statement


@pytest.mark.parametrize(
    ("text", "kind", "replace", "if_not_exists", "lateness_us"),
    [
        ("CREATE STREAM fast AS SELECT 1", "stream", False, False, 0),
        ("create or replace stream fast as SELECT 1;", "stream", True, False, 0),
        ("CREATE STREAM IF NOT EXISTS fast AS SELECT 1", "stream", False, True, 0),
        ("CREATE VIEW fast AS SELECT 1", "view", False, False, 0),
        ("-- made\nCREATE /* or not */ VIEW\nfast AS\n SELECT 1 ; ", "view", False, False, 0),
        ("CREATE STORED STREAM fast AS SELECT 1", "stored stream", False, False, 0),
        (
            "CREATE STREAM fast WITH (lateness = '2 s') AS SELECT 1",
            "stream",
            False,
            False,
            2_000_000,
        ),
    ],
)
def test_what_is_created(
    text: str, kind: str, replace: bool, if_not_exists: bool, lateness_us: int
) -> None:
    wanted = named_request(read_statement(text))
    assert isinstance(wanted, CreateRequest)
    assert wanted.name == "fast"
    assert wanted.query == "SELECT 1"
    said = (wanted.kind, wanted.replace, wanted.if_not_exists, wanted.lateness_us)
    assert said == (kind, replace, if_not_exists, lateness_us)
    assert wanted.span.of(text) == "fast"


@pytest.mark.parametrize(
    ("text", "view", "if_exists"),
    [
        ("DROP STREAM fast", False, False),
        ("drop view if exists fast;", True, True),
        ("DROP STORED STREAM fast", False, False),
    ],
)
def test_what_is_dropped(text: str, view: bool, if_exists: bool) -> None:
    wanted = named_request(read_statement(text))
    assert isinstance(wanted, DropRequest)
    assert (wanted.name, wanted.view, wanted.if_exists) == ("fast", view, if_exists)


def test_a_name_in_quotes_keeps_its_letters() -> None:
    wanted = named_request(read_statement('CREATE VIEW "Two Words" AS SELECT 1'))
    assert wanted.name == "Two Words"


@pytest.mark.parametrize(
    "text",
    ["SELECT 1", "CREATE TABLE x (a INT)", "FROM create stream", "", "DROPPED", "CREATE STREAMS"],
)
def test_other_texts_are_no_such_statements(text: str) -> None:
    assert read_statement(text).kind == "query"


def test_a_definition_is_not_explained() -> None:
    with pytest.raises(UnsupportedError, match="EXPLAIN is for queries"):
        named_request(read_statement("EXPLAIN CREATE VIEW fast AS SELECT 1"))


MISTAKES: list[tuple[type[EventideError], str]] = [
    (
        ParseError,
        """\
a name is missing
  CREATE STREAM AS SELECT car FROM cars
                ^^
hint: CREATE [OR REPLACE] [STORED] STREAM [IF NOT EXISTS] name AS SELECT …""",
    ),
    (
        ParseError,
        """\
AS is missing
  CREATE VIEW fast SELECT car FROM cars
                   ^^^^^^
hint: CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name AS SELECT …""",
    ),
    (
        ParseError,
        """\
the query is missing behind AS
  CREATE STREAM fast AS
                     ^^
hint: CREATE [OR REPLACE] [STORED] STREAM [IF NOT EXISTS] name AS SELECT …""",
    ),
    (
        ParseError,
        """\
OR REPLACE and IF NOT EXISTS exclude each other
  CREATE OR REPLACE VIEW IF NOT EXISTS fast AS SELECT 1
                                       ^^^^
hint: leave one of them out""",
    ),
    (
        ParseError,
        """\
a view has no lateness
  CREATE VIEW fast WITH (lateness = '5 s') AS SELECT 1
                        ^
hint: leave WITH out, or write CREATE STREAM""",
    ),
    (
        ParseError,
        """\
lateness is a duration in quotes
  CREATE STREAM fast WITH (lateness = 5) AS SELECT 1
                                      ^
hint: write WITH (lateness = '5 seconds')""",
    ),
    (
        ParseError,
        """\
lateness must not be negative
  CREATE STREAM fast WITH (lateness = '-5 s') AS SELECT 1
                                      ^^^^^^
hint: write WITH (lateness = '5 seconds')""",
    ),
    (
        BindError,
        """\
a definition has no parameters
  CREATE STREAM fast AS SELECT car FROM cars WHERE speed > $limit
                                                           ^^^^^^
hint: write the value itself, or leave the condition to the queries that read it""",
    ),
    (
        ParseError,
        """\
cannot read the statement near 'CASCADE'
  DROP VIEW fast CASCADE
                 ^^^^^^^
hint: DROP STREAM [IF EXISTS] name, or DROP VIEW [IF EXISTS] name""",
    ),
    (
        ParseError,
        """\
a string is not closed
  CREATE VIEW fast AS SELECT 'car
                             ^
hint: end it with '""",
    ),
]


@pytest.mark.parametrize(("kind", "paragraph"), MISTAKES, ids=lambda each: str(each).split("\n")[0])
def test_a_mistake_is_explained(kind: type[EventideError], paragraph: str) -> None:
    text = paragraph.split("\n")[1].removeprefix("  ")
    with pytest.raises(kind) as caught:
        named_request(read_statement(text))
    assert str(caught.value) == paragraph
