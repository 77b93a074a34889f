"""Expressions of DEFINE and MEASURES: which row of a match each of their columns is taken from.

`PREV(LAST(A.price, 1))` becomes one `At`, `SUM(A.price)` one `MatchAggregate`. The argument is
computed from one row, so all its columns have to belong to one pattern variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import BindError, EventideError, Span
from eventide.lang.sql.expressions import Translator, unknown_function
from eventide.lang.sql.functions.aggregates import aggregate_name, read_aggregate
from eventide.lang.sql.names.scope import column_hint, refuse
from eventide.lang.sql.names.written import Name
from eventide.lang.sql.patterns.clause import SEMANTICS
from eventide.lang.sql.patterns.hints import (
    AGGREGATES,
    FUNCTIONS,
    beyond_match,
    difference_hint,
    function_hint,
    is_difference,
    refuse_subquery,
    window_hint,
)
from eventide.lang.sql.spans import span_of, union, written
from eventide.plan.bind import suggestion
from eventide.plan.expressions import (
    At,
    Classifier,
    Column,
    Edge,
    Expression,
    MatchAggregate,
    MatchNumber,
)
from eventide.plan.user_functions import user_function

_PHYSICAL = ("prev", "next")
_FARTHEST = 2**31 - 1
"""More rows than a partition holds; sums with a row's number stay inside 64 bits."""
_NESTING_HINT = "each picks a row of the match: leave one out; only PREV and NEXT take one inside"
_OTHER_WAY = {
    "PREV": "NEXT goes the other way",
    "NEXT": "PREV goes the other way",
    "FIRST": "FIRST(x, 1) is the second row, PREV(FIRST(x)) the one before the first",
    "LAST": "LAST(x, 1) is the last row but one, NEXT(LAST(x)) the one behind the last",
}
_AGGREGATE_HINT = "put it beside the aggregate, or compute it in a SELECT around this one"


@dataclass(frozen=True)
class Variables:
    """The pattern's variables and the subsets of them, as PATTERN and SUBSET spell them."""

    names: tuple[Name, ...]
    subsets: tuple[Name, ...] = ()
    measures: tuple[str, ...] = ()
    """The names of MEASURES, which are no columns of the rows: for errors."""

    @property
    def known(self) -> list[str]:
        """All names that may stand in front of a column."""
        return [each.text for each in (*self.names, *self.subsets)]

    def find(self, name: Name) -> str | None:
        """Return how a variable or subset is spelled, or None if there is none of that name."""
        return name.among((*self.names, *self.subsets))

    def resolve(self, name: Name) -> str:
        """Return how a variable or subset is spelled; it has to exist."""
        found = self.find(name)
        if found is None:
            raise unknown_variable(name, self.known)
        return found


def unknown_variable(name: Name, known: list[str]) -> BindError:
    """Return the error for a variable that PATTERN does not have."""
    message = f"no pattern variable {name.text!r}"
    return BindError(message, span=name.span, hint=suggestion(name.text, known, "variable"))


def navigation_of(node: exp.Expr) -> str | None:
    """Return FIRST, LAST, PREV or NEXT if a node is one of them."""
    match node:
        case exp.First():
            return "FIRST"
        case exp.Last():
            return "LAST"
        case exp.Anonymous() if node.name.lower() in _PHYSICAL:
            return node.name.upper()
    return None


def _is_aggregate(node: exp.Expr) -> bool:
    plain = node.this if isinstance(node, exp.Filter) else node
    return aggregate_name(plain) is not None and navigation_of(plain) is None


def _shown(node: exp.Expr) -> str:
    """Return the name of a function, for errors."""
    plain = node.this if isinstance(node, exp.Filter) else node
    if isinstance(plain, exp.CountIf):
        return "COUNT_IF"
    return navigation_of(plain) or (aggregate_name(plain) or plain.name).upper()


