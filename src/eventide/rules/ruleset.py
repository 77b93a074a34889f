"""The rules of a database: run over history, or live with one receiver for all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

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
Value = TypeVar("Value")
LEVELS = ("informational", "low", "medium", "high", "critical")

log = logging.getLogger("eventide.rules")


class LiveRules:
    """The live queries of rules. End them with `cancel`, `finish`, or the end of a `with`."""

    def __init__(
        self, queries: Sequence[Subscription], problems: tuple[RuleError, ...] = ()
    ) -> None:
        self.queries = tuple(queries)
        self.problems = problems
        """What is wrong with rules that are left out."""

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
        """Return the alerts of the stored events of [start, end), in order of time.

        All rules see the events in one pass, as they would have live. Rules whose query has no plan
        are left out, and the log says why.
        """
        if not self.texts:
            return []
        _, replayed = self.with_plans(
            lambda rules: self.db.replay(rules.texts, start=start, end=end) if rules.texts else ()
        )
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

        They run as one, with the options of `Database.subscribe_many`. With a `name` they are a
        durable set: after a restart, the same call goes on where it was. Rules that are new since
        begin with the events to come, and so do those whose query is another one.

        Rules whose query has no plan are left out; `problems` of what is returned, and the log, say
        why.
        """
        receive = self.receiver(on_alerts)
        kept = {} if name is None else {each.name: each for each in self.db.kept_queries()}
        if name is None or name not in kept or options.get("replace"):
            rules, live = self.with_plans(
                lambda rules: self.db.subscribe_many(
                    rules.texts, None, receive, name=name, **options
                )
            )
            return LiveRules([live], rules.problems)
        live = self.db.subscribe_many({}, None, receive, name=name, **options)
        try:
            before = live.texts
            # Those that have failed still have their names: they begin anew.
            known = dict.fromkeys([*before, *live.numbers])
            live.drop(key for key in known if self.texts.get(str(key)) != before.get(key, ""))
            after = live.texts
            rules, _ = self.with_plans(
                lambda rules: live.add(
                    {each: text for each, text in rules.texts.items() if each not in after}
                )
            )
        except BaseException:
            live.cancel()
            raise
        return LiveRules([live], rules.problems)

    def with_plans(self, begin: Callable[[RuleSet], Value]) -> tuple[RuleSet, Value]:
        """Do something with all rules, or with those whose queries have a plan; return both."""
        try:
            return self, begin(self)
        except EventideError:
            left = self.checked()
            if len(left) == len(self):
                raise
            for problem in left.problems[len(self.problems) :]:
                log.warning("a rule is left out: %s", problem)
            return left, begin(left)

    def receiver(self, on_alerts: Receive) -> Callable[[Result], object]:
        """Return what receives the rows of all rules, whose first column is the id of the rule."""

        def receive(rows: Result) -> None:
            key = rows.to_arrow().column_names[0]
            alerts = []
            for row in rows.rows():
                # Rows that had not been received may be those of a rule that is no more.
                rule = self.by_id.get(row.pop(key))
                if rule is not None:
                    alerts.append(Alert(rule, row.pop(TS), row))
            if alerts:
                on_alerts(alerts)

        return receive

    def alerts(self, rule_id: str, rows: Result) -> list[Alert]:
        """Return rows of a rule as alerts."""
        rule = self[rule_id]
        return [Alert(rule, row.pop(TS), row) for row in rows.rows()]
