"""From parse trees of whole clauses to `Clauses`."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token, Tree
from lark.tree import Meta

from eventcube.errors import Span
from eventcube.language import syntax as s
from eventcube.language.build_calls import Argument, CallBuilder
from eventcube.language.build_expressions import TooManyMistakesError, place, token_place
from eventcube.language.identifiers import ANY, write_name
from eventcube.language.literals import EVENT_UNITS, UnreadableError, read_number
from eventcube.language.unplaced import Expression, Joined, Measure, Name, Parenthesised, without_parentheses

PartTree = s.Part | Expression
# The longest bucket of EVERY, 100 years in microseconds.
LONGEST_BUCKET = 36_525 * 86_400_000_000


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a query; None for a clause that is missing."""

    pattern: s.Pattern | None = None
    from_: str | None = None
    where: tuple[s.Qual, ...] | None = None
    partition_by: tuple[s.Column, ...] | None = None
    group_by: tuple[s.Item, ...] | None = None
    agg: tuple[s.Aggregate, ...] | None = None
    per: s.Variable | None = None
    having: tuple[s.Qual, ...] | None = None
    within: s.TimeWindow | s.CountWindow | None = None
    returns: tuple[s.Item, ...] | None = None
    limit: int | None = None


class ClauseBuilder(CallBuilder):
    """Builds one clause, as a `Clauses` with no other clause."""

    def clause(self, tree: Tree[Token]) -> Clauses | None:
        """The clause; None if building stopped after too many mistakes."""
        try:
            clauses = self.build(tree)
        except TooManyMistakesError:
            return None
        assert isinstance(clauses, Clauses)
        return clauses

    # Patterns.

    def component(self, meta: Meta, children: list[Name | Token]) -> s.Component:
        kind, var = children
        assert isinstance(var, Name)
        return s.Component(_type(kind), var.text, place(meta))

    def anything(self, meta: Meta, children: list[Token]) -> s.Component:
        return s.Component(None, None, place(meta))

    def operator(self, meta: Meta, children: list[PartTree | Token | None]) -> s.Pattern:
        word, *listed = children
        assert isinstance(word, Token)
        parts, quals = self.parts_and_quals([p for p in listed if p is not None and not isinstance(p, Token)])
        at = Span(word.start_pos or 0, word.end_pos or 0)
        if word.type == "OR":
            return s.Or(self._alternatives(parts, at), quals, place(meta))
        if not parts:
            hint = f"a part is a type and its variable: {word.type}(A a, B b)"
            self.report("EC115", f"{word.type} has no part", at, hint)
        elif all(isinstance(part, s.Not) for part in parts):
            hint = f"add what must happen: {word.type}(A a, …)"
            self.report("EC115", f"{word.type} needs at least one part without '!'", at, hint)
        kind = s.Seq if word.type == "SEQ" else s.And
        return kind(parts, quals, place(meta))

    def _alternatives(self, parts: tuple[s.Part, ...], at: Span) -> tuple[s.Pattern, ...]:
        if not parts:
            self.report("EC115", "OR needs at least one alternative", at, "add one: OR(A a, B b)")
        for part in parts:
            if isinstance(part, s.Not):
                hint = "an alternative may contain a negation: OR(SEQ(A a, !B b, C c), D d)"
                self.report("EC116", "an alternative of OR cannot be negated", part.span, hint)
        return tuple(part.pattern if isinstance(part, s.Not) else part for part in parts)

    def negation(self, meta: Meta, children: list[PartTree]) -> s.Not | s.Qual:
        parts, quals = self.parts_and_quals(children)
        span = place(meta)
        for part in parts:
            if isinstance(part, s.Not):
                self.report("EC116", "a negation of a negation", span, "leave out both '!'")
        patterns = tuple(part.pattern if isinstance(part, s.Not) else part for part in parts)
        match patterns:
            case (pattern,):
                return s.Not(pattern, quals, span)
            case ():
                hint = "write NOT before a condition; '!' is for patterns"
                self.report("EC116", "'!' stands before a condition", span, hint)
                return quals[0]
            case _:
                hint = "join them: !SEQ(…), !AND(…) or !OR(…)"
                self.report("EC116", f"'!' takes one pattern, not {len(patterns)}", span, hint)
                return s.Not(s.And(patterns, (), span), quals, span)

    def parts_and_quals(self, nodes: list[PartTree]) -> tuple[tuple[s.Part, ...], tuple[s.Qual, ...]]:
        """The parts among the nodes, and the quals, each in the order they were written."""
        parts: list[s.Part] = []
        quals: list[s.Qual] = []
        for node in nodes:
            match self._as_part(node):
                case s.Not() | s.Component() | s.Seq() | s.And() | s.Or() as part:
                    parts.append(part)
                case qual:
                    quals.extend(self.as_quals(qual))
        return tuple(parts), tuple(quals)

    def _as_part(self, node: PartTree) -> PartTree:
        inner = node.inner if isinstance(node, Parenthesised) else node
        return s.Component(_type(inner), None, inner.span) if isinstance(inner, Name) else node

    # Clauses.

    def pattern(self, meta: Meta, children: list[PartTree]) -> Clauses:
        match self._as_part(children[0]):
            case s.Not() as negation:
                hint = "say what must happen too: SEQ(A a, !B b)"
                self.report("EC116", "the whole pattern is negated", negation.span, hint)
                return Clauses(pattern=negation.pattern)
            case s.Component() | s.Seq() | s.And() | s.Or() as part:
                return Clauses(pattern=part)
            case other:
                hint = "conditions go after WHERE: PATTERN SEQ(A a, B b) WHERE a.x = b.x"
                # An unknown operator has been reported already.
                if not any(p.span and p.span.start == other.span.start for p in self.problems):
                    self.report("EC113", "expected a pattern, found an expression", other.span, hint)
                return Clauses(pattern=s.Component("?", None, other.span))

    def stream(self, meta: Meta, children: list[Name]) -> Clauses:
        return Clauses(from_=".".join(name.text for name in children))

    def where(self, meta: Meta, children: list[Expression]) -> Clauses:
        return Clauses(where=tuple(qual for child in children for qual in self.as_quals(child)))

    def partition_by(self, meta: Meta, children: list[Expression | Token]) -> Clauses:
        return Clauses(partition_by=tuple(self._column(child) for child in children if not isinstance(child, Token)))

    def _column(self, node: Expression) -> s.Column:
        match without_parentheses(node):
            case Name(text, span):
                return s.Column(text, span)
            case s.Attribute(name=name):
                hint = f"write the column without a variable: {name}"
            case _:
                hint = "PARTITION BY account, for example"
        self.report("EC136", "PARTITION BY takes columns of the events", node.span, hint)
        return s.Column("?", node.span)

    def having(self, meta: Meta, children: list[Expression]) -> Clauses:
        return Clauses(having=tuple(qual for child in children for qual in self.as_quals(child)))

    def item(self, meta: Meta, children: list[Expression | Token | None]) -> s.Item:
        node, _, level, every, length, alias = children
        assert not isinstance(node, Token | None)
        name = alias.text if isinstance(alias, Name) else None
        value = without_parentheses(node)
        if isinstance(every, Token) and not isinstance(length, Token | None):
            if isinstance(level, Token):
                hint = "EVERY cuts times into buckets, as in c.ts EVERY 1 hour; AT LEVEL gives a type"
                self.report("EC138", "AT LEVEL and EVERY do not go together", token_place(every), hint)
            elif isinstance(value, Name):
                hint = f"name its time, as in {write_name(value.text)}.ts EVERY 1 hour"
                self.report("EC138", "EVERY takes a time, not an event", value.span, hint)
            time = s.Literal(None) if isinstance(value, Name) else self.as_value(node)
            return s.Item(s.Every(time, self._bucket_length(length), place(meta)), name, place(meta))
        if isinstance(level, Token):
            return s.Item(self._level(value, level, place(meta)), name, place(meta))
        if isinstance(value, Name):
            return s.Item(s.Variable(value.text, value.span), name, place(meta))
        return s.Item(self.as_value(node), name, place(meta))

    def _level(self, value: object, level: Token, span: Span) -> s.Level:
        number = int(level) if len(level) < 10 else 10**9
        if not isinstance(value, Name):
            hint = "it gives a variable's type at a level of the hierarchy: c AT LEVEL 1"
            self.report("EC135", "AT LEVEL needs a variable", span, hint)
        elif number < 1:
            hint = "AT LEVEL 1 is the root of the hierarchy, 2 the level below it"
            self.report("EC135", "levels start at 1", token_place(level), hint)
        return s.Level(value.text if isinstance(value, Name) else "?", number, span)

    def _bucket_length(self, node: Expression) -> int:
        hint = "write a duration, as in EVERY 1 hour or EVERY 15 minutes"
        match without_parentheses(node):
            case Measure() as measure:
                before = len(self.problems)
                length = self.microseconds(measure)
                if len(self.problems) > before:
                    return 1
            case s.Duration(length):
                pass
            case s.Literal(int() | float() as number) if not isinstance(number, bool):
                self.report("EC138", "the length after EVERY has no unit", node.span, f"write EVERY {number} minutes")
                return 1
            case _:
                self.report("EC138", "EVERY takes a duration", node.span, hint)
                return 1
        if 0 < length <= LONGEST_BUCKET:
            return length
        fault = "longer than zero" if length <= 0 else "at most 100 years long"
        self.report("EC138", f"the buckets of EVERY must be {fault}", node.span, hint)
        return 1

    def group_by(self, meta: Meta, children: list[s.Item]) -> Clauses:
        return Clauses(group_by=tuple(children[1:]))

    def returns(self, meta: Meta, children: list[s.Item]) -> Clauses:
        return Clauses(returns=tuple(children))

    def aggregate(self, meta: Meta, children: list[Argument | None]) -> s.Aggregate:
        name, given, alias = children
        assert isinstance(name, Name)
        return self.make_aggregate(name, given, alias.text if isinstance(alias, Name) else None, place(meta))

    def agg(self, meta: Meta, children: list[s.Aggregate | Name | Token | None]) -> Clauses:
        *listed, _, name = children
        per = s.Variable(name.text, name.span) if isinstance(name, Name) else None
        return Clauses(agg=tuple(child for child in listed if isinstance(child, s.Aggregate)), per=per)

    def within(self, meta: Meta, children: list[Expression]) -> Clauses:
        span = children[0].span
        match without_parentheses(children[0]):
            case Measure(amounts) if any(a.unit.lower() in EVENT_UNITS for a in amounts):
                return Clauses(within=s.CountWindow(self._events(children[0]), span))
            case Measure() as measure:
                length = self.microseconds(measure)
            case s.Duration(length):
                pass
            case s.Literal(int() | float() as number) if not isinstance(number, bool):
                hint = f"write {number} events, or {number} seconds"
                self.report("EC110", "the window has no unit", span, hint)
                length = 1
            case s.Literal(str(text)):
                self.report("EC110", "the window is in quotes", span, f"write it without: WITHIN {text}")
                length = 1
            case Joined() | s.AnyOf():
                # Drop mistakes in the conditions: no condition belongs here.
                self.problems.clear()
                hint = "write one window, such as 1 hour 30 min or 500 events; conditions go after WHERE"
                self.report("EC110", "WITHIN takes no AND or OR", span, hint)
                length = 1
            case _:
                hint = "write a duration such as 10 minutes or 1 hour 30 min, or a number of events such as 500 events"
                self.report("EC110", "this is not a window", span, hint)
                length = 1
        if length <= 0 and not any(p.span and span.start <= p.span.start < span.end for p in self.problems):
            self.report("EC110", "the window must be longer than zero", span, "WITHIN 10 minutes, for example")
        return Clauses(within=s.TimeWindow(length, span))

    def _events(self, node: Expression) -> int:
        measure = without_parentheses(node)
        assert isinstance(measure, Measure)
        number: int | float = 0
        try:
            number = read_number(measure.amounts[0].number)
        except UnreadableError as e:
            self.report(e.code, e.message, measure.amounts[0].span, e.hint)
            return 1
        if len(measure.amounts) > 1:
            hint = "write one of them: WITHIN 10 minutes, or WITHIN 500 events"
            self.report("EC110", "a window of both time and events", measure.span, hint)
        elif not isinstance(number, int) or number < 1:
            hint = "WITHIN 500 events, for example"
            self.report("EC110", "a window must hold a whole number of events, at least 1", measure.span, hint)
        return int(number)

    def limit(self, meta: Meta, children: list[Expression]) -> Clauses:
        match children[0]:
            case s.Literal(int() as number) if number > 0 and not isinstance(number, bool):
                return Clauses(limit=number)
            case other:
                self.report("EC118", "LIMIT takes a whole number, at least 1", other.span, "LIMIT 100, for example")
                return Clauses(limit=1)

    def end(self, meta: Meta, children: list[object]) -> Clauses:
        return Clauses()


def _type(written: Name | Token) -> str | None:
    """The type of a component; None for `*` and ANY, which match every event."""
    plain = isinstance(written, Token) or (written.text.upper() == ANY and not written.quoted)
    return None if plain or isinstance(written, Token) else written.text
