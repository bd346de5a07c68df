"""From the text of a query to its tokens, cut into clauses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate

from lark import Lark, Token
from lark.lexer import BasicLexer, LexerThread

from eventcube.errors import MOST_COUNTED, Diagnostic, Span
from eventcube.language.identifiers import CLAUSES, is_keyword

# The most words and signs of a query: parsing takes about 20 microseconds for each.
MAX_TOKENS = 100_000

_UNCLOSED = {"'": "text", '"': "text", "`": "name"}
_HINTS = {
    "&": "join conditions with AND; AND(A a, B b) is a pattern of both",
    "||": "join conditions with OR; there is no concatenation, return each text",
    "|": "join conditions with OR; OR(A a, B b) is a pattern of either",
    "~": "there are no regular expressions; compare text with =, IN or LIKE 'abc%'",
    "?": "for an optional event, write both cases: OR(SEQ(A a, B b), B c)",
    ":": "write the type, then the variable: A a",
    "→": "one after the other is SEQ(A a, B b)",
    "¬": "write ! before what must not happen",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "−": "write the sign as -",
    "–": "write the sign as -",
    "{": "write parentheses: ( )",
    "[": "write parentheses: ( )",
    "#": "a comment begins with --",
    **dict.fromkeys("“”„", 'write straight quotes: "text"'),
    **dict.fromkeys("‘’´", "write straight quotes: 'text'"),
}
_REPETITION = re.compile(r"\{\s*\d*\s*,?\s*\d*\s*\}")
_INDEX = re.compile(r"\[[^][\n]{0,40}\]")


# Tokens that may be names, and those that may follow EVERY.
_NAMES = ("NAME", "QUOTED", "PER", "EVERY", "LIKE", "DISTINCT")
_AFTER_EVERY = ("NAME", "INT", "FLOAT", "STRING", "LPAR", "MINUS")


@dataclass(frozen=True, slots=True)
class ClauseTokens:
    """The tokens of one clause, its keyword first; `end` is the offset of the next clause."""

    tokens: tuple[Token, ...]
    end: int


@cache
def grammar() -> Lark:
    """The grammar of one clause, compiled."""
    text = resources.files("eventcube.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", start="clause", propagate_positions=True)


@cache
def _lexer() -> BasicLexer:
    """The lexer of the grammar; `Lark.lex` would build it again for every text."""
    return BasicLexer(grammar().lexer_conf)


def text_to_tokens(text: str) -> tuple[list[Token], list[Diagnostic]]:
    """The tokens of the text, and a mistake for each unreadable piece, which is skipped."""
    tokens: list[Token] = []
    problems: list[Diagnostic] = []
    readable_from = 0
    for token in LexerThread.from_text(_lexer(), text).lex(None):  # type: ignore[no-untyped-call]
        at = token.start_pos or 0
        if at < readable_from:
            continue
        if len(tokens) == MAX_TOKENS:
            hint = "put a long list of constants into a column of the events"
            problems.append(Diagnostic("EC129", f"more than {MAX_TOKENS} words and signs", Span(at, at + 1), hint))
            break
        if token.type != "UNREADABLE":
            tokens.append(token)
            continue
        problem = _unreadable(text, at)
        problems.append(problem)
        # After an unclosed quote the rest of the text is unknown.
        if problem.code == "EC103" or len(problems) == MOST_COUNTED:
            break
        readable_from = problem.span.end if problem.span else at + 1
    return _with_names(tokens), problems


def tokens_to_clauses(tokens: list[Token], end: int) -> list[ClauseTokens]:
    """The tokens split before each clause's keyword and before `;`; the first clause may begin with any token."""
    starts = []
    inside = _inside_parentheses(tokens)
    depth = 0
    for i, (previous, token) in enumerate(_with_previous(tokens)):
        depth += {"LPAR": 1, "RPAR": -1}.get(token.type, 0)
        following = tokens[i + 1].type if i + 1 < len(tokens) else ""
        listed = depth > 0 and previous is not None and previous.type in ("LPAR", "COMMA", "BANG")
        # In a list, `limit l` is a name without its backticks, while `LIMIT 5` shows that the list is not closed.
        named = listed and following not in ("INT", "FLOAT")
        # In `a.x AS limit` it is a name, too, if no value follows.
        named = named or (previous is not None and previous.type == "AS" and following in ("", "COMMA", *CLAUSES))
        begins = token.type in CLAUSES and not inside[i] and not named
        if begins or i == 0 or token.type == "SEMICOLON":
            starts.append(i)
    stops = [*starts[1:], len(tokens)]
    return [
        ClauseTokens(tuple(tokens[i:j]), (tokens[j].start_pos or 0) if j < len(tokens) else end)
        for i, j in zip(starts, stops, strict=True)
    ]


