"""How a stream is stored: chosen when it is created; some of it can be changed later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from eventide.errors import SchemaError, StoreError, listed
from eventide.schema import MAX_TS_US, MIN_TS_US, TIMESTAMP, Schema
from eventide.store.index.aggregates import BoundAggregate, find_registered
from eventide.store.index.summaries import SummaryLayout
from eventide.store.segments.leaf import Codec

Durability = Literal["none", "group", "batch"]
Order = Literal["time", "arrival"]

DEFAULT_COMMIT_INTERVAL_MS = 20
DEFAULT_SPARE = 0.1

SPOKEN = {
    "split_us": "split",
    "keep_us": "keep",
    "keep_until": "keep",
    "commit_interval_ms": "commit_interval",
    "indexes": "index",
    "auto_index": "index",
}
"""The name of an option for users, if it is another one."""
LARGEST = {
    "split_us": MAX_TS_US - MIN_TS_US,
    "keep_us": MAX_TS_US - MIN_TS_US,
    "keep_bytes": 2**63 - 1,
    "commit_interval_ms": 3_600_000,
}
HINTS = {
    "split_us": 'a length of time such as "1 day", and not over ten thousand years',
    "keep_us": 'a length of time such as "90 days", and not over ten thousand years',
    "keep_bytes": "a number of bytes, such as 10**12",
    "commit_interval_ms": 'a length of time such as "20 ms", and not over an hour',
}


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream is stored.

    durability         `batch`: an append returns when its events are on the disk. `group`: it
                       returns at once, and the disk has them `commit_interval_ms` later at most.
                       `none`: the operating system writes when it likes. In all three a process
                       that is killed loses nothing, and a power failure never damages a stream.
    commit_interval_ms see above
    codec              lz4, zstd or none
    split_us           a new segment begins at every multiple of this many microseconds; without
                       it, when a segment is full
    order              `time`, or `arrival`: segments keep events as they came, and sort on reading
    summaries          the attributes whose aggregates the index keeps; None is all
    aggregates         further aggregates, as (name, attribute)
    indexes            the attributes that have a secondary index
    auto_index         whether the store adds and drops secondary indexes by what it measures
    spare              how much a leaf may grow by late events before it is split
    keep_us            retention: events older than this, measured from the newest, may go
    keep_until         retention: the attribute that says when an event is gone; null is never
    keep_bytes         retention: the oldest segments go while the stream is larger
    zoneless           the times, `ts` or attributes, that Spark shows as TIMESTAMP_NTZ
    """

    durability: Durability = "batch"
    commit_interval_ms: int = DEFAULT_COMMIT_INTERVAL_MS
    codec: Codec = "lz4"
    split_us: int | None = None
    order: Order = "time"
    summaries: tuple[str, ...] | None = None
    aggregates: tuple[tuple[str, str], ...] = ()
    indexes: tuple[str, ...] = ()
    auto_index: bool = False
    spare: float = DEFAULT_SPARE
    keep_us: int | None = None
    keep_bytes: int | None = None
    zoneless: tuple[str, ...] = ()
    keep_until: str | None = None

    def __post_init__(self) -> None:
        one_of("durability", self.durability, get_args(Durability))
        one_of("codec", self.codec, get_args(Codec))
        one_of("order", self.order, get_args(Order))
        for name in ("split_us", "keep_us", "keep_bytes", "commit_interval_ms"):
            value = getattr(self, name)
            if value is not None and not (is_whole(value) and 0 < value <= LARGEST[name]):
                message = f"option {SPOKEN.get(name, name)} is {value!r}"
                raise StoreError(message, hint=f"it is {HINTS[name]}")
        if isinstance(self.spare, (str, bool)) or not 0 <= self.spare <= 1:
            message = f"option spare is {self.spare!r}"
            raise StoreError(message, hint="it is a fraction between 0 and 1; 0.1 is the default")

    def checked(self, schema: Schema) -> StreamOptions:
        """Refuse options about attributes that the stream does not have, or that do not fit."""
        named = [*(self.summaries or ()), *self.indexes, *(on for _, on in self.aggregates)]
        for attribute in named:
            if attribute not in schema.names:
                message = f"no attribute {attribute!r}"
                raise SchemaError(message, hint=f"there are {listed(schema.names)}")
        for attribute in self.zoneless:
            if schema.type_of(attribute) != TIMESTAMP:
                message = f"option zoneless names {attribute!r}, which is no timestamp"
                raise SchemaError(message, hint="it names ts, or attributes of type timestamp")
        if self.keep_until is not None:
            self.check_lifetimes(self.keep_until, schema)
        known = [BoundAggregate(*pair) for pair in self.aggregates if find_registered(pair[0])]
        # Raises if an aggregate lacks another that it needs: no segment could ever be written.
        SummaryLayout.of(schema, schema.names if self.summaries is None else self.summaries, known)
        return self

    def check_lifetimes(self, attribute: str, schema: Schema) -> None:
        """Refuse an attribute that cannot say when events are gone."""
        times = [each.name for each in schema.attributes if each.type == TIMESTAMP]
        there_are = f"it names a timestamp: {listed(times)}" if times else "there is no timestamp"
        if attribute not in times:
            message = f"option keep names {attribute!r}, which is no attribute of type timestamp"
            raise SchemaError(message, hint=f'{there_are}; or it is a length such as "90 days"')
        if schema.key:
            message = f"a relation cannot keep its rows until {attribute!r}"
            hint = "a row is there until another takes its place, or deletes it"
            raise SchemaError(message, hint=hint)
        if self.summaries is not None and attribute not in self.summaries:
            message = f"option keep names {attribute!r}, which the index does not summarise"
            raise SchemaError(message, hint=f"add {attribute!r} to summaries")

    def with_aggregate(self, name: str, attribute: str) -> StreamOptions:
        """Return the options with one more aggregate in the index."""
        wanted = dict.fromkeys((*self.aggregates, (name, attribute)))
        return replace(self, aggregates=tuple(wanted))

    def with_index(self, attribute: str) -> StreamOptions:
        """Return the options with one more secondary index."""
        return replace(self, indexes=tuple(dict.fromkeys((*self.indexes, attribute))))

    def without_index(self, attribute: str) -> StreamOptions:
        """Return the options without the secondary index of an attribute."""
        kept = tuple(each for each in self.indexes if each != attribute)
        if kept == self.indexes:
            message = f"there is no index on {attribute!r}"
            raise StoreError(message, hint=f"there are indexes on {listed(kept) or 'nothing'}")
        return replace(self, indexes=kept)

    def without_attribute(self, name: str) -> StreamOptions:
        """Return the options of a stream that loses an attribute."""
        kept = None if self.summaries is None else tuple(a for a in self.summaries if a != name)
        return replace(
            self,
            summaries=kept,
            aggregates=tuple(pair for pair in self.aggregates if pair[1] != name),
            indexes=tuple(a for a in self.indexes if a != name),
            zoneless=tuple(a for a in self.zoneless if a != name),
        )

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads back."""
        entry = asdict(self)
        if self.keep_until is None:
            # Streams without it stay readable for what does not know it.
            del entry["keep_until"]
        return entry

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> StreamOptions:
        """Read what `to_json` wrote, or what a user gave as keywords."""
        known = {each.name for each in fields(cls)}
        for name in entry:
            if name not in known:
                message = f"no option {name!r}"
                spoken = sorted({SPOKEN.get(each, each) for each in known})
                raise StoreError(message, hint=f"the options are {listed(spoken)}")
        values = dict(entry)
        for name in ("summaries", "indexes", "zoneless"):
            if values.get(name) is not None:
                values[name] = tuple(dict.fromkeys(map(str, values[name])))
        if "aggregates" in values:
            values["aggregates"] = tuple((str(n), str(a)) for n, a in values["aggregates"])
        return cls(**values)


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; True is not one."""
    return isinstance(value, int) and not isinstance(value, bool)


def one_of(option: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that an option cannot have."""
    if value not in allowed:
        message = f"option {option} is {value!r}"
        raise StoreError(message, hint=f"it is one of {listed(allowed)}")
