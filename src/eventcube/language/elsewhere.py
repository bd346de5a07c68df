"""Constructs of SQL, MATCH_RECOGNIZE and other pattern languages, and what to write here instead.

Only clauses that cannot be parsed are checked, so that all these words can still be names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from lark import Token

from eventcube.errors import Diagnostic, Span
from eventcube.language.functions import AGGREGATES, TIME_PARTS, replacement_hint
from eventcube.language.identifiers import OPERATORS
from eventcube.language.literals import is_unit
from eventcube.language.tokens import repetition

_BEGIN = ("PATTERN", "LPAR", "COMMA", "BANG")
_END = ("", "COMMA", "RPAR")
# Characters that names contain in other languages.
_IN_NAMES = ("MINUS", "SLASH", "DOT")
_NUMBERS = {"A": 1, "AN": 1, "ONE": 1, "TWO": 2, "THREE": 3, "FIVE": 5, "TEN": 10}
_NEXT = "write SEQ(A a, B b); for the next B only, SEQ(A a, !(B x, x.k = a.k), B b, b.k = a.k)"
# The first words of clauses in SQL and others, and what to write instead.
WORDS = {
    "SELECT": "a query begins with PATTERN; RETURN lists the columns: PATTERN SEQ(A a, B b) RETURN a.x, b.x",
    "DEFINE": "write conditions after WHERE or in the list of an operator: SEQ(A a, B b, b.x > a.x)",
    "MEASURES": "RETURN lists the columns: RETURN a.x, b.ts - a.ts AS delay",
    "MATCH_RECOGNIZE": (
        "write PATTERN SEQ(A a, B b); use WHERE for DEFINE, RETURN for MEASURES, and WITHIN to bound a match in time"
    ),
    "JOIN": "name every event in the pattern, SEQ(A a, B b) or AND(A a, B b), and join them after WHERE",
    "ON": "write conditions after WHERE",
    "EVERY": "leave it out: eventcube finds all matches",
    "DISTINCT": "there is a row for each match; GROUPBY a.x AGG COUNT(*) gives every value once",
}


def foreign(tokens: Sequence[Token]) -> Diagnostic | None:
    """The first construct of another language in a clause that cannot be parsed."""
    return next(_findings(_Clause(tokens)), None)


def foreign_query(tokens: Sequence[Token]) -> Diagnostic | None:
    """The mistake of a whole query in another language; the text cannot be parsed."""
    word = next((t for t in tokens if t.type == "NAME" and t.upper() == "MATCH_RECOGNIZE"), None)
    return no_such(word) if word is not None else None


def no_such(token: Token) -> Diagnostic:
    """The mistake of using one of WORDS."""
    word = token.upper()
    return Diagnostic("EC127", f"there is no {word}", _span(token), WORDS[word])


def clause_inside(token: Token) -> Diagnostic:
    """The mistake of a clause inside parentheses."""
    word = token.type
    hint = f"close the parentheses first: PATTERN SEQ(A a, B b) {word} …"
    if word == "WHERE":
        hint = "write conditions in the list, SEQ(A a, B b, a.x = b.x), or after WHERE behind the last parenthesis"
    return Diagnostic("EC126", f"{word} is inside parentheses", _span(token), hint)


class _Clause:
    """The tokens of a clause by position; empty beyond its ends."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.word = tokens[0].type
        # For each token, the word before the innermost open parenthesis: the operator of a list of parts.
        self.lists: list[str] = []
        opened = [self.word]
        for previous, token in zip((None, *tokens), tokens, strict=False):
            self.lists.append(opened[-1])
            if token.type == "LPAR":
                opened.append(previous.type if previous is not None else "")
            elif token.type == "RPAR" and len(opened) > 1:
                opened.pop()

    def type(self, i: int) -> str:
        return self.tokens[i].type if 0 <= i < len(self.tokens) else ""

    def upper(self, i: int) -> str:
        return self.tokens[i].upper() if self.type(i) == "NAME" else ""

    def types(self, i: int, *allowed: Sequence[str]) -> bool:
        """Whether the tokens from the i-th on have these types."""
        return all(self.type(i + k) in kinds for k, kinds in enumerate(allowed))

    def span(self, first: int, last: int) -> Span:
        return Span(_span(self.tokens[first]).start, _span(self.tokens[last]).end)

    def written(self, first: int, last: int) -> str:
        return "".join(self.tokens[first : last + 1])


