"""A rule with its query, and an alert: an event that a rule is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from eventide.visible import visible


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as a query. `text` finds its alerts; `alerts` says whether anybody is told of them.

    A rule that only serves a correlation tells nobody. `kind` is "event", or that of a
    correlation: "event_count", "value_count", "temporal" or "temporal_ordered".
    """

    id: str
    title: str
    level: str
    kind: str
    file: str
    text: str
    alerts: bool = True


@dataclass(frozen=True, slots=True)
class Alert:
    """An event, or a group of events, that a rule is about.

    `event` has the columns of the event, or those of the group.
    """

    rule: Rule
    ts: datetime
    event: Mapping[str, object]

    def __str__(self) -> str:
        known = (f"{name}={value}" for name, value in self.event.items() if value is not None)
        parts = (str(self.ts), self.rule.level or "-", f"{self.rule.title} ({self.rule.id})")
        # What an event says must not draw on a terminal.
        return visible("  ".join(filter(None, [*parts, " ".join(known)])))

    def to_json(self) -> str:
        """Return the alert as one line of JSON."""
        rule = self.rule
        head = {"rule": rule.id, "title": rule.title, "level": rule.level, "ts": self.ts}
        return json.dumps({**head, "event": dict(self.event)}, default=_plain)


def _plain(value: object) -> str:
    return f"{value.isoformat()}Z" if isinstance(value, datetime) else str(value)
