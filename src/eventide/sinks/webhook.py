"""Rows as JSON in the body of an HTTP POST.

POST /hook
Content-Type: application/json
Idempotency-Key: alerts-500-502
Eventide-Timestamp: 1772438400
Eventide-Signature: sha256=<HMAC-SHA256 of "1772438400." and the body>

{"query": "alerts", "first_row": 500, "rows": [{"car": "a"}, {"car": "b"}]}
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException, responses
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, urlsplit

import pyarrow as pa

from eventide.errors import SinkError
from eventide.plan.times import Duration, duration_us
from eventide.sinks.contract import Sink, rows_from
from eventide.sinks.files import json_lines
from eventide.sinks.words import cut
from eventide.visible import visible

TIMEOUT = "10 s"
BATCH = 500
SHOWN_ANSWER = 200
"""So many letters of a server's answer are part of the error."""
LATER = (408, 425, 429)
"""Client errors after which the same request may work; so may it after all server errors."""


class Webhook(Sink):
    """Posts rows to a URL, at most `batch` in a request; any 2xx says that they have arrived.

    With a `secret`, requests are signed; see `signature`. `timeout` is how long to wait for the
    connection and for the answer. Redirects are not followed: rows would go to another place than
    the one that was named.

    After a crash, rows may be posted again: the receiver tells by their numbers.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration = TIMEOUT,
        batch: int = BATCH,
        clock: Callable[[], float] = time.time,
    ) -> None:
        parts = checked_url(url)
        self.url = url
        # A path or a query may hold a key: messages show neither.
        port = "" if parts.port is None else f":{parts.port}"
        self.place = f"{parts.scheme}://{parts.hostname}{port}"
        self.secret = secret.encode() if isinstance(secret, str) else secret
        self.headers = checked_headers(headers or {})
        self.timeout_s = duration_us(timeout) / 1e6
        if batch < 1 or self.timeout_s <= 0:
            message = "a request has at least one row, and takes some time"
            hint = f'write batch={BATCH}, timeout="{TIMEOUT}"'
            raise SinkError(message, hint=hint, try_again=False)
        self.batch = batch
        self.clock = clock
        self.opener = opener()
        self.query: str | None = None
        self.key = ""
        self.next_row: int | None = None

    def begin(self, query: str | None, schema: pa.Schema) -> None:  # noqa: ARG002
        """Remember whose rows these are. What the receiver has is not known."""
        self.query = query
        # Rows of two runs without a name have the same numbers, and are not the same rows.
        self.key = uuid.uuid4().hex if query is None else quote(query, safe="")
        self.next_row = None

    def take(self, rows: pa.RecordBatch, first_row: int) -> None:
        """Post rows. If a request fails, those before it are not posted again."""
        if self.next_row is None:
            self.next_row = first_row
        fresh = rows_from(rows, first_row, self.next_row)
        for start in range(0, fresh.num_rows, self.batch):
            part = fresh.slice(start, self.batch)
            self.post(part, self.next_row)
            self.next_row += part.num_rows

    def skip(self, until: int) -> None:
        """Go on at a later row."""
        if self.next_row is not None:
            self.next_row = max(self.next_row, until)

    def post(self, rows: pa.RecordBatch, first_row: int) -> None:
        """Send one request, and raise an error unless the answer is a 2xx."""
        head = json.dumps({"query": self.query, "first_row": first_row}, ensure_ascii=False)
        lines = ", ".join(json_lines(rows).to_pylist())
        body = f'{head.removesuffix("}")}, "rows": [{lines}]}}'.encode()
        stamp = str(int(self.clock()))
        headers = {
            "User-Agent": "eventide",
            **self.headers,
            "Content-Type": "application/json",
            "Idempotency-Key": f"{self.key}-{first_row}-{first_row + rows.num_rows}",
            "Eventide-Timestamp": stamp,
        }
        if self.secret is not None:
            headers["Eventide-Signature"] = signature(self.secret, stamp, body)
        # The scheme is http or https, and the opener knows no other.
        request = urllib.request.Request(self.url, body, headers, method="POST")  # noqa: S310
        try:
            self.opener.open(request, timeout=self.timeout_s).close()
        except HTTPError as error:
            with error:
                raise self.refused(error) from None
        except (HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            message = f"cannot post to {self.place}: {reason or type(reason).__name__}"
            raise SinkError(message, hint="check the address and the network") from error

    def refused(self, error: HTTPError) -> SinkError:
        """Return the error for an answer that is not a 2xx."""
        said = f"{error.code} {responses.get(error.code, '')}".rstrip()
        message = f"{self.place} answered {said}"
        if 300 <= error.code < 400:
            return SinkError(message, hint=redirect_hint(error), try_again=False)
        text = b""
        with suppress(HTTPException, OSError):
            text = error.read(4 * SHOWN_ANSWER)
        shown = " ".join(text.decode(errors="replace").split())
        if shown:
            message = f"{message}: {cut(visible(shown), SHOWN_ANSWER)}"
        again = error.code in LATER or error.code >= 500
        hint = "the same rows may be taken later" if again else "the same rows would fail again"
        return SinkError(message, hint=hint, try_again=again)

    def __repr__(self) -> str:
        return f"<Webhook {self.place}>"


def signature(secret: bytes | str, timestamp: str, body: bytes) -> str:
    """Return what the header `Eventide-Signature` has to be for a request.

    `timestamp` is the header `Eventide-Timestamp`, in seconds since 1970. It is signed as well: a
    receiver that refuses old ones refuses recorded requests, too.

    >>> signature("secret", "1772438400", b"{}")[:20]
    'sha256=17644f4476083'
    """
    key = secret.encode() if isinstance(secret, str) else secret
    signed = timestamp.encode() + b"." + body
    return f"sha256={hmac.new(key, signed, hashlib.sha256).hexdigest()}"


def opener() -> urllib.request.OpenerDirector:
    """Return what opens http and https, through the proxies of the environment, and nothing else.

    It follows no redirects.
    """
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.UnknownHandler,
    ):
        made.add_handler(handler())
    return made


def checked_url(url: str) -> SplitResult:
    """Return the parts of a URL that rows can be posted to."""
    hint = "write it as in https://example.org/hook"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        message = f"the URL of the webhook is wrong: {error}"
        raise SinkError(message, hint=hint, try_again=False) from error
    if re.search(r"[^!-~]", url):
        message = "the URL of the webhook has spaces, control characters or letters beyond ASCII"
        raise SinkError(message, hint="write them as in %20", try_again=False)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"rows are posted to http and https, not to {parts.scheme or 'nothing'!r}"
        raise SinkError(message, hint=hint, try_again=False)
    if parts.username is not None or parts.password is not None:
        message = "the URL of the webhook has a user or a password"
        hint = 'give headers={"Authorization": "Basic …"}'
        raise SinkError(message, hint=hint, try_again=False)
    return parts


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers; refuse those that are no headers, or would be more than one."""
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9-]+", name) or not re.fullmatch(r"[ -~]*", value):
            message = f"{name!r:.80} is not a header that can be sent"
            raise SinkError(message, hint="use visible letters of ASCII", try_again=False)
    return dict(headers)


def redirect_hint(error: HTTPError) -> str:
    """Say where a redirect leads, without a path that may hold a key."""
    with suppress(ValueError):
        target = urlsplit(error.headers.get("Location", ""))
        if target.scheme and target.hostname:
            return f"redirects are not followed; this one leads to {target.scheme}://" + cut(
                visible(target.hostname), SHOWN_ANSWER
            )
    return "redirects are not followed: give the address that it leads to"