@dataclass(frozen=True)
class _Names(Translator):
    """The base of both translators below: the variables, and columns qualified by them.

    `place` is DEFINE or MEASURES, for errors.
    """

    variables: Variables
    place: str

    def translate(self, node: exp.Expr) -> Expression:
        """Return our form of an expression that does not refer to particular rows."""
        refuse_subquery(node, self.place, self.text)
        return super().translate(node)

    def beyond(self, node: exp.Expr) -> EventideError:
        """Return the error for an expression that cannot be computed over a match."""
        return beyond_match(node, self.place, self.span(node))

    def unknown_function(self, node: exp.Anonymous) -> EventideError:
        """Return the error for an unknown function."""
        error = unknown_function(node, self.span(node), (*FUNCTIONS, *AGGREGATES))
        if is_difference(node.name):
            error.hint = difference_hint()
        return error

    def of_variable(self, node: exp.Column) -> tuple[str, str | None]:
        """Return the column and the variable that a name of the query means."""
        qualifier = node.args.get("table")
        if node.args.get("db") is not None:
            message = f"{written(node)} has two qualifiers"
            hint = f"write {node.table}.{node.name}: a variable, a column"
            raise BindError(message, span=self.span(node), hint=hint)
        variable = None
        if isinstance(qualifier, exp.Identifier):
            variable = self.variable(qualifier, node)
        found = self.scope.find(node.name)
        if found is None:
            raise self._unknown_column(node)
        return found, variable

    def variable(self, qualifier: exp.Identifier, node: exp.Expr) -> str:
        """Return the variable that stands before a column."""
        span = span_of(qualifier) or self.span(node) or Span(0, 0)
        name = Name(qualifier.name, bool(qualifier.quoted), span)
        found = self.variables.find(name)
        stream = (self.scope.alias.lower(), self.scope.stream.lower())
        if found is None and name.text.lower() in stream:
            message = f"{name.text} is what MATCH_RECOGNIZE reads, not a pattern variable"
            first = self.variables.names[0].text if self.variables.names else "A"
            column = node.name if isinstance(node, exp.Column) else "x"
            hint = f"write {column} for the current row, or name a variable, as in {first}.{column}"
            raise BindError(message, span=span, hint=hint)
        if found is None:
            error = unknown_variable(name, self.variables.known)
            if isinstance(node, exp.Column) and node.table:
                error.hint = function_hint(node) or error.hint
            raise error
        return found

    def _unknown_column(self, node: exp.Column) -> BindError:
        message = f"no column {node.name!r} in {self.scope.stream}"
        hint = self._measure_hint(node)
        if hint is None and not node.table:
            name = Name(node.name, bool(node.this.quoted), Span(0, 0))
            variable = self.variables.find(name)
            hint = function_hint(node)
            if variable is not None:
                hint = (
                    f"{variable} is a pattern variable: write {variable}.x, or COUNT({variable}.*)"
                )
        hint = hint or column_hint(node, self.scope.fields)
        return BindError(message, span=self.span(node), hint=hint)

    def _measure_hint(self, node: exp.Column) -> str | None:
        """Return the hint if a column has the name of a measure, which cannot be used here."""
        names = {each.lower(): each for each in self.variables.measures}
        found = names.get(node.name.lower())
        if found is None:
            return None
        if not node.table and found != node.name and node.name in self.variables.known:
            return None
        if self.place == "DEFINE":
            return f"{found} is a measure, which no condition can use: write out what it computes"
        what = f"{found} is a measure; measures cannot use one another"
        return f"{what}: compute it in the SELECT list"

    def no_window(self, node: exp.Window) -> BindError:
        """Return the error for an OVER."""
        message = "OVER cannot stand inside MATCH_RECOGNIZE"
        return BindError(message, span=self.span(node), hint=window_hint(node))

    def classified(self, node: exp.Anonymous) -> str | None:
        """Return the variable of CLASSIFIER(A), None for CLASSIFIER()."""
        if not node.expressions:
            return None
        argument = node.expressions[0]
        plain = isinstance(argument, exp.Column) and not argument.table
        if len(node.expressions) > 1 or not plain or isinstance(argument.this, exp.Star):
            message = "CLASSIFIER takes a pattern variable, or nothing"
            raise BindError(message, span=self.span(node), hint="write CLASSIFIER(A)")
        return self.variable(argument.this, argument)

    def count_of_match(self, node: exp.Anonymous) -> MatchNumber:
        """Return MATCH_NUMBER()."""
        if node.expressions:
            message = "MATCH_NUMBER takes no argument"
            raise BindError(message, span=self.span(node), hint="write MATCH_NUMBER()")
        return MatchNumber(self.span(node))