def _findings(clause: _Clause) -> Iterator[Diagnostic]:
    if clause.word == "RETURN" and clause.upper(1) == "DISTINCT" and clause.type(2) not in ("", "COMMA", "AS"):
        yield no_such(clause.tokens[1])
    if clause.word == "FROM" and clause.type(1) == "STRING":
        hint = f"write the name in backticks: FROM `{clause.tokens[1][1:-1]}`"
        yield Diagnostic("EC101", "FROM takes a name without quotes", clause.span(1, 1), hint)
    every = clause.word == "PATTERN" and clause.upper(1) == "EVERY"
    if every and clause.types(2, ("NAME", "LPAR", *OPERATORS)) and not clause.types(2, ("NAME",), ("",)):
        yield no_such(clause.tokens[1])
    if clause.word == "WITHIN" and clause.upper(1) in _NUMBERS and clause.upper(2) and is_unit(clause.tokens[2]):
        hint = f"write {_NUMBERS[clause.upper(1)]} {clause.tokens[2].lower()}"
        yield Diagnostic("EC110", f"'{clause.tokens[1]}' is not a number", clause.span(1, 1), hint)
    for i in range(1, len(clause.tokens)):
        if clause.word == "PATTERN":
            yield from _in_pattern(clause, i)
        if clause.word in ("PATTERN", "WHERE"):
            yield from _in_condition(clause, i)
        yield from _in_value(clause, i)
    if clause.word == "PATTERN":
        yield from _without_operator(clause)


def _in_pattern(clause: _Clause, i: int) -> Iterator[Diagnostic]:
    begins = clause.type(i - 1) in _BEGIN
    if begins and clause.lists[i] in (*OPERATORS, "BANG", "PATTERN"):
        yield from _odd_name(clause, i)
    sign = i + (2 if clause.types(i, ("NAME",), ("NAME",)) else 1)
    repeated = begins and clause.types(i, ("NAME",)) and clause.types(sign, ("PLUS", "STAR"))
    stops = clause.types(sign + 1, (*_END, "MINUS")) or clause.types(sign + 1, ("NAME",), (*_END, "PLUS", "STAR"))
    if repeated and stops:
        yield repetition(clause.span(i, sign), clause.written(sign, sign))
    if begins and clause.types(i, ("NAME",), ("COMPARE", "AS"), ("NAME",), (*_END, "MINUS")):
        one, between, other = clause.tokens[i : i + 3]
        named = f"{other} {one}" if between.type == "COMPARE" else f"{one} {other}"
        hint = f"write the type, then the variable: {named}"
        if between in ("=", "==") or between.type == "AS":
            yield Diagnostic("EC127", f"{between.upper()} cannot name an event", clause.span(i, i + 2), hint)
    if begins and clause.type(i) == "NOT" and _begins_part(clause, i + 1):
        hint = "write '!' before what must not happen; NOT is for conditions"
        yield Diagnostic("EC116", "NOT stands before a pattern", clause.span(i, i), hint)
    if _adjacent(clause, i, "-", ">") or (_adjacent(clause, i, "=", ">") and clause.type(i - 2) != "DOT"):
        yield Diagnostic("EC125", f"there is no '{clause.written(i, i + 1)}'", clause.span(i, i + 1), _NEXT)
    if clause.upper(i) == "FOLLOWED" and clause.upper(i + 1) == "BY":
        yield Diagnostic("EC125", "there is no FOLLOWED BY", clause.span(i, i + 1), _NEXT)
    if begins and clause.upper(i) == "NEXT" and clause.types(i, ("NAME",), ("NAME",), ("NAME",)):
        yield Diagnostic("EC125", "there is no NEXT", clause.span(i, i), _NEXT)
    if begins and clause.types(i, ("STRING",), ("NAME", *_END)):
        hint = f"write it as it is, or in backticks: `{clause.tokens[i][1:-1]}`"
        yield Diagnostic("EC101", "a type has no quotes", clause.span(i, i), hint)
    if clause.types(i, ("NAME", "RPAR"), ("AND", "OR"), ("NAME",), ("NAME", "")) and clause.type(i - 1) != "DOT":
        word = clause.type(i + 1)
        hint = f"write the operator before its parts: {word}(A a, B b)"
        yield Diagnostic("EC128", f"{word} stands between two patterns", clause.span(i + 1, i + 1), hint)


