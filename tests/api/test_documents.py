"""Streams of XML documents: what they take, refuse, and give back."""

from __future__ import annotations

import os
import random
import signal
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from time import time_ns

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import IngestError, ParseError, SchemaError
from eventide.ingest import documents as ingest
from eventide.ingest.documents import GivenDocument, read_given
from eventide.lang.xscl.parse import parse_pattern
from eventide.operators.xml.asked import AskedPattern
from eventide.operators.xml.stage import PathStage
from tests.naive.xml.embeddings import tuples

ITEM = "<rss><item id='%d'><author>é</author><pubDate>%s</pubDate></item></rss>"
RSS_DATE = "Mon, 02 Mar 2026 09:00:00 +0100"
ISO_DATE = "2026-03-02T08:00:01Z"


def stored(stream: ev.Stream) -> list[bytes]:
    found: list[bytes] = stream.events().to_arrow().column("document").to_pylist()
    return found


def test_documents_come_back_byte_for_byte(tmp_path: Path) -> None:
    blog = ev.open(tmp_path / "db").create_stream("blog", format="xml")
    text = "<?xml version='1.0' encoding='%s'?>\r\n<!-- é --><a  b='1'><![CDATA[<é>]]></a>\n"
    given = [(text % name).encode(name) for name in ("utf-8", "iso-8859-1", "utf-16")]
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / "1.xml").write_bytes(given[0])
    (tmp_path / "in" / "below" / "2.XML").write_bytes(given[1])
    (tmp_path / "in" / "readme.txt").write_text("no document")
    before = time_ns() // 1000
    blog.append(given[0])
    blog.append([given[1], bytearray(given[2]), text % "utf-8"])
    blog.append(tmp_path / "in")
    blog.append([tmp_path / "in" / "1.xml"])
    blog.append([])
    expected = [*given, (text % "utf-8").encode(), given[0], given[1], given[0]]
    assert stored(blog) == expected
    again = ev.open(tmp_path / "db").stream("blog")
    assert stored(again) == expected
    assert again.schema == blog.schema
    times = again.events().to_arrow().column("ts").cast(pa.int64()).to_pylist()
    assert before <= min(times) <= max(times) <= time_ns() // 1000
    again.flush()
    assert stored(again) == expected
    rows = ev.open(tmp_path / "db").sql("SELECT b FROM XPATH (blog/a/@b->b)")
    assert rows.to_arrow().column("b").to_pylist() == ["1"] * len(expected)


def test_a_text_is_written_in_the_encoding_that_it_declares(tmp_path: Path) -> None:
    blog = ev.open(tmp_path / "db").create_stream("blog", format="xml")
    text = "<?xml version='1.0' encoding='%s'?><a>é</a>"
    blog.append([text % name for name in ("ISO-8859-1", "utf-16", "UTF-8")])
    assert stored(blog)[0] == (text % "ISO-8859-1").encode("latin-1")
    rows = ev.open(tmp_path / "db").sql("SELECT x FROM XPATH (blog/a->x)")
    assert rows.to_arrow().column("x").to_pylist() == ["é"] * 3
    for name in ("ascii", "zlib", "nope"):
        with pytest.raises(IngestError, match=f"document 0: .*{name}"):
            blog.append(text % name)


def test_times_are_those_of_a_path(tmp_path: Path) -> None:
    blog = ev.open(tmp_path / "db").create_stream("blog", format="xml", time="//item/pubDate")
    blog.append([ITEM % (1, RSS_DATE), ITEM % (2, ISO_DATE)])
    blog.append([{"ts": "2026-03-02 08:00:02", "document": b"<a/>"}])  # it says when
    found = blog.events().to_arrow().column("ts").cast(pa.int64()).to_pylist()
    assert found == [1_772_438_400_000_000 + second * 1_000_000 for second in range(3)]
    two = f"<r><item><pubDate>{ISO_DATE}</pubDate></item>{ITEM % (3, RSS_DATE)}</r>"
    blog.append(two)
    assert stored(blog)[2] == two.encode()  # the first node counts


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([ITEM % (1, RSS_DATE), "<a><b></a>"], "document 1: line 1, column 9: mismatched tag"),
        ([ITEM % (1, RSS_DATE), "<a/>"], "document 1: there is nothing at //item/pubDate"),
        ([ITEM % (1, "soon")], "document 0: 'soon' at //item/pubDate is not a time"),
        ([ITEM % (1, RSS_DATE), "posts.xml"], "document 1 is a text that does not begin with <"),
        ([ITEM % (1, RSS_DATE), 7], "document 1 is int"),
        ([Path("nowhere.xml")], "cannot read nowhere.xml"),
        ([{"ts": 1, "document": b"<a/>"}, {"ts": 2, "document": b"<a>"}], "row 1: line 1"),
        ("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "declares the entity 'x'"),
        ("<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a>&x;</a>", "the entity 'x'"),
        ("<a>" * 10_000 + "</a>" * 10_000, "more than 512 levels"),
        ("<a \ud800='1'/>", "half a character"),
        ("", "does not begin with <"),
        (b"", "no element found"),
    ],
)
def test_all_of_an_append_is_refused(given: object, says: str, tmp_path: Path) -> None:
    blog = ev.open(tmp_path / "db").create_stream("blog", format="xml", time="//item/pubDate")
    blog.append(ITEM % (0, ISO_DATE))
    with pytest.raises(IngestError, match=says.replace("(", r"\(")) as raised:
        blog.append(given)
    assert raised.value.hint
    assert len(blog) == 1
    blog.append(ITEM % (2, ISO_DATE))
    assert len(blog) == 2