@dataclass(frozen=True)
class RowTranslator(_Names):
    """Translates what is computed from one row: the argument of `within`, such as LAST or SUM.

    `used` collects the variable of each column, and its place.
    """

    within: exp.Expr
    used: list[tuple[str | None, exp.Expr]] = field(default_factory=list)

    def translate(self, node: exp.Expr) -> Expression:
        """Return our form of an expression over one row."""
        name = navigation_of(node)
        if name is not None or _is_aggregate(node):
            raise self._nested(node)
        match node:
            case exp.Window():
                raise self.no_window(node)
            case exp.Anonymous() if node.name.lower() == "classifier":
                self.used.append((self.classified(node), node))
                return Classifier(self.span(node))
            case exp.Anonymous() if node.name.lower() == "match_number":
                if _is_aggregate(self.within) and self.place == "MEASURES":
                    return self.count_of_match(node)
                message = f"MATCH_NUMBER stands inside {_shown(self.within)}"
                hint = "it is the same for all rows of a match: put it outside"
                raise BindError(message, span=self.span(node), hint=hint)
        return super().translate(node)

    def column(self, node: exp.Column) -> Expression:
        """Return a column of the row."""
        if isinstance(node.this, exp.Star):
            return super().column(node)
        name, variable = self.of_variable(node)
        self.used.append((variable, node))
        return Column(name, span=self.span(node))

    def chosen(self) -> str | None:
        """Return the variable whose row it is; all columns have to agree on it."""
        if not self.used:
            return None
        variable, first = self.used[0]
        for other, node in self.used[1:]:
            if other != variable:
                one, two = (_as_written(each) for each in (first, node))
                message = f"{one} and {two} stand in one {_shown(self.within)}"
                hint = "all columns inside have to be of one variable; split it in two"
                raise BindError(message, span=self.span(node), hint=hint)
        return variable

    def _nested(self, node: exp.Expr) -> BindError:
        inner, outer = _shown(node), _shown(self.within)
        message = f"{inner} stands inside {outer}"
        if _is_aggregate(self.within):
            hint = _AGGREGATE_HINT
            if not _is_aggregate(node):
                hint = f"{outer} looks at each row by itself: name its column, as in {outer}(A.x)"
        elif _is_aggregate(node):
            hint = f"{outer} looks at one row: leave {outer} out, {inner} has one value anyway"
        elif outer in ("PREV", "NEXT") and inner in ("FIRST", "LAST"):
            message = f"{inner} is only a part of what stands inside {outer}"
            hint = f"put the rest inside too, as in {outer}({inner}(A.x + 1))"
        elif inner == outer and inner in ("PREV", "NEXT"):
            hint = f"say how many rows at once, as in {outer}(x, 2)"
        elif inner in ("PREV", "NEXT"):
            hint = f"turn them round: {inner}({outer}(x))"
        else:
            hint = _NESTING_HINT
        return BindError(message, span=self.span(node), hint=hint)


