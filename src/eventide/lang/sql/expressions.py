"""sqlglot's expressions → ours. Names are resolved here; `bind` adds the types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce

from sqlglot import exp

from eventide.errors import BindError, EventideError, Span, UnsupportedError
from eventide.lang.constants import number, timestamp
from eventide.lang.sql.functions.aggregates import aggregate_name, read_aggregate
from eventide.lang.sql.functions.arguments import unread
from eventide.lang.sql.functions.known import (
    ANONYMOUS,
    DATE_PARTS,
    FIXED,
    PART_ALIASES,
    PICKS,
    READ,
    WITH_CONSTANTS,
    is_ours,
)
from eventide.lang.sql.intervals import interval_us
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.numbering import LEAD, LIVE_HINT, ROW_NUMBER, Ranked
from eventide.lang.sql.spans import KnownSpans, close_brackets, open_call, span_of, written
from eventide.lang.sql.types import data_type, is_timestamp
from eventide.lang.sql.windows.over import frame_of, order_columns, window_of
from eventide.plan.aggregates import STANDING_ONLY
from eventide.plan.bind import suggestion
from eventide.plan.expressions import (
    Aggregate,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OrderKey,
    Over,
    RowsFrame,
)
from eventide.plan.functions import DATE_PARTS as PARTS
from eventide.plan.times import unit_us
from eventide.plan.user_functions import called_like_functions, function_named
from eventide.schema import BOOL, INT64, INTERVAL, NULL, SEQ, STRING, TS

_NULL = Literal(None, NULL)
_UNARY = ("this",)
_OTHERS = {
    "age": "write ts - other, or date_diff('day', other, ts)",
    "dateadd": "write ts + INTERVAL '1' DAY",
    "format_string": "put texts together with ||",
    "printf": "put texts together with ||",
    "strlen": "write length(x)",
    "to_date": "write date_trunc('day', strptime(x, '%Y-%m-%d'))",
    "unix_timestamp": "write epoch(ts)",
    "from_unixtime": "write make_timestamp(x * 1000000)",
}
"""What to write for functions of other databases."""
AROUND_HINT = "compute it in a SELECT around this one"
_STANDING_HINT = "it goes over a window in square brackets: FROM cars [RANGE 1 MINUTE]"


@dataclass(frozen=True)
class Translator:
    """Turns the expressions of one SELECT into ours. `text` is the query, for spans."""

    scope: Scope
    text: str

    @cached_property
    def spans(self) -> KnownSpans:
        """Where the nodes stand that have been looked at."""
        return KnownSpans()

    def span(self, node: exp.Expr) -> Span | None:
        """Return where a node stands in the query."""
        span = self.spans.of(node)
        if span is None:
            return None
        return close_brackets(open_call(span, node, self.text), self.text)

    def translate(self, node: exp.Expr) -> Expression:  # noqa: PLR0911, PLR0912
        """Return our form of an expression; `UnsupportedError` if our operators have none."""
        fixed = FIXED.get(type(node))
        read = fixed[1] if fixed is not None else READ.get(type(node))
        read = _UNARY if type(node) in DATE_PARTS else read
        if read is not None and unread(node, *read) is not None:
            raise self.beyond(node)
        if fixed is not None:
            return self.call(node, fixed[0], *self.parts(node, fixed[1]))
        if aggregate_name(node) is not None:
            return self.aggregate(node)
        if type(node) in DATE_PARTS:
            return self.part_of(node, DATE_PARTS[type(node)], node.this)
        match node:
            case exp.Paren():
                return self.translate(node.this)
            case exp.Column():
                return self.column(node)
            case exp.Literal() | exp.Boolean() | exp.Null() | exp.Interval():
                return self.constant(node)
            case exp.Cast():
                return self.cast(node)
            case exp.Like() | exp.ILike() | exp.Escape() | exp.In() | exp.Between() | exp.Is():
                return self.predicate(node)
            case exp.Case() | exp.If():
                return self.conditional(node)
            case exp.Trim():
                return self.trim(node)
            case exp.Log():
                return self.logarithm(node)
            case exp.Extract():
                return self.part_of(node, node.name, node.expression)
            case exp.TimestampTrunc() | exp.DateTrunc():
                return self.truncation(node)
            case exp.UnixToTime():
                return self.from_epoch(node)
            case exp.RegexpExtract() | exp.SplitPart() | exp.TimeToStr():
                return self.with_constants(node)
            case exp.Filter():
                refuse("FILTER works with aggregates", node, "put the condition into WHERE")
            case exp.Window():
                return self.over(node)
            case exp.Anonymous():
                return self.named_function(node)
        raise self.beyond(node)

    def beyond(self, node: exp.Expr) -> EventideError:
        """Return the error for an expression that our operators cannot compute."""
        what = f"{written(node)} is beyond Eventide's own operators"
        return UnsupportedError(what, span=span_of(node), hint=AROUND_HINT)

    def call(self, node: exp.Expr, name: str, *arguments: Expression) -> Call:
        """Return a call that stands where `node` does."""
        return Call(name, arguments, span=self.span(node))

    def parts(self, node: exp.Expr, keys: tuple[str, ...]) -> list[Expression]:
        """Return the translated arguments of a node, without those left out."""
        found: list[Expression] = []
        for key in keys:
            value = node.args.get(key)
            values = value if isinstance(value, list) else [value]
            found += [self.translate(each) for each in values if isinstance(each, exp.Expr)]
        return found

    def column(self, node: exp.Column) -> Expression:
        """Return a column, or what an alias of the SELECT list stands for."""
        if isinstance(node.this, exp.Star):
            message = "* stands where one value is needed"
            raise BindError(message, span=self.span(node), hint="name a column")
        found = self.scope.resolve(node)
        if isinstance(found, str):
            meaning = None if found in self.scope.pseudo else self.scope.meanings.get(found)
            return replace(meaning or Column(found), span=self.span(node))
        # An alias may not be used in its own definition, nor may two define each other.
        others = {key: item for key, item in self.scope.aliases.items() if item is not found}
        return Translator(self.scope.with_aliases(others), self.text).translate(found)

    def constant(self, node: exp.Expr) -> Expression:
        """Return a literal."""
        match node:
            case exp.Boolean():
                return Literal(bool(node.this), BOOL, self.span(node))
            case exp.Null():
                return Literal(None, NULL, self.span(node))
            case exp.Interval():
                return self.interval(node)
        assert isinstance(node, exp.Literal)
        if node.is_string:
            return Literal(str(node.this), STRING, self.span(node))
        return number(str(node.this), self.span(node))

    def interval(self, node: exp.Interval) -> Expression:
        """Return an interval: a constant, or a number of units."""
        amount, unit = node.this, node.args.get("unit")
        length = unit_us(unit.name) if isinstance(unit, exp.Var) else None
        if isinstance(amount, exp.Literal) or length is None:
            return Literal(interval_us(node), INTERVAL, self.span(node))
        return self.call(node, "*", self.translate(amount), Literal(length, INTERVAL))

    def cast(self, node: exp.Cast) -> Expression:
        """Return a cast; of a string literal to a timestamp or a date, the timestamp."""
        is_time = is_timestamp(node.to) or node.to.this == exp.DType.DATE
        if is_time and isinstance(node.this, exp.Literal) and node.this.is_string:
            or_null = isinstance(node, exp.TryCast)
            return timestamp(str(node.this.this), span_of(node.this), or_null=or_null)
        argument = self.translate(node.this)
        target = data_type(node.to, self.span(node))
        return Cast(argument, target, self.span(node), or_null=isinstance(node, exp.TryCast))

    def predicate(self, node: exp.Expr) -> Expression:
        """Return LIKE, IN, BETWEEN or IS."""
        match node:
            case exp.Escape():
                return self.like(node.this, self.translate(node.expression))
            case exp.Like() | exp.ILike():
                return self.like(node)
            case exp.In():
                if node.args.get("query") or node.args.get("unnest") or not node.expressions:
                    what = "IN over anything but a list of values is beyond Eventide's operators"
                    refuse(what, node, "list the values, as in IN (1, 2)")
                return self.call(node, "in", *self.parts(node, ("this", "expressions")))
            case exp.Between():
                value, low, high = self.parts(node, ("this", "low", "high"))
                above = self.call(node, ">=", value, low)
                return self.call(node, "and", above, self.call(node, "<=", value, high))
        value, test = self.translate(node.this), self.translate(node.expression)
        if test == _NULL:
            return self.call(node, "is null", value)
        return self.call(node, "is not distinct from", value, test)

    def like(self, node: exp.Expr, *escape: Expression) -> Expression:
        """Return a LIKE, negated if the node says so."""
        name = "ilike" if isinstance(node, exp.ILike) else "like"
        if not isinstance(node, exp.Like | exp.ILike):
            refuse(f"ESCAPE after {node.key.upper()}", node, "ESCAPE belongs to LIKE")
        found = self.call(node, name, *self.parts(node, ("this", "expression")), *escape)
        return self.call(node, "not", found) if node.args.get("negate") else found

    def conditional(self, node: exp.Expr) -> Expression:
        """Return a CASE of either form, or an IF, as one CASE."""
        if isinstance(node, exp.If):
            parts = self.parts(node, ("this", "true"))
            otherwise = self.parts(node, ("false",)) or [_NULL]
            return self.call(node, "case", *parts, *otherwise)
        parts = []
        for branch in node.args["ifs"]:
            condition, value = self.parts(branch, ("this", "true"))
            if node.this is not None:
                condition = self.call(branch.this, "=", self.translate(node.this), condition)
            parts += [condition, value]
        return self.call(node, "case", *parts, *(self.parts(node, ("default",)) or [_NULL]))

    def trim(self, node: exp.Trim) -> Expression:
        """Return TRIM, LTRIM or RTRIM."""
        position = str(node.args.get("position") or "BOTH").upper()
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
        return self.call(node, name, *self.parts(node, ("this", "expression")))

    def logarithm(self, node: exp.Log) -> Expression:
        """LOG(x) is to base 10, LOG(b, x) to base b."""
        parts = self.parts(node, ("this", "expression"))
        if len(parts) == 1:
            return self.call(node, "log10", *parts)
        base, value = parts
        if isinstance(base, Literal) and base.value in (2, 10):
            return self.call(node, f"log{base.value}", value)
        return self.call(node, "/", *(self.call(node, "log10", each) for each in (value, base)))

    def part_of(self, node: exp.Expr, part: str, value: exp.Expr) -> Expression:
        """Return EXTRACT, whose `epoch` is a function of its own."""
        name = PART_ALIASES.get(part.lower(), part.lower())
        if name == "epoch":
            return self.call(node, "epoch", self.translate(value))
        word = Literal(name, STRING, self.span(node))
        return self.call(node, "extract", word, self.translate(value))

    def truncation(self, node: exp.Expr) -> Expression:
        """Return DATE_TRUNC."""
        unit = node.args["unit"].name.lower()
        word = Literal(PART_ALIASES.get(unit, unit), STRING, self.span(node))
        return self.call(node, "date_trunc", word, self.translate(node.this))

    def from_epoch(self, node: exp.UnixToTime) -> Expression:
        """EPOCH_MS(x) and MAKE_TIMESTAMP(x), which sqlglot reads as one function."""
        names = {"3": "epoch_ms", "6": "make_timestamp"}
        name = names.get(node.args["scale"].name if node.args.get("scale") else "")
        if name is None:
            refuse("this reading of a number as a time", node, "use MAKE_TIMESTAMP(…)")
        return self.call(node, name, self.translate(node.this))

    def aggregate(self, node: exp.Expr) -> Aggregate:
        """Return an aggregate of ours."""
        found = read_aggregate(node)
        starred = found.argument is None or isinstance(found.argument, exp.Star)
        value = None if starred or found.argument is None else self.translate(found.argument)
        return found.translated(value, self.translate, self.span(node))

    def with_constants(self, node: exp.Expr) -> Expression:
        """Return REGEXP_EXTRACT, SPLIT_PART or STRFTIME, whose other arguments are constants."""
        name, keys = WITH_CONSTANTS[type(node)]
        text, number = (*(node.args.get(key) for key in keys), None)[:2]
        if not is_ours(node, text, number):
            raise self.beyond(node)
        return self.call(node, name, *self.parts(node, ("this", *keys)))

    def over(self, node: exp.Window) -> Expression:
        """Return an aggregate over a frame of ours, or a value of an earlier row."""
        window = window_of(node, self.scope)
        if isinstance(node.this, exp.RowNumber | exp.Lead | exp.Rank | exp.DenseRank):
            return self.numbering(node, window)
        self._check_order(window)
        keys = tuple(self.translate(key) for key in window.args.get("partition_by") or ())
        if isinstance(node.this, exp.Lag):
            return self.earlier(node, keys)
        frame = frame_of(window)
        function = PICKS.get(type(node.this))
        if function is not None and unread(node.this, "this") is None:
            inner: Expression = Aggregate(function, self.translate(node.this.this))
        else:
            inner = self.translate(node.this)
        if not isinstance(inner, Aggregate):
            refuse("only aggregates have a frame of events", node, "use an aggregate")
        return Over(inner, keys, frame, self.span(node))

    def earlier(self, node: exp.Window, keys: tuple[Expression, ...]) -> Expression:
        """LAG(x, n, default): the first row of a frame of n rows more, if it has so many."""
        lag = node.this
        offset = lag.args.get("offset") or exp.Literal.number(1)
        if not (isinstance(offset, exp.Literal) and offset.is_int and int(offset.name) > 0):
            refuse("LAG takes a constant number of rows", node, "write LAG(x) or LAG(x, 2)")
        frame = RowsFrame(int(offset.name))
        first = Over(Aggregate("first", self.translate(lag.this)), keys, frame, self.span(node))
        count = Over(Aggregate("count", None), keys, frame, self.span(node))
        there = self.call(node, ">", count, Literal(frame.preceding, INT64))
        default = lag.args.get("default")
        other = _NULL if default is None else self.translate(default)
        return self.call(node, "case", there, first, other)

    def numbering(self, node: exp.Window, window: exp.Window) -> Expression:
        """ROW_NUMBER, a rank, or LEAD(x, n, default) in order of time; or a rank in a window."""
        call = node.this
        keys = tuple(self.translate(key) for key in window.args.get("partition_by") or ())
        in_time = self._in_time(window)
        if isinstance(call, exp.Lead) and not in_time:
            hint = "live, write ORDER BY ts"
            refuse("LEAD in another order than that of time", node, hint)
        if not isinstance(call, exp.Lead) and not in_time:
            return self.rank(node, window, keys)

        def found(function: str, *given: Expression, rows: int | None = None) -> Over:
            argument = given[0] if given else None
            called = Aggregate(function, argument, parameter=rows)
            return Over(called, keys, RowsFrame(0), self.span(node))

        if not isinstance(call, exp.Lead):
            # By _seq, no two rows are at the same place.
            named = ROW_NUMBER if self._has_no_peers(window) else call.sql_name().lower()
            return found(named)
        offset = call.args.get("offset") or exp.Literal.number(1)
        if not (isinstance(offset, exp.Literal) and offset.is_int and int(offset.name) > 0):
            refuse("LEAD takes a constant number of rows", node, "write LEAD(x) or LEAD(x, 2)")
        rows = int(offset.name)
        value = found(LEAD, self.translate(call.this), rows=rows)
        default = call.args.get("default")
        if default is None:
            return value
        missing = self.call(node, "is null", found(LEAD, Column(TS), rows=rows))
        return self.call(node, "case", missing, self.translate(default), value)

    def rank(
        self, node: exp.Window, window: exp.Window, keys: tuple[Expression, ...]
    ) -> Expression:
        """ROW_NUMBER, RANK or DENSE_RANK among the rows of a window."""
        order = window.args.get("order")
        if order is None or window.args.get("spec") or node.this.expressions:
            refuse(f"{node.this.sql_name()} without an order, or with a frame", node, LIVE_HINT)
        items = tuple(
            OrderKey(
                self.translate(item.this),
                bool(item.args.get("desc")),
                bool(item.args.get("nulls_first")),
            )
            for item in order.expressions
        )
        called = Aggregate(node.this.sql_name().lower(), None)
        return Ranked(called, keys, RowsFrame(0), self.span(node), items)

    def _check_order(self, window: exp.Window) -> None:
        """Refuse a frame of events that is not ordered by ts."""
        if not self._in_time(window):
            refuse("a frame of events is ordered by ts", window, "write ORDER BY ts")

    def _in_time(self, window: exp.Window) -> bool:
        """Whether a window is ordered by ts."""
        return self._order_of(window) in ([TS], [TS, SEQ])

    def _has_no_peers(self, window: exp.Window) -> bool:
        """Whether no two rows are equal in the order of a window."""
        return self._order_of(window) == [TS, SEQ]

    def _order_of(self, window: exp.Window) -> list[str]:
        """Return the columns by which a window is ordered."""
        names = [self.column(each) for each in order_columns(window)]
        return [each.name if isinstance(each, Column) else "" for each in names]

    def named_function(self, node: exp.Anonymous) -> Expression:
        """Return a function that sqlglot does not know."""
        name = node.name.lower()
        name = ANONYMOUS.get(name, name)
        first = node.expressions[0] if node.expressions else None
        if name == "date_part" and isinstance(first, exp.Literal) and len(node.expressions) == 2:
            return self.part_of(node, str(first.this), node.expressions[1])
        if name in PARTS and len(node.expressions) == 1 and first is not None:
            return self.part_of(node, name, first)
        known = function_named(name)
        if known is not None and known.form == "call":
            return self.call(node, name, *self.parts(node, ("expressions",)))
        raise self.unknown_function(node)

    def unknown_function(self, node: exp.Anonymous) -> EventideError:
        """Return the error for a function that neither sqlglot nor we know."""
        return unknown_function(node, self.span(node))


def unknown_function(
    node: exp.Anonymous, span: Span | None, more: tuple[str, ...] = ()
) -> BindError:
    """Return the error for a function that neither sqlglot nor we know; `more` may be meant."""
    known = [*more, *called_like_functions()]
    name = node.name.lower()
    if name in ("tumble", "hop"):
        message = f"{name.upper()} stands outside GROUP BY"
        hint = f"group by it: GROUP BY {name.upper()}(ts, INTERVAL '10' SECOND)"
        return BindError(message, span=span, hint=hint)
    if name in STANDING_ONLY:
        return BindError(f"{name.upper()} is for standing queries", span=span, hint=_STANDING_HINT)
    if name in ("now", "today", "get_current_timestamp"):
        return no_clock(span)
    hint = _OTHERS.get(name) or suggestion(name, known, "function")
    return BindError(f"no function {name!r}", span=span, hint=hint)


def no_clock(span: Span | None) -> BindError:
    """Return the error for a query that asks for the current time."""
    message = "a query has no clock: its answer depends on the events alone"
    return BindError(message, span=span, hint="write the time as TIMESTAMP '2026-01-31 12:00:00'")


def conjoin(conditions: list[Expression]) -> Expression:
    """Return the AND of conditions."""
    return reduce(lambda left, right: Call("and", (left, right)), conditions)
