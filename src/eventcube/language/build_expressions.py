"""From parse trees of expressions to values and quals, with mistakes that the grammar does not catch."""

from __future__ import annotations

import re

from lark import Token, Tree
from lark.tree import Meta

from eventcube.errors import MOST_COUNTED, Diagnostic, Span
from eventcube.language import syntax as s
from eventcube.language.identifiers import read_name
from eventcube.language.literals import (
    EVENT_UNITS,
    MIN_INT64_MAGNITUDE,
    UnreadableError,
    check_duration,
    is_min_int64_magnitude,
    read_duration,
    read_number,
    read_text,
    read_timestamp,
    too_large,
    write_text,
)
from eventcube.language.unplaced import (
    Amount,
    Expression,
    Joined,
    Measure,
    Name,
    Parenthesised,
    is_qual,
    is_value,
    without_parentheses,
)

_SAME = {"==": "=", "<>": "!="}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\W\d]+)\s*")


def place(meta: Meta) -> Span:
    """The span of a parse tree."""
    return Span(meta.start_pos, meta.end_pos)


def token_place(token: Token) -> Span:
    """The span of a token."""
    return Span(token.start_pos or 0, token.end_pos or 0)


class TooManyMistakesError(Exception):
    """Building stopped after MOST_COUNTED mistakes."""


