"""Rules to queries, each rule once; a rule without a query does not stop the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sigma.correlations import SigmaCorrelationRule, SigmaRuleReference
from sigma.exceptions import SigmaError
from sigma.rule import SigmaRule

from eventide.errors import RuleError
from eventide.rules.columns import FieldColumn, FieldColumns
from eventide.rules.mapping import Catalog, RuleMapping
from eventide.rules.rule import Rule
from eventide.rules.sigma.conditions import rule_condition
from eventide.rules.sigma.correlations import (
    COUNTS,
    CorrelationText,
    correlation_text,
    count_name,
    group_of,
)
from eventide.rules.sigma.legs import Leg, Part
from eventide.rules.sigma.reading import (
    Parsed,
    ParsedRules,
    file_of,
    id_of,
    parse_files,
    plain_message,
    shown,
)
from eventide.rules.texts import quoted
from eventide.rules.yaml_files import RuleFile
from eventide.schema import INT64


def rules_of(
    files: Iterable[RuleFile], mapping: RuleMapping, catalog: Catalog | None
) -> tuple[list[Rule], list[RuleError]]:
    """Return the rules in files with their queries, and what is wrong with the others."""
    return RuleReader(parse_files(files), mapping, catalog).read()


@dataclass(slots=True)
class RuleReader:
    """Makes the queries of parsed rules."""

    parsed: ParsedRules
    mapping: RuleMapping
    catalog: Catalog | None
    selected: dict[str, tuple[FieldColumns, str]] = field(default_factory=dict)
    """The stream and the condition of plain rules, by id."""

    def read(self) -> tuple[list[Rule], list[RuleError]]:
        """Return the rules, and all errors."""
        rules, problems = [], list(self.parsed.problems)
        silent = self.silent()
        for each in self.parsed.collection.rules:
            try:
                rules.append(self.rule(each, alerts=id_of(each) not in silent))
            except RuleError as error:
                problems.append(error.inside(file=file_of(each), rule=shown(each)))
            except RecursionError:
                told = RuleError("its condition is too deep", hint="nest fewer NOTs and brackets")
                problems.append(told.inside(file=file_of(each), rule=shown(each)))
            except (SigmaError, ValueError) as error:
                told = RuleError(plain_message(error))
                problems.append(told.inside(file=file_of(each), rule=shown(each)))
        return rules, problems

    def silent(self) -> set[str]:
        """Return the ids of the rules that only serve correlations."""
        return {
            id_of(self.referenced(name))
            for rule in self.parsed.collection.rules
            if isinstance(rule, SigmaCorrelationRule) and not rule.generate
            for name in references_of(rule)
            if self.knows(name)
        }

    def rule(self, parsed: Parsed, *, alerts: bool) -> Rule:
        """Return a rule with its query."""
        if isinstance(parsed, SigmaCorrelationRule):
            kind, text = parsed.type.name.lower(), str(self.correlation(parsed, "", ()))
        else:
            columns, condition = self.selection(parsed)
            kind, text = "event", f"SELECT * FROM {quoted(columns.source)} WHERE {condition}"
        level = "" if parsed.level is None else parsed.level.name.lower()
        return Rule(id_of(parsed), parsed.title, level, kind, file_of(parsed), text, alerts)

    def selection(self, rule: SigmaRule) -> tuple[FieldColumns, str]:
        """Return the stream of a plain rule, and the condition on its events."""
        known = self.selected.get(id_of(rule))
        if known is None:
            parts = ("category", "product", "service")
            said = {part: getattr(rule.logsource, part) for part in parts}
            source = {part: value for part, value in said.items() if value is not None}
            columns = self.mapping.columns(source, self.catalog)
            known = self.selected[id_of(rule)] = columns, rule_condition(rule, columns)
        return known

    def correlation(
        self, rule: SigmaCorrelationRule, prefix: str, above: tuple[str, ...]
    ) -> CorrelationText:
        """Return the query of a correlation; `above` are the ids of those that it serves."""
        if id_of(rule) in above:
            message = f"the correlation {rule.title} is about itself"
            raise RuleError(message, hint="let its rules be others")
        above = (*above, id_of(rule))
        parts: list[Part] = []
        legs: dict[str, Leg] = {}
        for place, name in enumerate(references_of(rule), 1):
            inner, legs[name] = self.leg(rule, name, f"{prefix}{place}", above)
            parts += inner
        if not legs:
            message = "the correlation names no rules"
            raise RuleError(message, hint="list their ids or names under rules")
        text = correlation_text(rule, legs, prefix)
        return CorrelationText((*parts, *text.parts), text.select)

    def leg(
        self, rule: SigmaCorrelationRule, name: str, prefix: str, above: tuple[str, ...]
    ) -> tuple[tuple[Part, ...], Leg]:
        """Return the events of a rule that a correlation is about, and the parts they are from."""
        about = self.referenced(name)
        parts: tuple[Part, ...] = ()
        if isinstance(about, SigmaCorrelationRule):
            inner = self.correlation(about, prefix, above)
            parts, source, condition = inner.parts, f"({inner.select})", "TRUE"
        else:
            columns, condition = self.selection(about)
            source = quoted(columns.source)
        fields = self.fields(about, above)
        keys = [self.key(rule, each, about, fields).text for each in rule.group_by or ()]
        return parts, Leg(source, condition, tuple(keys), self.value(rule, about, fields))

    def value(self, rule: SigmaCorrelationRule, about: Parsed, fields: FieldColumns) -> str | None:
        """Return the column whose values a correlation counts, if it does."""
        field_name = getattr(rule.condition, "fieldref", None)
        if field_name is None:
            return None
        if not isinstance(field_name, str):
            message = "the values of several fields together cannot be counted"
            raise RuleError(message, hint="name one field in the condition")
        return self.key(rule, field_name, about, fields).text

    def key(
        self, rule: SigmaCorrelationRule, name: str, about: Parsed, fields: FieldColumns
    ) -> FieldColumn:
        """Return the column of a field in the events of another rule, perhaps under an alias."""
        wanted = name
        for alias in rule.aliases:
            for reference, field_name in alias.mapping.items():
                same = self.knows(reference.reference)
                if alias.alias == name and same and self.referenced(reference.reference) is about:
                    wanted = field_name
        column = fields.column(wanted)
        if column is None:
            message = f"no event of {about.title} has the field {wanted}"
            raise RuleError(message, hint="group by a field that the mapping does not set to null")
        return column

    def fields(self, rule: Parsed, above: tuple[str, ...]) -> FieldColumns:
        """Return the columns of the events of a rule; those of a correlation are its group's."""
        if isinstance(rule, SigmaRule):
            return self.selection(rule)[0]
        first = self.referenced(references_of(rule)[0])
        below = self.fields(first, above)
        types = {each: self.key(rule, each, first, below).type for each in rule.group_by or ()}
        if rule.type in COUNTS:
            types[count_name(group_of(rule))] = INT64
        return FieldColumns(f"an alert of {rule.title}", types)

    def knows(self, name: str) -> bool:
        """Whether there is a rule of that id or name."""
        try:
            self.parsed.collection[name]
        except SigmaError:
            return False
        return True

    def referenced(self, name: str) -> Parsed:
        """Return the rule of an id or a name."""
        if not self.knows(name):
            message = f"there is no rule {name!r}, or it has no query"
            raise RuleError(message, hint="a correlation names rules by their id or their name")
        found = self.parsed.collection[name]
        assert isinstance(found, SigmaRule | SigmaCorrelationRule)
        return found


def references_of(rule: SigmaCorrelationRule) -> list[str]:
    """Return the names of the rules that a correlation is about, each once."""
    rules: Iterable[SigmaRuleReference] = rule.rules or ()
    names = [each.reference for each in rules]
    return list(dict.fromkeys(names or getattr(rule.condition, "get_referenced_rules", list)()))
