"""From the text of a query to its tokens, cut into clauses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters

from eventcube.errors import Diagnostic, Span
from eventcube.language.names import CLAUSES, is_keyword

_UNCLOSED = {"'": "text", '"': "text", "`": "name"}
_INSTEAD = {
    "&": "join conditions with AND",
    "|": "join conditions with OR",
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


@dataclass(frozen=True, slots=True)
class ClauseTokens:
    """The tokens of one clause, its word first; `end` is where the next one begins."""

    tokens: tuple[Token, ...]
    end: int


@cache
def grammar() -> Lark:
    """The grammar of one clause, compiled."""
    text = resources.files("eventcube.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", start="clause", propagate_positions=True)


def text_to_tokens(text: str) -> tuple[list[Token], list[Diagnostic]]:
    """The tokens of the text, and what in it is none; what is unreadable is passed over."""
    problems: list[Diagnostic] = []
    rest = text
    while True:
        try:
            return [_plain_after_dot(*pair) for pair in _with_previous(list(grammar().lex(rest)))], problems
        except UnexpectedCharacters as e:
            at: int = e.pos_in_stream  # type: ignore[assignment]
            problems.append(_unreadable(text, at))
            # Quotes that do not close swallow all that follows, so nothing after them can be judged.
            stop = len(rest) if rest[at] in _UNCLOSED else _end_of_run(text, at)
            rest = rest[:at] + " " * (stop - at) + rest[stop:]


def tokens_to_clauses(tokens: list[Token], end: int) -> list[ClauseTokens]:
    """The tokens cut before each clause's word and before `;`; the first piece may begin with any token."""
    starts = []
    depth = 0
    for i, (previous, token) in enumerate(_with_previous(tokens)):
        depth += {"LPAR": 1, "RPAR": -1}.get(token.type, 0)
        following = tokens[i + 1].type if i + 1 < len(tokens) else ""
        listed = depth > 0 and previous is not None and previous.type in ("LPAR", "COMMA", "BANG")
        # In a list, `limit l` is a name that lacks its backticks, while `LIMIT 5` shows that the list was not closed.
        begins = token.type in CLAUSES and (not listed or following in ("INT", "FLOAT"))
        if begins or i == 0 or token.type == "SEMICOLON":
            starts.append(i)
    stops = [*starts[1:], len(tokens)]
    return [
        ClauseTokens(tuple(tokens[i:j]), (tokens[j].start_pos or 0) if j < len(tokens) else end)
        for i, j in zip(starts, stops, strict=True)
    ]


def _with_previous(tokens: list[Token]) -> list[tuple[Token | None, Token]]:
    return list(zip([None, *tokens], tokens, strict=False))


def _plain_after_dot(previous: Token | None, token: Token) -> Token:
    """After a dot every word is an attribute: `a.limit`, `a.in`."""
    if previous is not None and previous.type == "DOT" and is_keyword(token.value):
        return token.update(type="NAME")
    return token


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
        return Diagnostic("EC103", message, span, f"close it with {char}; inside it, {char} is written {char * 2}")
    stop = _end_of_run(text, at)
    shown = text[at:stop] if char.isprintable() else f"U+{ord(char):04X}"
    return Diagnostic("EC102", f"'{shown}' has no meaning here", Span(at, stop), _INSTEAD.get(char))