class ExpressionBuilder:
    """Builds values and quals, with a method for each grammar rule; `problems` collects mistakes."""

    def __init__(self, clause_word: str = "") -> None:
        self.problems: list[Diagnostic] = []
        # The word of the clause: after HAVING names are columns of the groups, and aggregates are values.
        self.clause_word = clause_word

    def build(self, tree: Tree[Token]) -> object:
        """The node of a parse tree, built bottom-up without recursion."""
        waiting, parents_first = [tree], []
        while waiting:
            node = waiting.pop()
            parents_first.append(node)
            waiting += [child for child in node.children if isinstance(child, Tree)]
        made: dict[int, object] = {}
        for node in reversed(parents_first):
            children = [made.pop(id(child)) if isinstance(child, Tree) else child for child in node.children]
            made[id(node)] = getattr(self, node.data)(node.meta, children)
        return made[id(tree)]

    def report(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Add a mistake; building continues with a harmless node in its place."""
        self.problems.append(Diagnostic(code, message, span, hint))
        if len(self.problems) >= MOST_COUNTED:
            raise TooManyMistakesError

    # Expressions as values or conditions, by their place.

    def as_value(self, node: Expression) -> s.Value:
        """The expression as a value."""
        match without_parentheses(node):
            case Name(text, span) if self.clause_word == "HAVING":
                return s.Column(text, span)
            case Name(text, span):
                hint = f"name the variable it belongs to, as in a.{text}"
                self.report("EC114", f"'{text}' is not a value", span, hint)
                return s.Attribute(text, text, span)
            case Measure() as measure:
                return s.Duration(self.microseconds(measure), measure.span)
            case value if is_value(value):
                return value
            case condition:
                hint = "join conditions with AND, OR and NOT; you cannot compare them or compute with them"
                self.report("EC113", "expected a value, found a condition", node.span, hint)
                return s.Literal(0, condition.span)

    def as_compared(self, node: Expression) -> s.Value:
        """The expression as the right side of a comparison, where a bare name may be text without its quotes."""
        match without_parentheses(node):
            case Name(text, span) if self.clause_word != "HAVING":
                hint = f"write text in quotes: {write_text(text)}; write an attribute with its variable: a.{text}"
                self.report("EC114", f"'{text}' is not a value", span, hint)
                return s.Literal(text, span)
            case _:
                return self.as_value(node)

    def as_qual(self, node: Expression) -> s.Qual:
        """The expression as a condition."""
        match without_parentheses(node):
            case Name(text, span) if self.clause_word == "HAVING":
                return s.Truth(s.Column(text, span), span)
            case Name(text, span):
                self.report(
                    "EC114", f"'{text}' is not a condition", span, f"name the variable it belongs to, as in a.{text}"
                )
                return s.Truth(s.Literal(True), span)
            case Joined(quals, span):
                return s.AllOf(quals, span)
            case s.Attribute() | s.Call() | s.Aggregate() | s.Literal(bool()) as value:
                return s.Truth(value, value.span)
            case qual if is_qual(qual):
                return qual
            case _:
                hint = "compare it with something: =, !=, <, <=, >, >=, IN, BETWEEN or IS NULL"
                self.report("EC113", "expected a condition, found a value", node.span, hint)
                return s.Truth(s.Literal(True), node.span)

    def as_quals(self, node: Expression) -> tuple[s.Qual, ...]:
        """The expression as the quals it adds to a list: AND at its top means the same as a comma."""
        return node.quals if isinstance(node, Joined) else (self.as_qual(node),)

    def microseconds(self, measure: Measure) -> int:
        """The length of a measure of time."""
        total = 0
        for amount in measure.amounts:
            try:
                if amount.unit.lower() in EVENT_UNITS:
                    hint = "only a window counts events: WITHIN 500 events"
                    raise UnreadableError("EC109", f"'{amount.unit}' is not a unit of time", hint)
                total = check_duration(total + read_duration(amount.number, amount.unit))
            except UnreadableError as e:
                self.report(e.code, e.message, amount.unit_span if e.code == "EC109" else amount.span, e.hint)
        return total

    # Constants and names.

    def name(self, meta: Meta, children: list[Token]) -> Name:
        text = read_name(children[0].value)
        if not text:
            self.report("EC114", "a name is empty", place(meta), "put the name between the backticks")
        return Name(text, place(meta), children[0].type == "QUOTED")

    def bare(self, meta: Meta, children: list[Name]) -> Name:
        return children[0]

    def attribute(self, meta: Meta, children: list[Name]) -> s.Attribute:
        return s.Attribute(children[0].text, children[1].text, place(meta))

    def number(self, meta: Meta, children: list[Token]) -> s.Literal:
        try:
            return s.Literal(read_number(children[0].value), place(meta))
        except UnreadableError as e:
            self.report(e.code, e.message, place(meta), e.hint)
            return s.Literal(MIN_INT64_MAGNITUDE if is_min_int64_magnitude(children[0].value) else 1, place(meta))

    def measure(self, meta: Meta, children: list[Token]) -> Measure:
        pairs = zip(children[::2], children[1::2], strict=True)
        amounts = (
            Amount(n.value, u.value, Span(token_place(n).start, token_place(u).end), token_place(u)) for n, u in pairs
        )
        return Measure(tuple(amounts), place(meta))

    def text(self, meta: Meta, children: list[Token]) -> s.Literal:
        return s.Literal(read_text(children[0].value), place(meta))

    def constant(self, meta: Meta, children: list[Token]) -> s.Literal:
        return s.Literal(_CONSTANTS[children[0].type], place(meta))

    def typed(self, meta: Meta, children: list[object]) -> Expression:
        kind, what = children
        assert isinstance(kind, Name)
        span = place(meta)
        match kind.text.upper(), what:
            case "TIMESTAMP", Token() as token:
                try:
                    return s.Timestamp(*read_timestamp(read_text(token)), span)
                except UnreadableError as e:
                    self.report(e.code, e.message, token_place(token), e.hint)
                    return s.Timestamp(0, span=span)
            case "INTERVAL", Measure() as measure:
                return Measure(measure.amounts, span)
            case "INTERVAL", Token() as token:
                at = token_place(token)
                amounts = list(_AMOUNT.finditer(read_text(token)))
                if not amounts or "".join(a[0] for a in amounts) != read_text(token):
                    self.report("EC109", "this is not a duration", at, "write 10 minutes, or INTERVAL '10 minutes'")
                    return s.Duration(1, span)
                return Measure(tuple(Amount(a[1], a[2], at, at) for a in amounts), span)
        hint = "write a timestamp as TIMESTAMP '2024-01-31 12:00:00', a duration as 10 minutes"
        self.report("EC112", f"'{kind.text}' is not a kind of constant", kind.span, hint)
        return s.Literal(None, span)

    def parenthesised(self, meta: Meta, children: list[Expression]) -> Parenthesised:
        return Parenthesised(without_parentheses(children[0]), place(meta))

    # Arithmetic and conditions.

    def minus(self, meta: Meta, children: list[Expression]) -> s.Value:
        match children[0]:
            case s.Literal(bool()) | s.Literal(None):
                pass
            case s.Literal(int(number), span) if number == MIN_INT64_MAGNITUDE:
                # Too large alone, but with its sign it is the smallest int64.
                self.problems = [p for p in self.problems if p.span != span]
                return s.Literal(-MIN_INT64_MAGNITUDE, place(meta))
            case s.Literal(int(number)) if number == -MIN_INT64_MAGNITUDE:
                error = too_large()
                self.report(error.code, error.message, place(meta), error.hint)
            case s.Literal(int() | float() as number):
                return s.Literal(-number, place(meta))
            case Measure() as measure:
                return s.Duration(-self.microseconds(measure), place(meta))
        return s.Minus(self.as_value(children[0]), place(meta))

    def arithmetic(self, meta: Meta, children: list[Expression]) -> s.Arithmetic:
        left, op, right = children
        return s.Arithmetic(str(op), self.as_value(left), self.as_value(right), place(meta))

    def chain(self, meta: Meta, children: list[Expression]) -> s.Qual:
        first, *others = children[::2]
        values = [self.as_value(first), *map(self.as_compared, others)]
        ops = [_SAME.get(str(op), str(op)) for op in children[1::2]]
        links = tuple(
            s.Comparison(op, values[i], values[i + 1], Span(children[2 * i].span.start, children[2 * i + 2].span.end))
            for i, op in enumerate(ops)
        )
        return links[0] if len(links) == 1 else s.AllOf(links, place(meta))

    def one_of(self, meta: Meta, children: list[Expression]) -> s.In:
        value, *options = children
        return s.In(self.as_value(value), tuple(map(self.as_compared, options)), place(meta))

    def none_of(self, meta: Meta, children: list[Expression]) -> s.NotQual:
        return s.NotQual(self.one_of(meta, children), place(meta))

    def between(self, meta: Meta, children: list[Expression]) -> s.Between:
        value, low, high = (self.as_value(child) for child in children)
        return s.Between(value, low, high, place(meta))

    def not_between(self, meta: Meta, children: list[Expression]) -> s.NotQual:
        return s.NotQual(self.between(meta, children), place(meta))

    def null(self, meta: Meta, children: list[Expression]) -> s.IsNull:
        return s.IsNull(self.as_value(children[0]), place(meta))

    def not_null(self, meta: Meta, children: list[Expression]) -> s.NotQual:
        return s.NotQual(self.null(meta, children), place(meta))

    def negated(self, meta: Meta, children: list[Expression]) -> s.NotQual:
        return s.NotQual(self.as_qual(children[0]), place(meta))

    def all_of(self, meta: Meta, children: list[Expression]) -> Joined:
        return Joined(tuple(self.as_qual(child) for child in children), place(meta))

    def any_of(self, meta: Meta, children: list[Expression]) -> s.AnyOf:
        return s.AnyOf(tuple(self.as_qual(child) for child in children), place(meta))
