"""From parse trees of functions, aggregates and LIKE to nodes."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token
from lark.tree import Meta

from eventcube.errors import Span
from eventcube.language import syntax as s
from eventcube.language.build_expressions import ExpressionBuilder, place, token_place
from eventcube.language.functions import AGGREGATES, FUNCTIONS, arity, replacement_hint
from eventcube.language.identifiers import OPERATORS
from eventcube.language.like import ESCAPE, wrong_escape
from eventcube.language.literals import read_text
from eventcube.language.unplaced import Expression, Name, without_parentheses


@dataclass(frozen=True, slots=True)
class Distinct:
    """`DISTINCT x` between the parentheses of a function."""

    inner: Expression


Argument = Expression | Distinct | Token


class CallBuilder(ExpressionBuilder):
    """Builds function calls, aggregates and LIKE."""

    def distinct(self, meta: Meta, children: list[Expression | Token]) -> Distinct:
        inner = children[1]
        assert not isinstance(inner, Token)
        return Distinct(inner)

    def call(self, meta: Meta, children: list[Argument | None]) -> s.Value:
        name, *listed = children
        assert isinstance(name, Name)
        given = [child for child in listed if child is not None]
        function, span = name.text.upper(), place(meta)
        if function in AGGREGATES:
            return self._aggregate_call(name, given, span)
        if function not in FUNCTIONS:
            self._unknown_function(name)
            return s.Literal(None, span)
        values = [child for child in given if not isinstance(child, Token | Distinct)]
        least, most = FUNCTIONS[function]
        if len(values) < len(given):
            what = "'*'" if isinstance(given[0], Token) else "DISTINCT"
            self.report("EC132", f"{function} takes no {what}", span, f"{function} takes {arity(function)}")
        elif len(given) < least or (most is not None and len(given) > most):
            self.report("EC132", f"{function} takes {arity(function)}, not {len(given)}", span)
        return s.Call(function, tuple(self.as_value(child) for child in values), span)

    def _unknown_function(self, name: Name) -> None:
        if self.clause_word == "PATTERN":
            hint = replacement_hint(name.text, (*OPERATORS, *FUNCTIONS))
            self.report("EC108", f"unknown operator or function '{name.text}'", name.span, hint)
            return
        known = (*AGGREGATES, *FUNCTIONS) if self.clause_word == "HAVING" else FUNCTIONS
        self.report("EC108", f"there is no function '{name.text}'", name.span, replacement_hint(name.text, known))

    def _aggregate_call(self, name: Name, given: list[Argument], span: Span) -> s.Value:
        function = name.text.upper()
        if self.clause_word != "HAVING":
            example = "COUNT(*)" if function == "COUNT" else f"{function}(a.x)"
            hint = f"AGG computes over all matches, in place of RETURN: AGG {example}"
            if self.clause_word != "RETURN":
                hint = f"write conditions on aggregates after HAVING: AGG {example} AS n HAVING n > 1"
            self.report("EC108", f"{function} belongs after AGG, not after {self.clause_word}", name.span, hint)
            return s.Literal(None, span)
        if len(given) > 1:
            self.report("EC132", f"{function} takes one value, not {len(given)}", span)
        return self.make_aggregate(name, given[0] if given else None, None, span)

    def make_aggregate(self, name: Name, given: Argument | None, alias: str | None, span: Span) -> s.Aggregate:
        """The aggregate of nothing, of `*` (a token), of a value, or of its distinct values."""
        function = name.text.upper()
        distinct = isinstance(given, Distinct)
        inner = given.inner if isinstance(given, Distinct) else given
        argument = None if inner is None or isinstance(inner, Token) else self._aggregated(function, inner)
        if function not in AGGREGATES:
            hint = replacement_hint(function, AGGREGATES)
            self.report("EC122", f"unknown aggregate function '{name.text}'", name.span, hint)
        elif argument is None and function != "COUNT":
            hint = f"name an attribute: {function}(a.price)"
            self.report("EC122", f"{function} needs a value", span, hint)
        elif distinct and function != "COUNT":
            hint = "only COUNT does: COUNT(DISTINCT a.x) counts the different values"
            self.report("EC133", f"{function} takes no DISTINCT", span, hint)
        return s.Aggregate(function, argument, alias, distinct, span)

    def _aggregated(self, function: str, inner: Expression) -> s.Value:
        match without_parentheses(inner):
            case Name(text, span) if function == "COUNT" and self.clause_word != "HAVING":
                hint = "COUNT(*) counts matches, COUNT(a.x) the values of an attribute that are not null"
                self.report("EC114", f"'{text}' is not a value", span, hint)
                return s.Attribute(text, text, span)
        return self.as_value(inner)

    # LIKE.

    def like(self, meta: Meta, children: list[Expression | Token | None]) -> s.Like:
        value, _, pattern, word, escape = children
        assert not isinstance(value, Token | None)
        assert not isinstance(pattern, Token | None)
        mark = self._escape(word, escape)
        return s.Like(self.as_value(value), self._like_pattern(pattern, mark), mark, place(meta))

    def not_like(self, meta: Meta, children: list[Expression | Token | None]) -> s.NotQual:
        return s.NotQual(self.like(meta, children), place(meta))

    def _escape(self, word: Expression | Token | None, escape: Expression | Token | None) -> str:
        if not isinstance(word, Name) or not isinstance(escape, Token):
            return ESCAPE
        if word.text.upper() != "ESCAPE":
            self.report("EC101", f"'{word.text}' is not expected here", word.span, "expected ESCAPE, AND or OR")
            return ESCAPE
        mark = read_text(escape.value)
        if len(mark) != 1:
            self.report("EC134", "ESCAPE takes one character", token_place(escape), "ESCAPE '#', for example")
            return ESCAPE
        return mark

    def _like_pattern(self, pattern: Expression, escape: str) -> str:
        node = without_parentheses(pattern)
        if not isinstance(node, s.Literal) or not isinstance(node.value, str):
            hint = "write a text, as in a.name LIKE 'sur%': % stands for any characters, _ for one"
            self.report("EC134", "the pattern of LIKE is not a text", node.span, hint)
            return ""
        if wrong := wrong_escape(node.value, escape):
            hint = f"{escape}%, {escape}_ and {escape * 2} stand for %, _ and {escape} themselves"
            self.report("EC134", f"{wrong} of the pattern means nothing", node.span, hint)
            return ""
        return node.value
