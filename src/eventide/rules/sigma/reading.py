"""Files to rules as pySigma has them; what cannot be read is said, and the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sigma.collection import SigmaCollection
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import (
    SigmaError,
    SigmaModifierError,
    SigmaRegularExpressionError,
    SigmaRuleLocation,
)
from sigma.filters import SigmaFilter
from sigma.modifiers import modifier_mapping
from sigma.rule import SigmaRule

from eventide.errors import RuleError, listed
from eventide.rules.sigma.expressions import POLICY
from eventide.rules.yaml_files import RuleFile, documents_of

Parsed: TypeAlias = SigmaRule | SigmaCorrelationRule


@dataclass(slots=True)
class ParsedRules:
    """Rules that could be read, filters applied, and the errors of all others."""

    collection: SigmaCollection
    problems: list[RuleError] = field(default_factory=list)


def parse_files(files: Iterable[RuleFile]) -> ParsedRules:
    """Return the rules in files."""
    problems: list[RuleError] = []
    parsed: list[Any] = []
    for file in files:
        try:
            found = _parse_file(file)
        except RuleError as error:
            problems.append(error.inside(file=file.name))
            continue
        for rule in found:
            problems += errors_of(rule, file.name)
        parsed += [rule for rule in found if not rule.errors]
    filters = [each for each in parsed if isinstance(each, SigmaFilter)]
    rules = [each for each in parsed if not isinstance(each, SigmaFilter)]
    collection = SigmaCollection([*_known_once(rules, problems)], resolve_references=False)
    for each in filters:
        try:
            collection.apply_filters([each])
        except SigmaError as error:
            problems.append(_told(error, each))
    return ParsedRules(collection, problems)


def _parse_file(file: RuleFile) -> list[Any]:
    documents: Any = documents_of(file)
    for each in documents:
        if not isinstance(each, dict):
            message = f"a rule is a table with title, logsource and detection, not {each!r:.60}"
            raise RuleError(message, hint="docs/rules.md has a rule to begin with")
    place = SigmaRuleLocation(Path(file.name))
    try:
        found = SigmaCollection.from_dicts(
            documents,
            collect_errors=True,
            source=place,
            collect_filters=True,
            resolve_references=False,
            policy=POLICY,
        )
    # pySigma relies on types that YAML does not promise.
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        message = f"pySigma cannot read this: {plain_message(error)}"
        hint = "a value there is of a type that Sigma does not have"
        raise RuleError(message, hint=hint) from error
    rules = [_placed(each, place) for each in [*found.rules, *found.filters]]
    known = {id(error) for rule in rules for error in rule.errors}
    for each in found.errors:
        if id(each) not in known:
            raise RuleError(plain_message(each))
    return rules


def _placed(rule: Any, place: SigmaRuleLocation) -> Any:  # noqa: ANN401
    rule.source = place
    return rule


def _known_once(rules: Iterable[Parsed], problems: list[RuleError]) -> Iterator[Parsed]:
    """Yield the rules; the second with an id, or without any, is a problem."""
    seen: dict[str, str] = {}
    for rule in rules:
        name = id_of(rule)
        if name in seen:
            message = f"another rule has the id {name}, in {seen[name]}"
            error = RuleError(message, hint="give one of them an id of its own")
            problems.append(error.inside(file=file_of(rule), rule=shown(rule)))
            continue
        seen[name] = file_of(rule)
        yield rule


def errors_of(rule: Any, file: str) -> list[RuleError]:  # noqa: ANN401
    """Return what pySigma says is wrong with a rule."""
    return [_told(error, rule, file) for error in rule.errors]


def _told(error: SigmaError, rule: Any, file: str = "") -> RuleError:  # noqa: ANN401
    hint = None
    if isinstance(error, SigmaModifierError):
        hint = f"the modifiers are {listed(sorted(modifier_mapping), 99)}"
    if isinstance(error, SigmaRegularExpressionError):
        hint = "expressions are those of RE2: no look-around, no references to groups"
    told = RuleError(plain_message(error), hint=hint)
    return told.inside(file=file or file_of(rule), rule=shown(rule))


def plain_message(error: Exception) -> str:
    """Return the message of an error of pySigma, without the place, which we say ourselves."""
    return " ".join(str(each) for each in error.args) or type(error).__name__


def id_of(rule: Parsed) -> str:
    """Return the id of a rule, or else its name, or else its title."""
    return str(rule.id or rule.name or rule.title)


def file_of(rule: Parsed) -> str:
    """Return the file that a rule is in."""
    return "" if rule.source is None else rule.source.path.as_posix()


def shown(rule: Parsed) -> str:
    """Return the title and the id of a rule, as errors say them."""
    known = rule.id or rule.name
    return f"{rule.title} ({known})" if known else f"{rule.title}"
