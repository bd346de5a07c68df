"""From text to the syntax tree."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from itertools import islice

from lark import Token, Tree
from lark.exceptions import UnexpectedToken

from eventcube.errors import MOST_COUNTED, MOST_SHOWN, Diagnostic, QuerySyntaxError, Span
from eventcube.language.build_clauses import ClauseBuilder, Clauses
from eventcube.language.check import MAX_DEPTH, check_columns, check_names, too_deep
from eventcube.language.elsewhere import WORDS, foreign, foreign_query, no_such
from eventcube.language.identifiers import CLAUSES, spoken, write_name
from eventcube.language.mistakes import (
    Stuck,
    closest_clause,
    explain,
    misspelt_after_number,
    misspelt_clause,
    span_of,
    unclosed,
    unknown_clause,
)
from eventcube.language.syntax import Item, Query
from eventcube.language.tokens import ClauseTokens, grammar, text_to_tokens, tokens_to_clauses
from eventcube.language.tree_shapes import keep_shape, known_tree

_PARTS = tuple(field.name for field in fields(Clauses))
# Short clauses without mistakes, by their place and text: related queries have all but their patterns in common.
_known_clauses: dict[tuple[int | None, str], Clauses] = {}
_MOST_KNOWN, _MOST_CHARACTERS = 1024, 64
_FILE_NAME = re.compile(r"[^\s()'\"`]+\.[A-Za-z]\w{0,5}")


def parse(text: str, source: str = "query") -> Query:
    """The query of a text; raises QuerySyntaxError with all mistakes.

    >>> parse("PATTERN SEQ(A a, B b) WITHIN 10 minutes").within
    TimeWindow(microseconds=600000000)
    """
    reading = _Reading(text)
    query = reading.read(source)
    if query is None:
        raise QuerySyntaxError(reading.problems, text, source)
    return query


class _Reading:
    """The parsing of one text; `problems` collects its mistakes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.problems: list[Diagnostic] = []
        self.clauses = Clauses()
        self.clause_spans: dict[str, Span] = {}

    def report(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.problems.append(Diagnostic(code, message, span, hint))

    def read(self, source: str) -> Query | None:
        tokens, unreadable = text_to_tokens(self.text)
        self.problems += unreadable
        if not tokens and not unreadable:
            hint = "begin with PATTERN SEQ(A a, B b) WITHIN 10 minutes"
            self.report("EC100", "the query is empty", Span(0, 0), hint)
        elif not unreadable:
            self._read_clauses(self._without_misspelt_units(tokens))
            # After very many mistakes the rest has not been parsed.
            if len(self.problems) <= MOST_SHOWN:
                self._check_together()
        if self.problems and (other := foreign_query(tokens)):
            self.problems = [other]
        if self.problems or self.clauses.pattern is None:
            return None
        return Query(
            pattern=self.clauses.pattern,
            from_=self.clauses.from_,
            where=self.clauses.where or (),
            partition_by=self.clauses.partition_by or (),
            group_by=self.clauses.group_by or (),
            agg=self.clauses.agg or (),
            per=self.clauses.per,
            having=self.clauses.having or (),
            within=self.clauses.within,
            returns=self.clauses.returns or (),
            limit=self.clauses.limit,
            text=self.text,
            source=source,
        )

    def _without_misspelt_units(self, tokens: list[Token]) -> list[Token]:
        tokens = list(tokens)
        for i, guess in misspelt_after_number(tokens):
            self.problems.append(unknown_clause(tokens[i], guess))
            tokens[i] = tokens[i].update(type=guess)
            if len(self.problems) > MOST_SHOWN:
                break
        return tokens

    def _read_clauses(self, tokens: list[Token]) -> None:
        waiting = tokens_to_clauses(tokens, len(self.text))[::-1]
        while waiting and len(self.problems) <= MOST_SHOWN:
            clause = waiting.pop()
            first = clause.tokens[0]
            if first.type == "SEMICOLON" and (len(clause.tokens) > 1 or waiting):
                after = clause.tokens[1] if len(clause.tokens) > 1 else waiting[-1].tokens[0]
                self.report("EC101", "the query ends at ';'", span_of(after), "one text holds one query")
                return
            if first.type != "SEMICOLON" and first.type not in CLAUSES:
                guess = closest_clause(first.value, 0.75) if first.type == "NAME" else None
                self._no_clause_first(first, guess)
                if guess is None:
                    continue
                clause = ClauseTokens((first.update(type=guess), *clause.tokens[1:]), clause.end)
            rest = self._read_clause(clause)
            if rest is not None:
                waiting.append(rest)

    def _no_clause_first(self, first: Token, guess: str | None) -> None:
        if guess:
            self.problems.append(unknown_clause(first, guess))
            return
        if first.upper() in WORDS:
            self.problems.append(no_such(first))
            return
        self.clause_spans["PATTERN"] = span_of(first)
        hint = "begin with PATTERN SEQ(A a, B b)"
        if _FILE_NAME.fullmatch(self.text.strip()):
            hint = f"give the text of the file, not its name: Path({self.text.strip()!r}).read_text()"
        self.report("EC106", "the query does not begin with PATTERN", span_of(first), hint)

    def _read_clause(self, clause: ClauseTokens) -> ClauseTokens | None:
        """Parse one clause; return the rest of its tokens if a misspelt clause seems to begin in it."""
        word = clause.tokens[0]
        if word.type in self.clause_spans:
            hint = "join conditions with AND" if word.type == "WHERE" else "leave out one of them"
            self.report("EC107", f"{spoken(word.type)} is given twice", span_of(word), hint)
        self.clause_spans.setdefault(word.type, span_of(word))
        place = word.start_pos, self.text[word.start_pos : clause.end]
        if not self.problems and place in _known_clauses:
            self._take(_known_clauses[place])
            return None
        result = _parse(clause.tokens)
        if isinstance(result, Tree):
            built = self._build(result, clause.tokens)
            short = len(place[1]) <= _MOST_CHARACTERS and word.type != "PATTERN"
            if built is not None and not self.problems and short:
                if len(_known_clauses) >= _MOST_KNOWN:
                    _known_clauses.clear()
                _known_clauses[place] = built
            return None
        misspelt = misspelt_clause(result)
        if misspelt is None:
            self.problems.append(foreign(clause.tokens) or explain(result))
            return None
        i, guess = misspelt
        self.problems.append(unknown_clause(clause.tokens[i], guess))
        if open_ := unclosed(clause.tokens[:i]):
            self.problems.append(open_)
        else:
            before = _parse(clause.tokens[:i])
            if isinstance(before, Tree):
                self._build(before, clause.tokens[:i])
            else:
                self.problems.append(explain(before))
        return ClauseTokens((clause.tokens[i].update(type=guess), *clause.tokens[i + 1 :]), clause.end)

    def _build(self, tree: Tree[Token], tokens: tuple[Token, ...]) -> Clauses | None:
        builder = ClauseBuilder(tokens[0].type)
        clause = builder.clause(tree)
        # No few tokens are nested deep.
        deep = too_deep(clause) if clause is not None and 4 * len(tokens) > MAX_DEPTH else None
        if builder.problems and (other := foreign(tokens)):
            self.problems.append(other)
            return None
        self.problems += builder.problems
        if deep:
            self.problems.append(deep)
        if deep or clause is None:
            return None
        self._take(clause)
        return clause

    def _take(self, clause: Clauses) -> None:
        parts = {name: part for name in _PARTS if (part := getattr(clause, name)) is not None}
        self.clauses = replace(self.clauses, **parts)

    def _check_together(self) -> None:
        clauses = self.clauses
        if "PATTERN" not in self.clause_spans and not any(p.code == "EC127" for p in self.problems):
            at = Span(0, 0) if not self.clause_spans else min(self.clause_spans.values(), key=lambda span: span.start)
            self.report("EC106", "PATTERN is missing", at, "say what to look for: PATTERN SEQ(A a, B b)")
        if clauses.pattern is not None:
            self.problems += islice(check_names(clauses.pattern, self.text), MOST_COUNTED)
        if "AGG" in self.clause_spans and "RETURN" in self.clause_spans:
            hint = "choose one: AGG gives a row for each group, RETURN one for each match"
            self.report("EC119", "AGG and RETURN do not go together", self.clause_spans["RETURN"], hint)
        if "GROUPBY" in self.clause_spans and "AGG" not in self.clause_spans:
            hint = "say what to compute for each group: AGG COUNT(*)"
            self.report("EC120", "GROUPBY needs AGG", self.clause_spans["GROUPBY"], hint)
        if clauses.per is not None and "GROUPBY" in self.clause_spans:
            hint = (
                f"choose one: PER {write_name(clauses.per.name)} gives a row for each event, GROUPBY one for each group"
            )
            self.report("EC139", "PER and GROUPBY do not go together", clauses.per.span, hint)
        if "HAVING" in self.clause_spans and "AGG" not in self.clause_spans:
            hint = "it picks groups: AGG COUNT(*) AS n HAVING n > 3; conditions on events go after WHERE"
            self.report("EC137", "HAVING needs AGG", self.clause_spans["HAVING"], hint)
        self.problems += islice(check_columns(clauses.returns or ()), MOST_COUNTED)
        per = () if clauses.per is None else (Item(clauses.per, span=clauses.per.span),)
        self.problems += islice(check_columns((*per, *(clauses.group_by or ()), *(clauses.agg or ()))), MOST_COUNTED)


def _parse(tokens: tuple[Token, ...]) -> Tree[Token] | Stuck:
    known = known_tree(tokens)
    if known is not None:
        return known
    parser = grammar().parse_interactive()
    fed = 0
    try:
        for token in tokens:
            parser.feed_token(token)
            fed += 1
        tree: Tree[Token] = parser.feed_eof(tokens[-1])  # type: ignore[no-untyped-call]
        keep_shape(tree, tokens)
        return tree
    except UnexpectedToken:
        # The parser may have reduced open rules before it rejected the token: ask one that has not seen the token.
        before = grammar().parse_interactive()
        for token in tokens[:fed]:
            before.feed_token(token)
        return Stuck(tokens, fed, frozenset(before.accepts()))  # type: ignore[no-untyped-call]
