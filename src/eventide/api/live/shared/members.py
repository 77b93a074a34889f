"""The queries of a durable set as they are kept: what it takes to plan them again.

Queries that were added together are planned together again, with what names meant then, so that the
same of them share the same parts. Those that have left since are planned with them, and left out.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.live.shared.asked import AskedQueries
from eventide.api.named import from_json, to_json
from eventide.kernels.compiled import Int64s
from eventide.operators.state import join_parts, split_parts
from eventide.plan.named import NamedQuery
from eventide.schema import Schema


@dataclass(frozen=True, slots=True)
class NamesThen:
    """What names meant when queries were planned: streams, and named queries."""

    catalog: Mapping[str, Schema]
    inlined: Mapping[str, NamedQuery]

    def and_also(self, other: NamesThen) -> NamesThen | None:
        """Return what both say, None if they contradict each other."""
        both = self.catalog.keys() & other.catalog.keys()
        if self.inlined != other.inlined or any(
            self.catalog[name] != other.catalog[name] for name in both
        ):
            return None
        if len(both) == len(other.catalog):
            return self
        return NamesThen({**self.catalog, **other.catalog}, self.inlined)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        streams = {
            name: {"columns": each.to_json(), "key": list(each.key)}
            for name, each in self.catalog.items()
        }
        return {"streams": streams, "named": [to_json(each) for each in self.inlined.values()]}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> NamesThen:
        """Read what `to_json` wrote."""
        streams = {
            str(name): Schema.of(each["columns"], tuple(each["key"]))
            for name, each in entry["streams"].items()
        }
        named = [from_json(each) for each in entry["named"]]
        return cls(streams, {each.name.lower(): each for each in named})


@dataclass(frozen=True, slots=True)
class Added:
    """Queries that were added together."""

    wanted: AskedQueries
    first: int
    """The number of the first one."""
    parts_from: int
    """The number of the first part that they share."""
    names: int
    """The place of what names meant to them."""
    position: Mapping[str, int]
    """The number of the next event of each stream of the set when they began."""

    @property
    def end(self) -> int:
        """The number behind the last one."""
        return self.first + len(self.wanted)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back, with the table of parameters."""
        return {
            "texts": list(self.wanted.texts),
            "keys": None if self.wanted.names is None else list(self.wanted.names),
            "first": self.first,
            "parts_from": self.parts_from,
            "names": self.names,
            "position": dict(self.position),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any], table: bytes) -> Added:
        """Read what `to_json` and `table_bytes` wrote."""
        keys = entry["keys"]
        parameters = pa.ipc.open_stream(table).read_all() if table else None
        return cls(
            AskedQueries(tuple(entry["texts"]), None if keys is None else tuple(keys), parameters),
            int(entry["first"]),
            int(entry["parts_from"]),
            int(entry["names"]),
            {str(name): int(seq) for name, seq in entry["position"].items()},
        )

    @property
    def table_bytes(self) -> bytes:
        """The table of parameters, written out; nothing if there is none."""
        if self.wanted.parameters is None:
            return b""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.wanted.parameters.schema) as writer:
            writer.write_table(self.wanted.parameters)
        return bytes(sink.getvalue())


@dataclass
class Members:
    """All queries that a set has, in the order in which they came."""

    added: list[Added] = field(default_factory=list)
    names: list[NamesThen] = field(default_factory=list)
    told: int = 0
    """How many of `names` are written down, as they are now."""

    def add(
        self,
        wanted: AskedQueries,
        first: int,
        parts_from: int,
        names: NamesThen,
        position: Mapping[str, int],
    ) -> Added:
        """Note queries that are added."""
        known = self.names[-1].and_also(names) if self.names else None
        if known is None:
            self.names.append(names)
        elif known is not self.names[-1]:
            self.names[-1] = known
            self.told = min(self.told, len(self.names) - 1)
        found = Added(wanted, first, parts_from, len(self.names) - 1, dict(position))
        self.added.append(found)
        return found

    def change(self, added: Added) -> dict[str, Any]:
        """Return what the journal says of queries that are added."""
        names = [each.to_json() for each in self.names[self.told :]]
        change = {
            "add": added.to_json(),
            "table": b64encode(added.table_bytes).decode(),
            "names": names,
            "names_from": self.told,
        }
        self.told = len(self.names)
        return change

    def changed(self, change: Mapping[str, Any]) -> Added:
        """Add what the journal says."""
        names = [NamesThen.from_json(each) for each in change["names"]]
        if names:
            self.names[change["names_from"] :] = names
        self.told = len(self.names)
        found = Added.from_json(change["add"], b64decode(change["table"]))
        self.added.append(found)
        return found

    def keep(self, here: Int64s) -> None:
        """Forget queries that were added together once all of them have left."""
        here = np.sort(here)
        self.added = [
            each
            for each in self.added
            if np.searchsorted(here, each.first) < np.searchsorted(here, each.end)
        ]

    def written(self, here: Int64s, facts: Mapping[str, Any]) -> bytes:
        """Write down the queries, which of them are here, and what else is known."""
        self.keep(here)
        all_numbers = [np.arange(each.first, each.end) for each in self.added]
        numbers = np.concatenate([np.empty(0, np.int64), *all_numbers])
        head = {
            "added": [each.to_json() for each in self.added],
            "names": [each.to_json() for each in self.names],
            "left": numbers[~np.isin(numbers, here)].tolist(),
            **facts,
        }
        self.told = len(self.names)
        return join_parts([json.dumps(head).encode(), *(each.table_bytes for each in self.added)])

    @classmethod
    def read(cls, written: bytes) -> tuple[Members, dict[str, Any]]:
        """Read what `written` wrote: the queries, and what else is known."""
        head, *tables = split_parts(written)
        facts = json.loads(head)
        added = [
            Added.from_json(entry, table)
            for entry, table in zip(facts.pop("added"), tables, strict=True)
        ]
        names = [NamesThen.from_json(each) for each in facts.pop("names")]
        return cls(added, names, len(names)), facts

    def texts(self) -> Iterator[tuple[int, str, dict[str, object] | None]]:
        """Yield the number of each query, its text and its parameters, if it has any."""
        for each in self.added:
            for place in range(len(each.wanted)):
                yield each.first + place, *each.wanted.query(place)
