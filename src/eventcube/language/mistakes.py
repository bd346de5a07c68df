"""From an unexpected token to a message: what the user probably wants to write."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lark import Token

from eventcube.errors import Diagnostic, Span, did_you_mean
from eventcube.language.elsewhere import WORDS, clause_inside, no_such
from eventcube.language.functions import FUNCTIONS
from eventcube.language.identifiers import CLAUSES, OPERATORS, is_keyword, spoken
from eventcube.language.literals import is_unit

_EXAMPLES = {
    "PATTERN": "PATTERN SEQ(A a, B b)",
    "FROM": "FROM trades",
    "WHERE": "WHERE a.id = b.id",
    "PARTITIONBY": "PARTITION BY account",
    "GROUPBY": "GROUPBY a.id",
    "AGG": "AGG COUNT(*)",
    "HAVING": "HAVING COUNT(*) > 3",
    "WITHIN": "WITHIN 10 minutes",
    "RETURN": "RETURN a, b.price AS price",
    "LIMIT": "LIMIT 100",
}
_VALUE_STARTS = {"INT", "FLOAT", "STRING", "TRUE", "FALSE"}
_PART_STARTS = {"NAME", "QUOTED", "SEQ", "AND", "OR", "BANG"}
_LIKE = {"ILIKE", "RLIKE", "REGEXP", "SIMILAR"}
# A longer word is similar to no clause.
_LONGEST_WORD = 14
_JOINERS = {"COMPARE", "IN", "BETWEEN", "LIKE", "IS"}


@dataclass(frozen=True, slots=True)
class Stuck:
    """A clause whose parsing stopped at token `at` (its length, if it ends too early); the grammar allows `allowed`
    there."""

    tokens: Sequence[Token]
    at: int
    allowed: frozenset[str]

    def type(self, offset: int) -> str:
        """The type of the token at an offset from where parsing stopped, '' beyond the clause."""
        i = self.at + offset
        return self.tokens[i].type if 0 <= i < len(self.tokens) else ""

    def token(self, offset: int = 0) -> Token:
        """The token at an offset from where parsing stopped."""
        return self.tokens[self.at + offset]


def span_of(token: Token) -> Span:
    """The span of a token."""
    return Span(token.start_pos or 0, token.end_pos or 0)


def explain(stuck: Stuck) -> Diagnostic:
    """Why parsing stopped, with a hint."""
    opened = _opened(stuck.tokens[: stuck.at])
    if stuck.at == len(stuck.tokens):
        return _ends_early(stuck, opened)
    token = stuck.token()
    if opened and token.type in CLAUSES and not _listed_name(stuck):
        return clause_inside(token)
    if from_sql := _from_sql(stuck):
        return from_sql
    match stuck.type(-1), token.type:
        case _ if misplaced := _misplaced(stuck):
            return misplaced
        case _, "RPAR" if not opened:
            return _diagnostic("EC104", "this ')' closes nothing", token, "remove it, or add the missing '('")
        case "COMMA", "RPAR":
            return _diagnostic("EC101", "nothing follows this comma", stuck.token(-1), "remove it")
        case _ if called := _unknown_call(stuck, opened):
            return called
        case _ if (wrong := _negation(stuck)) or (wrong := _reserved(stuck)):
            return wrong
        case "STRING", _ if stuck.token(-1).end_pos == token.start_pos:
            quote = stuck.token(-1)[0]
            hint = f"write a quote inside a text twice: {quote * 2}"
            return _diagnostic("EC101", f"the text ends before '{token}'", token, hint)
        case _, kind if kind in _PART_STARTS and "COMMA" in stuck.allowed and opened:
            hint = "is a comma missing before it?"
            if _three_names(stuck):
                hint += f" Write a type of several words in backticks: `{stuck.token(-2)} {stuck.token(-1)}` {token}"
            return _diagnostic("EC101", f"'{token}' is not expected here", token, hint)
        case _, "NAME" if "$END" in stuck.allowed and not stuck.allowed & _JOINERS:
            return unknown_clause(token, None)
        case _:
            return _diagnostic("EC101", f"'{token}' is not expected here", token, _expected(stuck.allowed))


def misspelt_clause(stuck: Stuck) -> tuple[int, str] | None:
    """The position in a clause where a misspelt clause seems to begin, and its correct keyword."""
    for i in (stuck.at, stuck.at - 1):
        if not 0 <= i < len(stuck.tokens) or stuck.tokens[i].type != "NAME":
            continue
        if i < stuck.at and (i < 2 or stuck.tokens[i - 1].type in ("DOT", "COMMA", "LPAR", "BANG", "AS")):
            continue
        guess = closest_clause(stuck.tokens[i].value, 0.85 if _opened(stuck.tokens[:i]) else 0.75)
        if guess:
            return i, guess
    return None


def misspelt_after_number(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """The words in place of a unit that seem to begin a clause: `a.x > 5 WITIN 10 minutes`."""
    for i, token in enumerate(tokens[1:], start=1):
        if token.type == "NAME" and tokens[i - 1].type in ("INT", "FLOAT") and not is_unit(token.value):
            guess = closest_clause(token.value, 0.75)
            if guess:
                yield i, guess


def closest_clause(word: str, cutoff: float) -> str | None:
    """The clause most similar to a misspelt word, if one is similar enough."""
    if len(word) > _LONGEST_WORD:
        return None
    close = difflib.get_close_matches(word.upper(), CLAUSES, n=1, cutoff=cutoff)
    return close[0] if close else None


def unknown_clause(token: Token, guess: str | None) -> Diagnostic:
    """The complaint about a word where a clause should begin."""
    if guess is None and token.upper() in WORDS:
        return no_such(token)
    hint = f"did you mean {spoken(guess)}?" if guess else f"the clauses are: {', '.join(map(spoken, CLAUSES))}"
    return _diagnostic("EC105", f"unknown clause '{token}'", token, hint)


def unclosed(tokens: Sequence[Token]) -> Diagnostic | None:
    """The complaint about a parenthesis among the tokens that is not closed."""
    opened = _opened(tokens)
    return _diagnostic("EC104", "this '(' is not closed", opened[-1], "add the missing ')'") if opened else None


def _diagnostic(code: str, message: str, token: Token, hint: str | None) -> Diagnostic:
    return Diagnostic(code, message, span_of(token), hint)


def _opened(tokens: Sequence[Token]) -> list[Token]:
    opened: list[Token] = []
    for token in tokens:
        if token.type == "LPAR":
            opened.append(token)
        elif token.type == "RPAR" and opened:
            opened.pop()
    return opened


def _ends_early(stuck: Stuck, opened: list[Token]) -> Diagnostic:
    last = stuck.token(-1)
    if len(stuck.tokens) == 1:
        word = stuck.tokens[0].type
        return _diagnostic("EC101", f"nothing follows {spoken(word)}", last, f"{_EXAMPLES[word]}, for example")
    if opened:
        return _diagnostic("EC104", "this '(' is not closed", opened[-1], "add the missing ')'")
    if last.type == "COMMA":
        return _diagnostic("EC101", "nothing follows this comma", last, "remove it")
    return _diagnostic("EC101", f"something is missing after '{last}'", last, _expected(stuck.allowed))


def _misplaced(stuck: Stuck) -> Diagnostic | None:
    """PER or EVERY in a wrong place, or without what it needs."""
    token, agg = stuck.token(), stuck.tokens[0].type == "AGG"
    if token.type == "DOT" and stuck.type(-2) == "PER":
        event = stuck.token(-1)
        return _diagnostic("EC139", "PER names an event, not a value", token, f"write the variable alone: PER {event}")
    per = token if token.upper() == "PER" else stuck.token(-1) if agg and stuck.at > 1 else token
    if per.type == "PER" or (agg and per.type == "NAME" and per.upper() == "PER"):
        hint = "it follows the aggregates and names an event: AGG COUNT(*) PER a"
        return _diagnostic("EC139", "PER is not expected here", per, hint)
    if token.type == "EVERY":
        hint = "it follows a time that GROUPBY or RETURN lists: GROUPBY a.ts EVERY 1 hour AS hour"
        return _diagnostic("EC138", "EVERY is not expected here", token, hint)
    return None


def _negation(stuck: Stuck) -> Diagnostic | None:
    """`!` before a condition."""
    if stuck.type(0) in ("COMPARE", "IN", "BETWEEN", "IS") and stuck.type(-4) == "BANG":
        hint = "write NOT before a condition; '!' is for patterns"
        return _diagnostic("EC116", "'!' stands before a condition", stuck.token(-4), hint)
    return None


def _listed_name(stuck: Stuck) -> bool:
    """Whether the keyword of a clause is in place of a type, as in `SEQ(Limit l, B b)`."""
    begins = stuck.type(-1) in ("LPAR", "COMMA", "BANG")
    ends = ("COMMA", "RPAR")
    return begins and (stuck.type(1) in ends or (stuck.type(1) == "NAME" and stuck.type(2) in ends))


def _three_names(stuck: Stuck) -> bool:
    """Whether parsing stopped at the third name of a part, as in `SEQ(Sent Mail a, B b)`."""
    names = [stuck.type(i) for i in (-2, -1, 0)]
    return names == ["NAME"] * 3 and stuck.type(-3) in ("LPAR", "COMMA", "BANG") and stuck.type(1) in ("COMMA", "RPAR")


def _from_sql(stuck: Stuck) -> Diagnostic | None:
    """Constructs of SQL that this language does not have, or has in another place."""
    token, before = stuck.token(), stuck.type(-1)
    words = [stuck.token(i).upper() if stuck.type(i) == "NAME" else "" for i in (-1, 0, 1)]
    for offset in (-1, 0):
        if words[offset + 1 : offset + 3] == ["ORDER", "BY"]:
            hint = "sort the result afterwards; LIMIT n gives the earliest n matches"
            return _diagnostic("EC105", "there is no ORDER BY", stuck.token(offset), hint)
    if words[1] in _LIKE:
        hint = "use LIKE: a.name LIKE 'sur%'; LOWER(a.name) ignores case"
        return _diagnostic("EC101", f"there is no {words[1]}", token, hint)
    if stuck.tokens[0].type != "RETURN":
        return None
    if token.type == "STAR" and before in ("RETURN", "COMMA"):
        hint = "leave RETURN out to get every event of the match"
        return _diagnostic("EC101", "RETURN takes no '*'", token, hint)
    if token.type == "STAR" and before == "DOT":
        hint = f"write the variable alone for the whole event: RETURN {stuck.token(-2)}"
        return _diagnostic("EC101", "RETURN takes no '*'", token, hint)
    return None


def _reserved(stuck: Stuck) -> Diagnostic | None:
    """A reserved word used as a type, an alias, or (noticed one token late) a variable."""
    word = stuck.token()
    if stuck.type(0) in ("COMMA", "RPAR") and stuck.type(-2) == "NAME" and stuck.type(-3) in ("COMMA", "LPAR", "BANG"):
        word = stuck.token(-1)
    elif "NAME" not in stuck.allowed or stuck.type(0) in OPERATORS:
        return None
    if not is_keyword(word.value):
        return None
    hint = f"write it in backticks: `{word}`"
    return _diagnostic("EC101", f"'{word}' is a reserved word, not a name", word, hint)


def _unknown_call(stuck: Stuck, opened: list[Token]) -> Diagnostic | None:
    """A list of parts after a name that is not an operator: `SEG(A a, B b)`."""
    if not opened or stuck.tokens[0].type != "PATTERN":
        return None
    name = next(before for before, token in pairwise(stuck.tokens) if token is opened[-1])
    if name.type != "NAME" or name.upper() in FUNCTIONS:
        return None
    return _diagnostic("EC108", f"unknown operator '{name}'", name, did_you_mean(name.value, OPERATORS))


def _expected(allowed: frozenset[str]) -> str | None:
    """The allowed tokens, as text for a hint."""
    things = []
    if "SEQ" in allowed:
        things.append("a pattern")
    if allowed & _VALUE_STARTS:
        things.append("a value or a condition" if "NOT" in allowed else "a value")
    elif "QUOTED" in allowed:
        things.append("a name")
    if allowed & _JOINERS:
        things.append("an operator such as = or AND")
    elif "SEQ" not in allowed:
        things += [word for word in ("AND", "OR") if word in allowed]
    symbols = {"DOT": "'.'", "LPAR": "'('", "COMMA": "','", "RPAR": "')'", "AS": "AS", "NOT": "NOT", "NULL": "NULL"}
    skipped = {"LPAR", "NULL", "NOT"} if allowed & _VALUE_STARTS else set()
    things += [shown for kind, shown in symbols.items() if kind in allowed - skipped]
    if "$END" in allowed:
        things.append("the next clause")
    if not things:
        return None
    return "expected " + (" or ".join([", ".join(things[:-1]), things[-1]]) if len(things) > 1 else things[0])
