"""Rows posted to a server on loopback: what it gets, and what its answers mean."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest

from eventide.errors import SinkError
from eventide.sinks import Sink, Webhook, signature
from tests.sinks.rows import SCHEMA, rows_between

Answer = tuple[int, Mapping[str, str], bytes]
OK: Answer = (204, {}, b"")


@dataclass
class Request:
    """A request as the server got it."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def rows(self) -> list[int]:
        """The numbers of the rows."""
        return [row["row"] for row in json.loads(self.body)["rows"]]


@dataclass
class Server:
    """A server that answers as it is told, and 204 when it is told nothing."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server on a free port of loopback."""
    known = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known.requests.append(Request(self.path, dict(self.headers.items()), body))
            status, headers, answer = known.answers.pop(0) if known.answers else OK
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving() as known:
        yield known


def begun(url: str, query: str | None = "alerts", **options: object) -> Webhook:
    """Return a sink for the rows of a query."""
    sink = Webhook(url, **options)  # type: ignore[arg-type]
    sink.begin(query, SCHEMA)
    return sink


def test_rows_are_posted_with_their_numbers(server: Server) -> None:
    sink = begun(f"{server.url}/hook?key=1", "my alerts")
    assert isinstance(sink, Sink)
    sink.take(rows_between(500, 502), 500)
    assert sink.safe() is None
    (request,) = server.requests
    assert request.path == "/hook?key=1"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Idempotency-Key"] == "my%20alerts-500-502"
    assert "Eventide-Signature" not in {name.title() for name in request.headers}
    first, second = rows_between(500, 502).to_pylist()
    assert json.loads(request.body) == {
        "query": "my alerts",
        "first_row": 500,
        "rows": [
            {**first, "ts": "1970-01-01T00:08:20Z"},
            {**second, "ts": "1970-01-01T00:08:21Z"},
        ],
    }
    sink.flush()
    sink.close()


def test_requests_are_signed(server: Server) -> None:
    sink = begun(server.url, secret="pss", clock=lambda: 1_772_438_400.9)
    sink.take(rows_between(0, 1), 0)
    begun(server.url, secret=b"pss", clock=lambda: 1_772_438_401.0).take(rows_between(0, 1), 0)
    for request, stamp in zip(server.requests, ("1772438400", "1772438401"), strict=True):
        headers = {name.title(): value for name, value in request.headers.items()}
        assert headers["Eventide-Timestamp"] == stamp
        assert headers["Eventide-Signature"] == signature("pss", stamp, request.body)
        assert headers["Eventide-Signature"] != signature("pst", stamp, request.body)
        assert headers["Eventide-Signature"] != signature("pss", "1", request.body)


def test_the_signature_is_that_of_the_standard() -> None:
    # From the command line: printf '5.{}' | openssl dgst -sha256 -hmac key
    expected = "9be615aec64f0d044b5ad6854ab1d893ec88617fb728d2149dcd3a3428e8c45d"
    assert signature("key", "5", b"{}") == f"sha256={expected}"


def test_many_rows_are_several_requests_and_none_is_posted_twice(server: Server) -> None:
    server.answers = [OK, (503, {}, b"busy"), OK]
    sink = begun(server.url, batch=2)
    with pytest.raises(SinkError, match="answered 503") as failed:
        sink.take(rows_between(0, 5), 0)
    assert failed.value.try_again
    sink.take(rows_between(0, 5), 0)
    sink.take(rows_between(3, 6), 3)
    posted = [request.rows for request in server.requests]
    assert posted == [[0, 1], [2, 3], [2, 3], [4], [5]]
    keys = [request.headers["Idempotency-Key"] for request in server.requests]
    assert keys == ["alerts-0-2", "alerts-2-4", "alerts-2-4", "alerts-4-5", "alerts-5-6"]


def test_a_gap_is_refused_unless_rows_were_skipped(server: Server) -> None:
    sink = begun(server.url)
    sink.skip(9)
    # After a restart rows begin where they were acknowledged.
    sink.take(rows_between(10, 12), 10)
    with pytest.raises(SinkError, match="rows 12 to 13 are missing"):
        sink.take(rows_between(14, 15), 14)
    sink.skip(14)
    sink.skip(11)
    sink.take(rows_between(14, 15), 14)
    assert [request.rows for request in server.requests] == [[10, 11], [14]]


def test_runs_without_a_name_have_keys_of_their_own(server: Server) -> None:
    for _ in range(2):
        begun(server.url, None).take(rows_between(0, 1), 0)
    assert [json.loads(request.body)["query"] for request in server.requests] == [None, None]
    one, other = (request.headers["Idempotency-Key"] for request in server.requests)
    assert one != other


ANSWERS = [(200, True), (201, True), (202, True), (204, True), (299, True)]
FAILURES = [(400, False), (401, False), (404, False), (410, False), (413, False), (422, False)]
LATER = [(408, True), (425, True), (429, True), (500, True), (502, True), (503, True)]


@pytest.mark.parametrize("status", [status for status, _ in ANSWERS])
def test_every_2xx_is_success(server: Server, status: int) -> None:
    server.answers = [(status, {}, b"" if status == 204 else b"thanks")]
    begun(server.url).take(rows_between(0, 1), 0)
    assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "again"), [*FAILURES, *LATER])