def test_a_large_document_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "MOST_BYTES", 100)
    path = tmp_path / "large.xml"
    path.write_bytes(b"<a>" + b"x" * 100 + b"</a>")
    blog = ev.open(tmp_path / "db").create_stream("blog", format="xml")
    with pytest.raises(IngestError, match=r"large\.xml: a document of 107 bytes"):
        blog.append(path)


def creating(db: ev.Database) -> dict[str, Callable[[], object]]:
    return {
        "is no format": lambda: db.create_stream("s", format="json"),
        "have no attributes": lambda: db.create_stream("s", {"a": "string"}, format="xml"),
        "no attributes and no format": lambda: db.create_stream("s"),
        "not the path of a time": lambda: db.create_stream("s", format="xml", time="item"),
        "ends too early": lambda: db.create_stream("s", format="xml", time="//item["),
        "ends with a step": lambda: db.create_stream("s", format="xml", time="//item[a]"),
        "has no variables": lambda: db.create_stream("s", format="xml", time="//item->x"),
        "has the documents": lambda: db.stream("blog").drop_attribute("document"),
    }


def test_what_no_stream_of_documents_can_be(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    blog = db.create_stream("blog", format="xml")
    for says, call in creating(db).items():
        with pytest.raises((SchemaError, ParseError), match=says):
            call()
    assert db.streams() == ("blog",)
    blog.add_attribute("lang", "string")
    blog.append("<a/>")
    blog.append([{"ts": 1, "document": b"<b/>", "lang": "en"}])
    assert blog.events().to_arrow().column("lang").to_pylist() == ["en", None]
    assert blog.schema.documents is not None


def test_a_live_query_goes_on_behind_a_broken_document(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    blog = db.create_stream("blog", format="xml")
    found: list[str] = []
    query = db.subscribe(
        "SELECT a FROM XPATH (blog//author->a)",
        lambda result: found.extend(result.to_arrow().column("a").to_pylist()),
    )
    blog.append("<r><author>x</author></r>")
    with pytest.raises(IngestError):
        blog.append("<r><author>y</r>")
    blog.append("<r><author>z</author></r>")
    query.finish()
    assert found == ["x", "z"]


def mutated(choose: random.Random, base: bytes) -> bytes:
    """A document some of whose bytes are others, gone, or there again."""
    found = bytearray(base)
    for _ in range(choose.choice([1, 1, 2, 8])):
        place, length = choose.randrange(len(found) + 1), choose.randrange(1, 6)
        signs = (b"<", b">", b"/", b"&", b"'", b"<a>", b"</a>", b"]]>", b"\0", b"\xff", b"x", b"<!")
        part = choose.choice([b"", choose.choice(signs), bytes(found[place : place + 9])])
        found[place : place + choose.choice([0, length])] = part
    return bytes(found)


def test_thousands_of_mutated_documents() -> None:
    """Each is read as the standard library reads it, or refused with a place; none is lost."""
    choose = random.Random(23)
    bases = [
        (ITEM % (1, RSS_DATE)).encode(),
        b"<a xmlns='u' xmlns:v='v'><v:b k='1'>x</v:b><b/>y<![CDATA[z]]><!-- c --></a>",
        "<?xml version='1.0' encoding='utf-8'?><r><item><author>日</author></item></r>".encode(),
        b"<!DOCTYPE r [<!ENTITY e 'x'><!ATTLIST r k CDATA 'v'>]><r><author>1</author></r>",
    ]
    patterns = ["s//item[@id->i]/author->a", "s//*->x/@*->k", "s/r//author->a", "s//{u}b->b"]
    asked = [AskedPattern.of_variables(parse_pattern(text).pattern.root) for text in patterns]
    stage, read, refused, named = PathStage(asked), 0, 0, 0
    for _ in range(5_000):
        document = mutated(choose, choose.choice(bases))
        try:
            (part,) = read_given([GivenDocument(document, "it")])
        except IngestError as error:
            refused += 1
            named += error.message.startswith("it: ")
            continue
        read += 1
        (found,) = stage.find_in(part.nodes)
        for view, each in enumerate(asked):
            expected = tuples(each.root, document, each.views[0])
            numbers = [tuple(node.number for node in nodes) for nodes in expected]
            assert list(map(tuple, found.of_view(view)[1].tolist())) == numbers, document
        assert ET.fromstring(document) is not None
    assert read > 500
    assert named == refused > 500


def test_a_killed_process_loses_no_document(tmp_path: Path) -> None:
    """A child appends and says so, until it is killed in the middle of whatever it does."""
    blog = ev.open(tmp_path / "db").create_stream("blog", format="xml")
    assert len(blog) == 0
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            stream = ev.open(tmp_path / "db").stream("blog")
            for number in range(1_000_000):
                stream.append(f"<n>{number}</n>")
                os.write(writing, b".")
        finally:
            os._exit(1)
    os.close(writing)
    said = b""
    while len(said) < 20 and (more := os.read(reading, 100)):
        said += more
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 1_000):
        said += more
    os.close(reading)
    found = stored(ev.open(tmp_path / "db").stream("blog"))
    assert 20 <= len(said) <= len(found) <= len(said) + 1
    assert found == [b"<n>%d</n>" % number for number in range(len(found))]


def test_a_feed_takes_documents(tmp_path: Path) -> None:
    blog = ev.open(tmp_path / "db").create_stream("blog", format="xml")
    with blog.feed() as feed:
        tickets = [feed.put("<a/>"), feed.put([b"<b/>", "<c/>"])]
        with pytest.raises(IngestError, match="mismatched tag"):
            feed.put("<a></b>")
        for ticket in tickets:
            ticket.result()
    assert sorted(stored(blog)) == [b"<a/>", b"<b/>", b"<c/>"]