@dataclass(frozen=True)
class MatchTranslator(_Names):
    """Translates the conditions of DEFINE and the MEASURES.

    `final` is the default where neither RUNNING nor FINAL is written. DEFINE has no FINAL, as the
    match is not complete yet; ONE ROW PER MATCH has nothing else.
    """

    final: bool = False

    def translate(self, node: exp.Expr) -> Expression:
        """Return our form of an expression over a match."""
        self._check_semantics(node)
        if navigation_of(node) is not None:
            return self.navigation(node)
        if _is_aggregate(node):
            return self.over_match(node)
        match node:
            case exp.Filter():
                what = "FILTER works with aggregates"
                refuse(what, node, "choose rows with a variable's condition instead")
            case exp.Window():
                raise self.no_window(node)
            case exp.Anonymous() if node.name.lower() == "classifier":
                variable, span = self.classified(node), self.span(node)
                return At(Classifier(span), variable, final=self.final, span=span)
            case exp.Anonymous() if node.name.lower() == "match_number":
                return self.count_of_match(node)
        return super().translate(node)

    def column(self, node: exp.Column) -> Expression:
        """Return a column at the last row of its variable."""
        if isinstance(node.this, exp.Star):
            return super().column(node)
        name, variable = self.of_variable(node)
        span = self.span(node)
        return At(Column(name, span=span), variable, final=self.final, span=span)

    def navigation(self, node: exp.Expr) -> At:
        """Return PREV, NEXT, FIRST or LAST."""
        name = navigation_of(node)
        if isinstance(node, exp.First | exp.Last):
            at = self.at(node, node.this)
            edge: Edge = "first" if isinstance(node, exp.First) else "last"
            offset = self._distance(node, node.args.get("expression"), 0)
            return replace(
                at, edge=edge, offset=offset, final=self._is_final(node), span=self._span(node)
            )
        if not 1 <= len(node.expressions) <= 2:
            message = f"{name} takes an expression and how many rows, got {len(node.expressions)}"
            raise BindError(message, span=self.span(node), hint=f"write {name}(x) or {name}(x, 2)")
        inner = node.expressions[0].unnest()
        far = self._distance(node, node.expressions[1] if len(node.expressions) > 1 else None, 1)
        logical = isinstance(inner, exp.First | exp.Last)
        at = self.navigation(inner) if logical else self.at(node, inner)
        return replace(at, shift=-far if name == "PREV" else far, span=self.span(node))

    def at(self, node: exp.Expr, argument: exp.Expr | None) -> At:
        """Return what a navigation computes, at the last row of its variable."""
        if argument is None or isinstance(argument, exp.Distinct | exp.Order):
            message = f"{_shown(node)} takes an expression over one row"
            raise BindError(message, span=self.span(node), hint=f"write {_shown(node)}(A.x)")
        row = self._row(node)
        translated = row.translate(argument)
        return At(translated, row.chosen(), final=self.final, span=self._span(node))

    def over_match(self, node: exp.Expr) -> MatchAggregate:
        """Return an aggregate over the rows of a match."""
        found, row, span = read_aggregate(node), self._row(node), self._span(node)
        argument, distinct = found.argument, found.distinct
        value = None if argument is None else self._argument(argument, row, distinct=distinct)
        plain = found.translated(value, row.translate, span)
        final = self._is_final(node)
        return MatchAggregate(
            plain.function,
            plain.argument,
            row.chosen(),
            distinct,
            final,
            span=span,
            parameter=plain.parameter,
            second=plain.second,
            condition=plain.condition,
        )

    def _argument(self, node: exp.Expr, row: RowTranslator, *, distinct: bool) -> Expression | None:
        """Return the argument of an aggregate; `*` and `A.*` have at most a variable."""
        star = node.this if isinstance(node, exp.Column) else node
        if not isinstance(star, exp.Star):
            return row.translate(node)
        if distinct:
            message = "DISTINCT * has no one value"
            raise BindError(message, span=self.span(node), hint="name a column")
        qualifier = node.args.get("table")
        if isinstance(qualifier, exp.Identifier):
            row.used.append((self.variable(qualifier, node), node))
        return None

    def _row(self, node: exp.Expr) -> RowTranslator:
        return RowTranslator(self.scope, self.text, self.variables, self.place, node)

    def _distance(self, node: exp.Expr, far: exp.Expr | None, default: int) -> int:
        if far is None:
            return default
        if not (isinstance(far, exp.Literal) and far.is_int):
            message = f"how far {_shown(node)} goes has to be a whole number, not negative"
            hint = "write the number itself; " + _OTHER_WAY[_shown(node)]
            raise BindError(message, span=self.span(far), hint=hint)
        return min(int(far.name), _FARTHEST)

    def _check_semantics(self, node: exp.Expr) -> None:
        word, span = node.meta.get(SEMANTICS) or (None, None)
        if word is None:
            return
        if _is_unknown(node):
            return
        if not (isinstance(node, exp.First | exp.Last) or _is_aggregate(node)):
            message = f"{word} stands before something that is no FIRST, LAST or aggregate"
            raise BindError(message, span=span, hint=_semantics_hint(node, word))
        if word == "FINAL" and self.place == "DEFINE":
            message = "FINAL stands in DEFINE, where the match is not complete yet"
            hint = "leave it out: a condition sees the rows up to its own"
            raise BindError(message, span=span, hint=hint)

    def _is_final(self, node: exp.Expr) -> bool:
        self._check_semantics(node)
        word, _ = node.meta.get(SEMANTICS) or (None, None)
        return self.final or word == "FINAL"

    def _span(self, node: exp.Expr) -> Span | None:
        """Return where a node stands, with the RUNNING or FINAL before it."""
        _, word = node.meta.get(SEMANTICS) or (None, None)
        return union([word, self.span(node)])


def _is_unknown(node: exp.Expr) -> bool:
    """Whether a function is unknown to a match: the error says so, with any word before it."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return name not in FUNCTIONS and user_function(name) is None
    plain = node.this if isinstance(node, exp.Filter) else node
    known = _is_aggregate(node) or navigation_of(plain) is not None
    return isinstance(plain, exp.AggFunc) and not known


def _semantics_hint(node: exp.Expr, word: str) -> str:
    """Return where a RUNNING or FINAL belongs that stands at the wrong place."""
    if navigation_of(node):
        inner = node.expressions[0] if node.expressions else None
        what = "…" if inner is None else _as_written(inner)
        if isinstance(inner, exp.First | exp.Last):
            return f"put it inside: {_shown(node)}({word} {what})"
        return f"put it inside: {_shown(node)}({word} LAST({what}))"
    if isinstance(node, exp.Anonymous) and node.name.lower() == "match_number":
        return f"leave it out: {node.name.upper()}() is the same for all rows of a match"
    if isinstance(node, exp.Column | exp.Anonymous):
        return f"write {word} LAST({_as_written(node)})"
    return f"write {word} before each FIRST, LAST or aggregate inside"


def _as_written(node: exp.Expr) -> str:
    return written(node)
