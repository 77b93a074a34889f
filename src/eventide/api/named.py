"""The named queries of a database: CREATE STREAM, CREATE VIEW, DROP, and what reads what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from eventide.api.result import Result
from eventide.errors import BindError, EventideError, StoreError, listed
from eventide.lang.sql import plan_sql
from eventide.lang.sql.named.head import CreateRequest, DropRequest, NamedRequest
from eventide.lang.sql.named.inline import names_read
from eventide.lang.sql.named.stream import plan_stream
from eventide.lang.sql.statement import Statement
from eventide.plan.explain import explain
from eventide.plan.named import NamedKind, NamedQuery
from eventide.schema import INTERVAL, NULL, DataType, Schema
from eventide.store import Store
from eventide.store.definitions import (
    FILE,
    Definition,
    damaged,
    read_definitions,
    write_definitions,
)
from eventide.store.files.lock import write_lock
from eventide.store.store import STREAM_NAME

Named = Mapping[str, NamedQuery]
"""Named queries by their names in lower case."""
NO_FAILURES: Mapping[str, str] = {}

KINDS: Mapping[str, NamedKind] = {
    "stream": "stream",
    "stored stream": "stored stream",
    "view": "view",
}
LISTED: Mapping[NamedKind, str] = {
    "stream": "derived stream",
    "stored stream": "stored derived stream",
    "view": "view",
}
"""The kinds as `Database.streams` says them, where other streams are listed too."""


class StreamName(str):
    """The name of a stream or of a named query, and what kind it is."""

    __slots__ = ("failure", "kind")

    kind: str
    failure: str | None
    """Why the query of a stored derived stream has stopped, if it has."""

    @classmethod
    def of(cls, name: str, kind: str, failure: str | None = None) -> StreamName:
        """Return a name with its kind."""
        self = cls(name)
        self.kind = kind
        self.failure = failure
        return self


def names_of(store: Store, known: Named, failures: Mapping[str, str]) -> tuple[StreamName, ...]:
    """Return the names of streams, then those of named queries, each with its kind.

    `failures` say why stored derived streams have stopped, by name in lower case.
    """
    found = []
    for name in store.streams():
        named = known.get(name.lower())
        kind = "relation" if store.stream(name).schema.key else "stream"
        listed_as = kind if named is None else LISTED[named.kind]
        found.append(StreamName.of(name, listed_as, failures.get(name.lower())))
    rest = sorted(each.name for each in known.values() if each.kind != "stored stream")
    found += [StreamName.of(name, LISTED[known[name.lower()].kind]) for name in rest]
    return tuple(found)


class NamedQueries:
    """The named queries in a database folder; other processes may change them, too."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.file = store.path / FILE
        self.seen: tuple[int, int, int] | None = None
        """What identifies the file as it was when `known` was read."""
        self.known: Named = {}

    def all(self) -> Named:
        """Return all named queries."""
        seen = identity(self.file)
        if seen is None:
            return {}
        if seen != self.seen:
            self.known = {each.name.lower(): each for each in read_named(self.store.path)}
            self.seen = seen
        return self.known

    def has_stored(self) -> bool:
        """Whether there are stored derived streams."""
        return any(each.kind == "stored stream" for each in self.all().values())

    def inlined(self, without: Iterable[str] = ()) -> Named:
        """Return the queries that take the place of their names; rows of a stored one are read.

        `without` are names that mean something else.
        """
        hidden = {name.lower() for name in without}
        return {
            name: each
            for name, each in self.all().items()
            if each.kind != "stored stream" and name not in hidden
        }

    def catalog(self) -> dict[str, Schema]:
        """Return the schema of every stored stream."""
        return {name: self.store.stream(name).schema for name in self.store.streams()}

    def create(self, request: CreateRequest) -> Result:
        """Define a query by name; its text is checked first.

        A stored stream is not made here: who runs its query does that.
        """
        with request.pointing(), write_lock(self.store.path):
            known = dict(self.all())
            name = request.name.lower()
            if self.is_there(request, known):
                return said(request.name, request.kind, "exists already")
            named = NamedQuery(request.name, request.kind, request.query, request.lateness_us)
            refuse_circle(named, {**known, name: named}, request)
            known[name] = self.checked(named, {**known, name: named})
            for reader in self.readers(name, known):
                known[reader] = self.still_works(known[reader], known, request)
            write_named(self.store.path, known)
            return said(request.name, request.kind, "created")

    def is_there(self, request: CreateRequest, known: Named) -> bool:
        """Whether the name exists and may stay as it is; refuse a name that is taken."""
        name = request.name.lower()
        if not STREAM_NAME.fullmatch(request.name):
            message = f"{request.name!r} is not a name"
            hint = "use up to 100 letters, digits, _ and -"
            raise StoreError(message, span=request.span, hint=hint)
        stored = {each.lower() for each in self.store.streams()}
        if name in known and request.if_not_exists:
            return True
        if name in known and not request.replace:
            message = f"{known[name].name} exists already: it is a {known[name].kind}"
            hint = "write CREATE OR REPLACE, or drop it first"
            if request.end is not None:
                hint = f"write CREATE OR REPLACE STREAM {request.name} AS …, or DROP STREAM first"
            if "stored stream" in (request.kind, known[name].kind):
                hint = "drop it first, or choose another name"
            raise StoreError(message, span=request.span, hint=hint)
        if name in stored or (
            request.replace and request.kind == "stored stream" and name in known
        ):
            message = f"the stream {request.name!r} exists already"
            hint = "choose another name: a stream that holds events is not replaced"
            raise StoreError(message, span=request.span, hint=hint)
        return False

    def checked(self, named: NamedQuery, known: Named) -> NamedQuery:
        """Return a named query with its columns; an error says why it has no answer."""
        others = {name: each for name, each in known.items() if each.kind != "stored stream"}
        catalog = self.catalog()
        if named.kind == "view":
            plan_sql(named.text, catalog, indexed=catalog, named=others)
            return replace(named, columns=())
        plan = plan_stream(named, catalog, others)
        found = replace(named, columns=tuple(plan.row.items()))
        if named.kind == "stored stream":
            # Not every type can be stored.
            _ = found.schema
        # What reads it reads it in brackets.
        reading = f'SELECT * FROM "{named.name}"'  # noqa: S608 - names have no quotes
        plan_sql(reading, catalog, named={**others, named.name.lower(): found})
        return found

    def still_works(self, named: NamedQuery, known: Named, request: CreateRequest) -> NamedQuery:
        """Return a query that reads a name that is replaced, with its new columns."""
        if named.kind == "stored stream":
            message = f"{named.name} stores the rows of a query that reads {request.name}"
            raise BindError(message, span=request.span, hint=f"drop {named.name} first")
        try:
            found = self.checked(named, known)
        except EventideError as error:
            why = error.message.removeprefix(f"in the definition of {named.name}: ")
            message = f"{named.name} reads {request.name}, and would no longer work: {why}"
            hint = f"keep the columns that it reads, or drop {named.name} first"
            raise BindError(message, span=request.span, hint=hint) from None
        return found

    def drop(self, request: DropRequest) -> Result:
        """Forget a named query; a stored stream is deleted with its rows."""
        with request.pointing():
            named = self.forgotten(request)
            if named is None:
                return said(request.name, "view" if request.view else "stream", "is not there")
            if named.kind == "stored stream" and named.name in self.store.streams():
                self.store.drop_stream(named.name)
            return said(named.name, named.kind, "dropped")

    def forgotten(self, request: DropRequest) -> NamedQuery | None:
        """Remove a definition and return it; None if it may be missing, and is."""
        with write_lock(self.store.path):
            known = dict(self.all())
            named = known.get(request.name.lower())
            if named is None or request.view != (named.kind == "view"):
                if named is None and request.if_exists and not self.is_stored(request.name):
                    return None
                raise self.not_there(request, named)
            self.refuse_read(named.name, known, request)
            del known[named.name.lower()]
            write_named(self.store.path, known)
            return named

    def is_stored(self, name: str) -> bool:
        """Whether a stream of the store has a name."""
        return name.lower() in {each.lower() for each in self.store.streams()}

    def not_there(self, request: DropRequest, named: NamedQuery | None) -> StoreError:
        """Return the error for a name that cannot be dropped so."""
        word = "view" if request.view else "stream"
        if named is not None:
            message = f"{named.name} is a {named.kind}, not a {word}"
            hint = f"write DROP {'VIEW' if named.kind == 'view' else 'STREAM'} {named.name}"
        elif self.is_stored(request.name):
            message = f"{request.name} holds events, and no query defines it"
            hint = f"db.drop_stream({request.name!r}) deletes it with its events"
        else:
            message = f"no {word} {request.name!r}"
            names = [each.name for each in self.all().values()]
            hint = f"there are {listed(names)}" if names else "no query has a name yet"
        return StoreError(message, span=request.span, hint=hint)

    def refuse_read(self, name: str, known: Named, request: NamedRequest | None = None) -> None:
        """Refuse to drop what other queries read."""
        readers = [known[each].name for each in direct_readers(name.lower(), known)]
        if readers:
            message = f"{name} is read by {listed(readers)}"
            span = None if request is None else request.span
            raise StoreError(message, span=span, hint=f"drop {listed(readers)} first")

    def refuse_drop(self, name: str) -> None:
        """Refuse to drop a stream that named queries read, or that one defines."""
        known = self.all()
        named = known.get(name.lower())
        if named is not None:
            word = "VIEW" if named.kind == "view" else "STREAM"
            message = f"{named.name} is a {named.kind} that a query defines"
            raise StoreError(message, hint=f'write db.sql("DROP {word} {named.name}")')
        self.refuse_read(name, known)

    def explained(
        self,
        query: str | Statement,
        params: object = None,
        failures: Mapping[str, str] = NO_FAILURES,
    ) -> str:
        """Return the plans of the named queries that a query reads, as text.

        `failures` say why stored derived streams have stopped, by name in lower case.
        """
        known = self.all()
        shown: list[str] = []
        waiting = sorted(names_read(query, params) & known.keys()) if known else []
        done = set(waiting)
        while waiting:
            named = known[waiting.pop(0)]
            shown.append(self.explained_one(named, failures.get(named.name.lower())))
            below = sorted((names_read(named.text) & known.keys()) - done)
            done.update(below)
            waiting += below
        return "\n\n".join(shown)

    def explained_one(self, named: NamedQuery, failure: str | None = None) -> str:
        """Return the plan of a named query as text."""
        catalog, others = self.catalog(), self.inlined([named.name])
        if named.kind == "view":
            plan = plan_sql(named.text, catalog, indexed=catalog, named=others)
        else:
            plan = plan_stream(named, catalog, others)
        word = {"view": "View", "stream": "Stream", "stored stream": "Stored stream"}[named.kind]
        lines = (f"  {line}" for line in explain(plan).splitlines())
        stopped = [] if failure is None else [f"  failed: {failure.splitlines()[0]}"]
        return "\n".join((f"{word} {named.name} (named query)", *stopped, *lines))

    def readers(self, name: str, known: Named) -> list[str]:
        """Return the names that read a name, directly or not; each after what it reads."""
        found: list[str] = []
        for each in direct_readers(name, known):
            for reader in (each, *(self.readers(each, known) if each != name else ())):
                if reader != name:
                    # The last place is that behind all it reads.
                    found = [*(other for other in found if other != reader), reader]
        return found


