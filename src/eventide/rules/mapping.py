"""Which stream a rule is about, and which column a field is: a small YAML.

streams:
  - stream: processes
    logsource: {category: process_creation, product: windows}
    fields: {Image: image, CommandLine: command_line, Hashes: null}
    keywords: [CommandLine]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eventide.errors import RuleError, listed
from eventide.local_path import local_path
from eventide.rules.columns import FieldColumns
from eventide.rules.yaml_files import RuleFile, documents_of, read_file
from eventide.schema import DataType

LogSource = Mapping[str, str]
"""`category`, `product` and `service` of a rule: those that it names."""
Catalog = Mapping[str, Mapping[str, DataType]]
"""The columns of streams."""

PARTS = ("category", "product", "service")
ENTRY = {"stream", "logsource", "fields", "keywords"}
HINT = "as in {streams: [{stream: processes, logsource: {category: process_creation}}]}"


@dataclass(frozen=True, slots=True)
class StreamMapping:
    """A stream, the log sources whose events it has, and the columns of fields."""

    stream: str
    logsource: LogSource = field(default_factory=dict)
    fields: Mapping[str, str | None] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()

    def covers(self, logsource: LogSource) -> bool:
        """Whether the events of a log source are in the stream."""
        return all(logsource.get(part) == value for part, value in self.logsource.items())


@dataclass(frozen=True, slots=True)
class RuleMapping:
    """The streams of log sources. The first entry that covers a log source counts.

    What no entry covers is in the stream that is called like its category, service or product.
    """

    entries: tuple[StreamMapping, ...] = ()

    def columns(self, logsource: LogSource, catalog: Catalog | None) -> FieldColumns:
        """Return the columns of the stream that has the events of a log source."""
        found = next((each for each in self.entries if each.covers(logsource)), None)
        if found is None:
            found = StreamMapping(stream_called_like(logsource, catalog))
        if catalog is None:
            return FieldColumns(found.stream, None, found.fields, found.keywords)
        known = {name.lower(): name for name in catalog}.get(found.stream.lower())
        if known is None:
            message = f"there is no stream {found.stream!r}"
            hint = f"the database has {listed(list(catalog)) or 'no streams yet'}"
            raise RuleError(message, hint=hint)
        return FieldColumns(known, catalog[known], found.fields, found.keywords)


def stream_called_like(logsource: LogSource, catalog: Catalog | None) -> str:
    """Return the name of the stream that is called like a part of a log source."""
    names = [logsource[part] for part in ("category", "service", "product") if part in logsource]
    if catalog is None:
        return names[0]
    known = {name.lower() for name in catalog}
    for name in names:
        if name.lower() in known:
            return name
    said = ", ".join(f"{part} {value}" for part, value in logsource.items())
    message = f"no stream has the events of {said}"
    streams = listed(list(catalog)) or "no streams yet"
    hint = f"a mapping says which stream does; the database has {streams}"
    raise RuleError(message, hint=hint)


def mapping_of(given: RuleMapping | Mapping[str, object] | str | Path | None) -> RuleMapping:
    """Return a mapping that is given as a file, as its content, or not at all."""
    if isinstance(given, RuleMapping):
        return given
    if isinstance(given, str | Path):
        path = local_path(given)
        return read_mapping(read_file(path, path.name))
    return RuleMapping() if given is None else parse_mapping(given)


def read_mapping(file: RuleFile) -> RuleMapping:
    """Return the mapping in a file."""
    documents = documents_of(file)
    try:
        return parse_mapping(documents[0] if documents else {})
    except RuleError as error:
        raise error.inside(file=file.name) from None


def parse_mapping(content: object) -> RuleMapping:
    """Return the mapping that plain values say."""
    entries = _list_of(_table(content, {"streams"}).get("streams"), "streams")
    return RuleMapping(tuple(_entry(each) for each in entries))


def _entry(content: object) -> StreamMapping:
    table = _table(content, ENTRY)
    stream = table.get("stream")
    if not isinstance(stream, str):
        message = "an entry of streams names no stream"
        raise RuleError(message, hint=HINT)
    sources = _table(table.get("logsource") or {}, set(PARTS))
    fields = _table(table.get("fields") or {}, None)
    for name, value in [*sources.items(), *fields.items()]:
        if not isinstance(value, str) and (value is not None or name in sources):
            message = f"{name} of {stream} is {value!r}, and not a name"
            raise RuleError(message, hint="names are text; a field that no event has is null")
    keywords = _list_of(table.get("keywords"), "keywords")
    return StreamMapping(
        stream,
        {name: str(value) for name, value in sources.items()},
        {name: None if value is None else str(value) for name, value in fields.items()},
        tuple(str(each) for each in keywords),
    )


def _table(content: object, known: set[str] | None) -> Mapping[str, object]:
    if not isinstance(content, Mapping) or not all(isinstance(each, str) for each in content):
        message = f"{content!r:.80} is not a table of names"
        raise RuleError(message, hint=HINT)
    unknown = [] if known is None else sorted(set(content) - known)
    if known is not None and unknown:
        message = f"a mapping has no {unknown[0]!r} here"
        raise RuleError(message, hint=f"it has {', '.join(sorted(known))}")
    return content


def _list_of(content: object, what: str) -> list[object]:
    if content is None or isinstance(content, list):
        return content or []
    message = f"{what} is not a list"
    raise RuleError(message, hint=HINT)