def test_other_answers_say_whether_to_try_again(server: Server, status: int, again: bool) -> None:
    server.answers = [(status, {}, b"no\x1b[31m such\n  thing " + b"x" * 10_000)]
    with pytest.raises(SinkError) as failed:
        begun(server.url).take(rows_between(0, 1), 0)
    assert failed.value.try_again is again
    assert failed.value.message.startswith(f"{server.url} answered {status} ")
    assert "no␛[31m such thing xxx" in failed.value.message
    assert len(failed.value.message) < 300


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
def test_redirects_are_not_followed(server: Server, status: int) -> None:
    with serving() as other:
        server.answers = [(status, {"Location": f"{other.url}/secret"}, b"")]
        with pytest.raises(SinkError, match=f"answered {status}") as failed:
            begun(server.url).take(rows_between(0, 1), 0)
        assert other.requests == []
    assert len(server.requests) == 1
    assert not failed.value.try_again
    assert "redirects are not followed; this one leads to http://127.0.0.1" in str(failed.value)
    assert "secret" not in str(failed.value)


def test_a_redirect_to_nowhere_is_said_too(server: Server) -> None:
    server.answers = [(302, {"Location": "http://["}, b"")]
    with pytest.raises(SinkError, match="redirects are not followed: give the address"):
        begun(server.url).take(rows_between(0, 1), 0)


def test_a_server_that_is_not_there_may_come_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(SinkError, match=f"cannot post to http://127.0.0.1:{port}: ") as failed:
        begun(f"http://127.0.0.1:{port}/key").take(rows_between(0, 1), 0)
    assert failed.value.try_again
    assert "key" not in str(failed.value)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-", b"Nonsense\r\n\r\n"])
def test_a_server_that_does_not_answer_in_time_or_in_words(sent: bytes) -> None:
    done = Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(sent)
                done.wait()

        thread = Thread(target=answer)
        thread.start()
        try:
            port = listening.getsockname()[1]
            with pytest.raises(SinkError, match="cannot post to") as failed:
                begun(f"http://127.0.0.1:{port}", timeout="200 ms").take(rows_between(0, 1), 0)
            assert failed.value.try_again
        finally:
            done.set()
            thread.join()


def test_headers_are_sent_and_checked(server: Server) -> None:
    begun(server.url, headers={"Authorization": "Bearer t"}).take(rows_between(0, 1), 0)
    assert server.requests[0].headers["Authorization"] == "Bearer t"
    for name, value in [("A\r\nB", "c"), ("A", "b\r\nC: d"), ("", "x"), ("A", "ü")]:
        with pytest.raises(SinkError, match="is not a header"):
            Webhook(server.url, headers={name: value})


def test_a_server_that_speaks_no_tls_is_refused(server: Server) -> None:
    with pytest.raises(SinkError, match=r"cannot post to https://127\.0\.0\.1") as failed:
        begun(server.url.replace("http:", "https:")).take(rows_between(0, 1), 0)
    assert "SSL" in failed.value.message
    assert server.requests == []


def test_proxies_of_the_environment_are_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    begun("http://eventide.invalid/hook").take(rows_between(0, 1), 0)
    assert [request.path for request in server.requests] == ["http://eventide.invalid/hook"]


URLS = {
    "file:///etc/passwd": "not to 'file'",
    "ftp://example.org/": "not to 'ftp'",
    "example.org/hook": "not to 'nothing'",
    "http:///hook": "not to 'http'",
    "https://ann:pw@example.org/": "has a user or a password",
    "https://example.org:http/": "is wrong",
    "https://[example.org/": "is wrong",
    "https://example.org/a b": "has spaces",
    "https://example.org/\r\nX: y": "has spaces",
}


@pytest.mark.parametrize("url", URLS)
def test_only_http_and_https(url: str) -> None:
    with pytest.raises(SinkError) as refused:
        Webhook(url)
    assert URLS[url] in str(refused.value)
    assert not refused.value.try_again


def test_options_are_checked() -> None:
    wrong: list[dict[str, Any]] = [{"batch": 0}, {"timeout": "0 s"}]
    for options in wrong:
        with pytest.raises(SinkError, match="at least one row, and takes some time"):
            Webhook("http://localhost", **options)


def test_secrets_are_not_shown() -> None:
    sink = Webhook("https://example.org:99/key/1?token=2", secret="hidden", headers={"X": "key"})
    assert repr(sink) == "<Webhook https://example.org:99>"


def test_no_rows_are_no_request(server: Server) -> None:
    begun(server.url).take(rows_between(0, 0), 0)
    assert server.requests == []


def test_values_are_json_whatever_they_are(server: Server) -> None:
    rows = pa.record_batch({'ü"': ['a\\"\n', None], "x": [float("nan"), 1.0]})
    sink = Webhook(server.url)
    sink.begin('q"ü', rows.schema)
    sink.take(rows, 0)
    assert json.loads(server.requests[0].body) == {
        "query": 'q"ü',
        "first_row": 0,
        "rows": [{'ü"': 'a\\"\n', "x": "NaN"}, {'ü"': None, "x": 1.0}],
    }