def refuse_circle(named: NamedQuery, known: Named, request: NamedRequest) -> None:
    """Refuse a query that would read its own rows."""
    paths: list[tuple[str, ...]] = [(named.name.lower(),)]
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        for name in sorted(names_read(known[path[-1]].text) & known.keys()):
            if name == path[0]:
                shown = " → ".join(known[each].name for each in (*path, name))
                message = f"{named.name} would read itself: {shown}"
                raise BindError(message, span=request.span, hint="read something else")
            if name not in seen:
                seen.add(name)
                paths.append((*path, name))


def reached_names(query: str | Statement, known: Named, params: object = None) -> set[str]:
    """Return the named queries that a query reads, itself or through views."""
    found: set[str] = set()
    waiting = list(names_read(query, params) & known.keys()) if known else []
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if known[name].kind == "view":
            waiting += names_read(known[name].text) & known.keys()
    return found


def direct_readers(name: str, known: Named) -> list[str]:
    """Return the named queries whose text reads a name."""
    return [each for each, named in known.items() if name in names_read(named.text)]


def identity(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is replaced, None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def read_named(folder: Path) -> list[NamedQuery]:
    """Return the named queries of a database folder."""
    try:
        return [from_json(each) for each in read_definitions(folder)]
    except (ValueError, LookupError, TypeError) as error:
        raise damaged(folder, error) from error


def write_named(folder: Path, known: Named) -> None:
    """Replace the named queries of a database folder."""
    write_definitions(folder, [to_json(each) for each in known.values()])


def to_json(named: NamedQuery) -> Definition:
    """Return what `from_json` reads back."""
    return {
        "name": named.name,
        "kind": named.kind,
        "query": named.text,
        "lateness_us": named.lateness_us,
        "columns": [[name, str(kind)] for name, kind in named.columns],
    }


def from_json(entry: Definition) -> NamedQuery:
    """Read what `to_json` wrote."""
    return NamedQuery(
        str(entry["name"]),
        KINDS[entry["kind"]],
        str(entry["query"]),
        int(entry["lateness_us"]),
        tuple((str(name), type_of(kind)) for name, kind in entry["columns"]),
    )


def type_of(text: str) -> DataType:
    """Return a type by its name, also one that no stored stream has."""
    unstored = {str(each): each for each in (INTERVAL, NULL)}
    return unstored[text] if text in unstored else DataType.parse(text)


def said(name: str, kind: NamedKind, done: str) -> Result:
    """Return the answer to CREATE and DROP: one row that says what was done."""
    return Result(pa.table({"name": [name], "kind": [kind], "done": [done]}))
