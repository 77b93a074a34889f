"""The rules of a database: run over history, or live with one receiver for all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from eventide.api.live.shared.live_set import LiveSet
from eventide.errors import EventideError, RuleError
from eventide.rules.rule import Alert, Rule
from eventide.schema import TS

if TYPE_CHECKING:
    from eventide.api.database import Database
    from eventide.api.live.subscription import Subscription
    from eventide.api.result import Result
    from eventide.api.stream import Time

Receive = Callable[[Sequence[Alert]], object]
LONGEST_NAME = 100
"""So many letters the name of a query may have."""
LEVELS = ("informational", "low", "medium", "high", "critical")


class LiveRules:
    """The live queries of rules. End them with `cancel`, `finish`, or the end of a `with`."""

    def __init__(self, queries: Sequence[Subscription]) -> None:
        self.queries = tuple(queries)

    def wait(self, timeout: float | None = None) -> bool:
        """Return once all stored events are taken and the alerts received; whether they are."""
        until = None if timeout is None else monotonic() + timeout
        return all(
            query.wait(None if until is None else max(0.0, until - monotonic()))
            for query in self.queries
        )

    def finish(self) -> None:
        """End all of them as if the streams had ended."""
        for query in self.queries:
            query.finish()

    def cancel(self) -> None:
        """End all of them as they are."""
        for query in self.queries:
            query.cancel()

    @property
    def failures(self) -> tuple[BaseException, ...]:
        """Why queries have failed, if any has."""
        own = [query.failure for query in self.queries if query.failure is not None]
        sets = (query for query in self.queries if isinstance(query, LiveSet))
        return (*own, *(error for each in sets for error in each.failures.values()))

    def __enter__(self) -> LiveRules:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


@dataclass(frozen=True)
class RuleSet:
    """Rules as queries of a database. `problems` say why others have none.

    Iterating over it yields the rules.
    """

    db: Database
    rules: tuple[Rule, ...]
    problems: tuple[RuleError, ...] = ()

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __getitem__(self, rule_id: str) -> Rule:
        """Return the rule of an id."""
        return self.by_id[rule_id]

    @cached_property
    def by_id(self) -> Mapping[str, Rule]:
        """The rules by their ids."""
        return {rule.id: rule for rule in self.rules}

    @property
    def texts(self) -> Mapping[str, str]:
        """The queries of the rules that tell somebody, by the ids of rules."""
        return {rule.id: rule.text for rule in self.rules if rule.alerts}

    def at_least(self, level: str) -> RuleSet:
        """Return the rules of a level and of those above it; others stay for correlations."""
        if level not in LEVELS:
            message = f"there is no level {level!r}"
            raise RuleError(message, hint=f"the levels are {', '.join(LEVELS)}")
        enough = LEVELS[LEVELS.index(level) :]
        kept = (replace(each, alerts=each.alerts and each.level in enough) for each in self.rules)
        return replace(self, rules=tuple(kept))

    def checked(self) -> RuleSet:
        """Return the rules whose queries have a plan; what is wrong with others is a problem."""
        kept, problems = [], list(self.problems)
        for rule in self.rules:
            try:
                self.db.plan(rule.text)
                kept.append(rule)
            except EventideError as error:
                told = RuleError(error.message, hint=error.hint)
                problems.append(told.inside(file=rule.file, rule=f"{rule.title} ({rule.id})"))
        return replace(self, rules=tuple(kept), problems=tuple(problems))

    def run(self, start: Time | None = None, end: Time | None = None) -> list[Alert]:
        """Return the alerts of all rules over the stored events of [start, end), in order of time.

        All rules see the events in one pass, as they would have live.
        """
        if not self.texts:
            return []
        replayed = self.db.replay(self.texts, start=start, end=end)
        found = [alert for rows in replayed for alert in self.alerts(rows.query, rows)]
        return sorted(found, key=lambda alert: (alert.ts, alert.rule.id))

    def subscribe(
        self,
        on_alerts: Receive,
        *,
        name: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> LiveRules:
        """Run all rules live; `on_alerts` gets lists of alerts, one list at a time.

        They run as one, with the options of `Database.subscribe_many`. With a `name` each is a
        durable query of its own, with the options of `Database.subscribe`: after a restart, the
        same call goes on where each of them was.
        """
        if name is None:
            return LiveRules(
                [self.db.subscribe_many(self.texts, None, self.receiver(on_alerts), **options)]
            )
        queries: list[Subscription] = []
        lock = Lock()  # each query hands its rows over in a thread of its own

        def receiver(rule_id: str) -> Callable[[Result], object]:
            def receive(rows: Result) -> None:
                with lock:
                    on_alerts(self.alerts(rule_id, rows))

            return receive

        try:
            for rule_id, text in self.texts.items():
                durable = {**options, "name": durable_name(name, rule_id)}
                queries.append(self.db.subscribe(text, receiver(rule_id), **durable))
        except BaseException:
            LiveRules(queries).cancel()
            raise
        return LiveRules(queries)

    def receiver(self, on_alerts: Receive) -> Callable[[Result], object]:
        """Return what receives the rows of all rules, whose first column is the id of the rule."""

        def receive(rows: Result) -> None:
            key = rows.to_arrow().column_names[0]
            alerts = []
            for row in rows.rows():
                rule = self[row.pop(key)]
                alerts.append(Alert(rule, row.pop(TS), row))
            on_alerts(alerts)

        return receive

    def alerts(self, rule_id: str, rows: Result) -> list[Alert]:
        """Return rows of a rule as alerts."""
        rule = self[rule_id]
        return [Alert(rule, row.pop(TS), row) for row in rows.rows()]


def durable_name(name: str, rule_id: str) -> str:
    """Return the name of the durable query of a rule; no two rules have the same."""
    plain = f"{name}-{re.sub('[^A-Za-z0-9_-]', '_', rule_id)}"
    if plain == f"{name}-{rule_id}" and len(plain) <= LONGEST_NAME:
        return plain
    digest = blake2b(rule_id.encode(), digest_size=6).hexdigest()
    return f"{plain[: LONGEST_NAME - len(digest) - 1]}-{digest}"