def _inside_parentheses(tokens: list[Token]) -> list[bool]:
    """For each token whether it is between a '(' and its ')'; an unclosed '(' does not count."""
    starts: list[int] = []
    steps = [0] * (len(tokens) + 1)
    for i, token in enumerate(tokens):
        if token.type == "LPAR":
            starts.append(i)
        elif token.type == "RPAR" and starts:
            steps[starts.pop()] += 1
            steps[i] -= 1
    return [depth > 0 for depth in accumulate(steps[:-1])]


def _with_previous(tokens: list[Token]) -> list[tuple[Token | None, Token]]:
    return list(zip([None, *tokens], tokens, strict=False))


def _with_names(tokens: list[Token]) -> list[Token]:
    """The tokens, with keywords turned into names where they are used as names."""
    kinds = ["", "", *(token.type for token in tokens), ""]
    return [
        token.update(type="NAME") if _is_name(token, kinds[i], kinds[i + 1], kinds[i + 3]) else token
        for i, token in enumerate(tokens)
    ]


def _is_name(token: Token, earlier: str, previous: str, following: str) -> bool:
    """Whether a keyword is a name between tokens of these types."""
    match token.type:
        case "LIKE":
            # After a value, or before a text, it compares; `Like l` is an event.
            after_value = previous in ("RPAR", "STRING") or earlier == "DOT"
            return previous == "DOT" or not (after_value or following == "STRING")
        case "DISTINCT":
            return (earlier, previous) != ("NAME", "LPAR") or following in ("DOT", "COMMA", "RPAR")
        case "EVERY":
            # Between a value and a duration it cuts times into buckets; `Every e` is an event.
            after_value = earlier == "DOT" or previous in ("NAME", "QUOTED", "RPAR", "STRING", "INT")
            return previous == "DOT" or not (after_value and following in _AFTER_EVERY)
        case "PER":
            # Between the aggregates and a variable; `Per p` is an event.
            after_aggregate = earlier == "AS" or previous in ("NAME", "QUOTED", "RPAR")
            return previous in ("DOT", "AS") or not (after_aggregate and following in _NAMES)
        case _:
            # After a dot every word is an attribute: `a.limit`, `a.in`.
            return previous == "DOT" and is_keyword(token.value)


def _end_of_run(text: str, at: int) -> int:
    stop = at + 1
    while stop < len(text) and text[stop] == text[at]:
        stop += 1
    return stop


def _unreadable(text: str, at: int) -> Diagnostic:
    char = text[at]
    if char in _UNCLOSED:
        end_of_line = text.find("\n", at)
        span = Span(at, len(text) if end_of_line < 0 else end_of_line)
        message = f"this {_UNCLOSED[char]} is not closed"
        hint = f"add the closing {char}; a {char} inside it is written twice: {char * 2}"
        return Diagnostic("EC103", message, span, hint)
    if found := _REPETITION.match(text, at):
        return repetition(Span(at, found.end()), found[0])
    if found := _INDEX.match(text, at):
        hint = "give every event its own variable: a1.x and a2.x with SEQ(A a1, A a2)"
        hint = "write a list of values in parentheses: IN (1, 2)" if "," in found[0] else hint
        return Diagnostic("EC102", f"'{found[0]}' has no meaning here", Span(at, found.end()), hint)
    stop = _end_of_run(text, at)
    shown = text[at:stop] if char.isprintable() else f"U+{ord(char):04X}"
    instead = _HINTS.get(shown) or _HINTS.get(char)
    return Diagnostic("EC102", f"'{shown}' has no meaning here", Span(at, stop), instead)


def repetition(span: Span, written: str) -> Diagnostic:
    """The mistake of a repetition, as in other languages."""
    hint = "write out every event: SEQ(A a1, A a2, A a3); other events may occur in between"
    return Diagnostic("EC124", f"there is no repetition such as '{written}'", span, hint)
