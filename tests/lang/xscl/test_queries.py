from __future__ import annotations

import pytest

from eventide.errors import ParseError
from eventide.lang.xscl.queries import parse_query
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.document_queries import OutputColumn, OutputDocument, OutputNode
from eventide.plan.xml.patterns import TreePattern

ORDERS = "feed//order->o[.//customer->c][.//sku->k]"
COMPLAINTS = "feed//complaint->m[.//from->c2][.//item->k2]"
JOIN = f"{ORDERS} FOLLOWED BY {{c=c2 AND k=k2, 3d}} {COMPLAINTS}"
DAY_US = 86_400_000_000


def test_a_join_of_two_patterns() -> None:
    parsed = parse_query(f"FROM {JOIN} PUBLISH complaints")
    join = parsed.query.source
    assert isinstance(join, DocumentJoin)
    assert join.equal == (("c", "c2"), ("k", "k2"))
    assert join.within_us == 3 * DAY_US
    assert join.ordered
    assert (join.left.stream, join.right.stream) == ("feed", "feed")
    assert join.selected == (("o",), ("m",))
    assert parsed.query.published == "complaints"


def test_without_select_both_documents_stand_below_a_new_root() -> None:
    query = parse_query(JOIN).query
    nodes = OutputNode(0, "o"), OutputNode(1, "m")
    assert query.output == OutputDocument(("<joined>", *nodes, "</joined>"))


@pytest.mark.parametrize(
    ("path", "last"),
    [
        ("s//a", "s//a->."),
        ("s//a->x[b]", "s//a->x[./b]"),
        ("s//a[b]/c", "s//a[./b][./c->.]"),
        ("s//a[b//c]/d->y[.//e]", "s//a[./b[.//c]][./d->y[.//e]]"),
        ("s//{u/v}a[. = '/x[']/@id", "s//{u/v}a[. = '/x['][./@id->.]"),
    ],
)
def test_a_pattern_asks_for_the_last_step_of_its_path(path: str, last: str) -> None:
    query = parse_query(path).query
    assert isinstance(query.source, TreePattern)
    assert str(query.source) == last
    assert len(query.nodes) == 1


@pytest.mark.parametrize(
    ("braces", "equal", "within"),
    [
        ("c = c2, 1 DAY", (("c", "c2"),), DAY_US),
        ("c2 = C , 30 minutes", (("c", "c2"),), 30 * 60_000_000),
        ("c = c2 and c = k2, 1s", (("c", "c2"), ("c", "k2")), 1_000_000),
    ],
)
def test_braces(braces: str, equal: tuple[tuple[str, str], ...], within: int) -> None:
    for word, ordered in (("JOIN", False), ("followed  by", True)):
        join = parse_query(f"{ORDERS} {word}{{{braces}}} {COMPLAINTS}").query.source
        assert isinstance(join, DocumentJoin)
        assert (join.equal, join.within_us, join.ordered) == (equal, within, ordered)


def test_columns_are_texts_of_variables() -> None:
    query = parse_query(f"SELECT c, k2 AS item FROM {JOIN}").query
    assert query.output == (
        OutputColumn("c", OutputNode(0, "c", True)),
        OutputColumn("item", OutputNode(1, "k2", True)),
    )
    assert isinstance(query.source, DocumentJoin)
    assert query.source.selected == (("c",), ("k2",))
    every = parse_query(f"SELECT * FROM {JOIN}").query.output
    assert not isinstance(every, OutputDocument)
    assert [column.name for column in every] == ["o", "c", "k", "m", "c2", "k2"]


def test_a_document_that_is_put_together() -> None:
    text = f"""SELECT <late who="{{c}}">it's from {{o}}<a/>{{string(k2)}}</late> FROM {JOIN}"""
    assert parse_query(text).query.output == OutputDocument(
        (
            '<late who="',
            OutputNode(0, "c", True),
            "\">it's from ",
            OutputNode(0, "o"),
            "<a/>",
            OutputNode(1, "k2", True),
            "</late>",
        )
    )


def test_words_of_the_language_may_be_names_of_elements() -> None:
    text = "s//from->a[.//join->j][publish] JOIN{j = k, 1s} s//followed/by->b[.//JOIN->k]"
    join = parse_query(text).query.source
    assert isinstance(join, DocumentJoin)
    assert str(join.left) == "s//from->a[.//join->j][./publish]"
    assert str(join.right) == "s//followed[./by->b[.//JOIN->k]]"


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("SELECT c", "c", "SELECT needs FROM"),
        (f"SELECT z FROM {JOIN}", "z", "no pattern binds z"),
        (f"SELECT c + 1 FROM {JOIN}", "c + 1", "SELECT lists variables"),
        (f"SELECT c, k AS C FROM {JOIN}", "k AS C", "two columns are named C"),
        (f"SELECT <a>{{c}} FROM {JOIN}", " ", "does not end"),
        (f"SELECT <a>{{c + 1}}</a> FROM {JOIN}", "{c + 1}", "hold a variable"),
        (f"SELECT <a {{c}}='1'>&</a> FROM {JOIN}", None, "not well-formed"),
        (f"SELECT <a{{c}}>1</a{{c}}> FROM {JOIN}", None, "not well-formed"),
        (f"SELECT <a><!-- {{c}} --></a> FROM {JOIN}", None, "braces stand in texts"),
        (f"SELECT <a><![CDATA[{{c}}]]></a> FROM {JOIN}", None, "braces stand in texts"),
        (f"SELECT <a xmlns='u'>{{o}}</a> FROM {JOIN}", None, "a default namespace"),
        (f"{ORDERS} JOIN {COMPLAINTS}", "JOIN", "JOIN needs braces"),
        (f"{ORDERS} JOIN{{c = c2}} {COMPLAINTS}", "c = c2", "how far apart"),
        (f"{ORDERS} JOIN{{c = c2, soon}} {COMPLAINTS}", " soon", "'soon' is no length of time"),
        (f"{ORDERS} JOIN{{c < c2, 1s}} {COMPLAINTS}", "c < c2", "compare variables with ="),
        (f"{ORDERS} JOIN{{c = k, 1s}} {COMPLAINTS}", "c = k", "nodes of one document"),
        (f"{ORDERS} JOIN{{c = z, 1s}} {COMPLAINTS}", "c = z", "no pattern binds z"),
        (f"{ORDERS} FOLLOWED BY{{c = c2, 0s}} {COMPLAINTS}", "c = c2, 0s", "within no time"),
        (f"{ORDERS} JOIN{{c = c2, 1s}}", None, "a pattern is missing"),
        (f"{JOIN} JOIN{{c = c2, 1s}} s//x", "JOIN", "joins two documents"),
        (f"{JOIN} PUBLISH", "PUBLISH", "PUBLISH needs one name"),
        (f"{ORDERS} JOIN{{c = c2, 1s}} feed//a[", "[", "ends too early"),
    ],
)
def test_mistakes_say_where_they_are(text: str, at: str | None, says: str) -> None:
    with pytest.raises(ParseError, match=says) as caught:
        parse_query(text)
    assert caught.value.span is not None
    assert caught.value.text == text
    if at is not None:
        assert caught.value.span.of(text) == at