def _in_value(clause: _Clause, i: int) -> Iterator[Diagnostic]:
    """Values in the syntax of SQL."""
    word = clause.upper(i) if clause.type(i - 1) != "DOT" else ""
    if word == "INTERVAL" and clause.types(i + 1, ("STRING",), ("NAME",)) and is_unit(clause.tokens[i + 2]):
        number, unit = clause.tokens[i + 1][1:-1].strip(), clause.tokens[i + 2].lower()
        hint = f"write {number} {unit if number == '1' or unit.endswith('s') else unit + 's'}"
        yield Diagnostic("EC101", "the number of a duration has no quotes", clause.span(i, i + 2), hint)
    if word == "CASE" and any(clause.upper(k) == "WHEN" for k in range(i + 1, len(clause.tokens))):
        yield Diagnostic("EC127", "there is no CASE", clause.span(i, i), replacement_hint("CASE", ()))
    if word in ("CAST", "TRY_CAST") and clause.type(i + 1) == "LPAR":
        yield Diagnostic("EC127", f"there is no {word}", clause.span(i, i), replacement_hint(word, ()))
    if word == "EXTRACT" and clause.types(i + 1, ("LPAR",), ("NAME",), ("FROM",)):
        part = clause.upper(i + 2)
        other = f"write {part}(a.ts)" if part in TIME_PARTS else replacement_hint(word, ())
        yield Diagnostic("EC127", "there is no EXTRACT", clause.span(i, i), other)


def _odd_name(clause: _Clause, i: int) -> Iterator[Diagnostic]:
    """A type that needs backticks for its characters: `Sent-Mail a`, `3DSecure a`, `1 a`."""
    end = i
    while clause.type(end + 1) and clause.tokens[end].end_pos == clause.tokens[end + 1].start_pos:
        if not (clause.tokens[end + 1].replace("_", "").isalnum() or clause.type(end + 1) in _IN_NAMES):
            break
        end += 1
    signs = [clause.type(k) for k in range(i, end + 1)]
    plain = signs[0] == "NAME" and not {*_IN_NAMES} & {*signs}
    if signs[0] not in ("NAME", "INT") or plain or signs[-1] in _IN_NAMES:
        return
    named = clause.types(end + 1, ("NAME",), _END)
    alone = clause.types(end + 1, _END) and "DOT" not in signs
    measured = signs == ["INT"] and named and len(clause.tokens[end + 1]) > 1 and is_unit(clause.tokens[end + 1])
    if (named or alone) and not measured:
        written = clause.written(i, end)
        var = f" {clause.tokens[end + 1]}" if named else ""
        hint = f"write it in backticks: `{written}`{var}"
        yield Diagnostic("EC101", f"'{written}' is not a plain name", clause.span(i, end), hint)


def _begins_part(clause: _Clause, i: int) -> bool:
    """Whether a pattern, in parentheses or not, begins at the i-th token."""
    if clause.type(i) in OPERATORS:
        return True
    i += clause.type(i) == "LPAR"
    return clause.types(i, ("NAME", "QUOTED"), ("NAME", "QUOTED", *_END))


def _in_condition(clause: _Clause, i: int) -> Iterator[Diagnostic]:
    if _adjacent(clause, i, "=", ">") or _adjacent(clause, i, "=", "<"):
        right = clause.tokens[i + 1] + clause.tokens[i]
        hint = f"write {right}"
        yield Diagnostic("EC101", f"there is no '{clause.written(i, i + 1)}'", clause.span(i, i + 1), hint)
    free = clause.type(i - 1) != "DOT" and clause.types(i + 1, ("LPAR", "COMPARE"))
    if clause.upper(i) in AGGREGATES and free:
        hint = (
            "AGG computes over all matches: AGG COUNT(*) AS n HAVING n > 3; "
            "to ask for three events, name them: SEQ(A a1, A a2, A a3)"
        )
        message = f"{clause.upper(i)} belongs after AGG, not in a condition"
        yield Diagnostic("EC108", message, clause.span(i, i), hint)


def _adjacent(clause: _Clause, i: int, first: str, second: str) -> bool:
    """Whether these two signs follow each other without a space."""
    if clause.type(i + 1) != "COMPARE" or clause.type(i) not in ("COMPARE", "MINUS"):
        return False
    one, two = clause.tokens[i : i + 2]
    return (one, two) == (first, second) and one.end_pos == two.start_pos


def _without_operator(clause: _Clause) -> Iterator[Diagnostic]:
    """Several parts without an operator around them."""
    steps = accumulate({"LPAR": 1, "RPAR": -1}.get(t.type, 0) for t in clause.tokens)
    top = 1 if clause.type(1) == "LPAR" else 0
    commas = [i for i, depth in enumerate(steps) if depth == top and clause.type(i) == "COMMA"]
    start = 1 + top
    third = clause.upper(start + 2)
    listed = clause.types(start, ("NAME",), ("NAME",), ("NAME",)) and third not in (*WORDS, "ORDER")
    if commas or listed:
        at = commas[0] if commas else start + 2
        hint = "write SEQ(A a, B b) for one after the other, AND(A a, B b) for any order, OR(A a, B b) for either"
        yield Diagnostic("EC128", "several parts without an operator around them", clause.span(at, at), hint)


def _span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)
