"""Scopes of variables: which ones a condition may use, and which negated part it belongs to; needs no columns.

A condition beside a negated part that uses its variables belongs to it: `SEQ(A a, !B b, C c, b.x = a.x)` means
`SEQ(A a, !(B b, b.x = a.x), C c)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from eventcube.errors import MOST_SHOWN, Diagnostic, Span, did_you_mean
from eventcube.language.identifiers import write_name
from eventcube.language.printer import print_pattern
from eventcube.language.syntax import (
    Aggregate,
    And,
    Attribute,
    Component,
    Item,
    Level,
    Levels,
    Not,
    Or,
    Part,
    Pattern,
    Qual,
    Query,
    Seq,
    Value,
    Variable,
)
from eventcube.language.tree import attributes, conjuncts
from eventcube.nodes import walk

# The negated parts around a place, outermost first, each by the name of its first component.
Path = tuple[str, ...]


def resolve(query: Query) -> tuple[Query, list[Diagnostic]]:
    """The query with every condition in the part that it belongs to, and the mistakes in its variables."""
    scopes = _Scopes(query.pattern)
    pattern, where = scopes.place_conditions(query.pattern, query.where, ())
    placed = replace(query, pattern=pattern, where=where)
    scopes.check(placed)
    return placed, scopes.problems


class _Scopes:
    """The variables of one pattern; `problems` collects mistakes."""

    def __init__(self, pattern: Pattern) -> None:
        self.problems: list[Diagnostic] = []
        self.paths: dict[str, Path] = {}
        self.homes: dict[str, tuple[Not, Seq | And]] = {}
        self.variables_by_type: dict[str, str] = {}
        self._declare(pattern, (), None)

    def _declare(self, pattern: Pattern, path: Path, home: tuple[Not, Seq | And] | None) -> None:
        if isinstance(pattern, Component):
            name = pattern.name
            if name in self.paths:
                self._report(
                    "EC204", f"two components are named {name!r}", pattern.span, "give one of them another variable"
                )
            self.paths[name] = path
            if pattern.type is not None:
                self.variables_by_type.setdefault(pattern.type, name)
            if home is not None:
                self.homes[name] = home
            return
        for part in pattern.parts:
            if isinstance(part, Not):
                assert not isinstance(pattern, Or)
                self._declare(part.pattern, (*path, _first_name(part)), (part, pattern))
            else:
                self._declare(part, path, home)

    # Moving conditions into their negated parts.

    def place_conditions(
        self, pattern: Pattern, given: tuple[Qual, ...], path: Path
    ) -> tuple[Pattern, tuple[Qual, ...]]:
        """The pattern with every condition in the negated part that it belongs to, and those of `given` that stay."""
        if isinstance(pattern, Component):
            return pattern, given
        if isinstance(pattern, Or):
            return replace(pattern, parts=tuple(self.place_conditions(p, (), path)[0] for p in pattern.parts)), given
        moved: dict[str, list[Qual]] = {_first_name(p): [] for p in pattern.parts if isinstance(p, Not)}
        quals = tuple(self._remaining(pattern.quals, path, moved))
        given = tuple(self._remaining(given, path, moved))
        parts = tuple(self._place_in_part(p, path, moved) for p in pattern.parts)
        return replace(pattern, parts=parts, quals=quals), given

    def _place_in_part(self, part: Part, path: Path, moved: dict[str, list[Qual]]) -> Part:
        if not isinstance(part, Not):
            return self.place_conditions(part, (), path)[0]
        first = _first_name(part)
        pattern, quals = self.place_conditions(part.pattern, (*part.quals, *moved[first]), (*path, first))
        return replace(part, pattern=pattern, quals=quals)

    def _remaining(self, quals: tuple[Qual, ...], path: Path, moved: dict[str, list[Qual]]) -> Iterator[Qual]:
        """The conditions that stay here; adds the others to the negated part in `moved` that they belong to."""
        for qual in quals:
            owners = [(each, self._owner(each, path, moved)) for each in conjuncts([qual])]
            if all(owner is None for _, owner in owners):
                yield qual
                continue
            for each, owner in owners:
                if owner is None:
                    yield each
                else:
                    moved[owner].append(each)

    def _owner(self, qual: Qual, path: Path, negated: Collection[str]) -> str | None:
        """The part of `negated` that holds all variables of the condition that are not visible here, if one does."""
        hidden = [p for p in self._paths(qual) if p != path[: len(p)]]
        homes = {p[len(path)] if p[: len(path)] == path else None for p in hidden}
        home = homes.pop() if len(homes) == 1 else None
        return home if home in negated else None

    def _paths(self, qual: Qual) -> list[Path]:
        return [self.paths[a.var] for a in attributes(qual) if a.var in self.paths]

    # Mistakes.

    def check(self, query: Query) -> None:
        """Report every variable used out of its scope; all conditions must have been moved."""
        self._check_pattern(query.pattern, ())
        self._check_quals(query.where, ())
        per = () if query.per is None else (Item(query.per),)
        for item in (*query.returns, *query.group_by, *per):
            self._check_result(item)
        for aggregate in (*query.agg, *(node for qual in query.having for node in walk(qual))):
            if isinstance(aggregate, Aggregate) and aggregate.argument is not None:
                self._check_result(aggregate.argument)

    def _check_pattern(self, pattern: Pattern, path: Path) -> None:
        if isinstance(pattern, Component):
            return
        self._check_quals(pattern.quals, path)
        for part in pattern.parts:
            if isinstance(part, Not):
                inside = (*path, _first_name(part))
                self._check_quals(part.quals, inside)
                self._check_pattern(part.pattern, inside)
            else:
                self._check_pattern(part, path)

    def _check_quals(self, quals: tuple[Qual, ...], path: Path) -> None:
        for qual in conjuncts(quals):
            used = {a.var: a for a in reversed(list(attributes(qual)))}
            known = [name for name in reversed(used) if name in self.paths]
            deepest = max((self.paths[name] for name in known), key=len, default=())
            aside = [name for name in known if self.paths[name] != deepest[: len(self.paths[name])]]
            if aside:
                other = next(name for name in known if self.paths[name] == deepest)
                self._report_two_parts(qual, sorted([aside[0], other], key=known.index))
            for name, attribute in used.items():
                if name not in self.paths:
                    self._report_unknown(name, attribute.span, path)
                elif not aside and self.paths[name] != path[: len(self.paths[name])]:
                    self._report_hidden(name, attribute.span, self._move_hint(name))

    def _check_result(self, node: Item | Value) -> None:
        value = node.value if isinstance(node, Item) else node
        named: list[Variable | Level | Levels | Attribute] = (
            [value] if isinstance(value, Variable | Level | Levels) else list(attributes(value))
        )
        for each in named:
            name = each.var if isinstance(each, Attribute) else each.name
            if name not in self.paths:
                self._report_unknown(name, each.span, (), alone=isinstance(each, Variable))
            elif self.paths[name]:
                hint = "no match has a negated event; use a variable of a part without '!'"
                self._report_hidden(name, each.span, hint)

    def _report_unknown(self, name: str, span: Span, path: Path, *, alone: bool = False) -> None:
        """Report an unknown variable; `alone`: no attribute follows it, so it may be an attribute."""
        hint = None
        if name in self.variables_by_type:
            hint = f"the variable of {name} is {self.variables_by_type[name]!r}"
        elif len(self.problems) < MOST_SHOWN:
            visible = (known for known, own in self.paths.items() if own == path[: len(own)])
            hint = did_you_mean(name, visible, "the query")
            if alone and hint is not None and not hint.startswith("did you mean"):
                first = next(known for known, own in self.paths.items() if not own)
                hint = f"{hint}; an attribute needs its variable: {write_name(first)}.{write_name(name)}"
        self._report("EC201", f"unknown variable {name!r}", span, hint)

    def _report_hidden(self, name: str, span: Span, hint: str) -> None:
        self._report("EC205", f"variable {name!r} is in a negated part and cannot be used here", span, hint)

    def _move_hint(self, name: str) -> str:
        part, around = self.homes[name]
        pattern = part.pattern
        inside = f"!({print_pattern(pattern)}, …)" if isinstance(pattern, Component) else f"!{_word(pattern)}(…)"
        return f"write the condition in {inside}, or in the list of the {_word(around)} around it"

    def _report_two_parts(self, qual: Qual, names: list[str]) -> None:
        self._report(
            "EC218",
            f"this condition uses variables of two negated parts: {' and '.join(repr(n) for n in names)}",
            qual.span,
            "each negated part is tested separately; to exclude both together, write !AND(B b, C c, b.x = c.x)",
        )

    def _report(self, code: str, message: str, span: Span, hint: str | None) -> None:
        self.problems.append(Diagnostic(code, message, span, hint))


def _first_name(part: Part) -> str:
    while not isinstance(part, Component):
        part = part.pattern if isinstance(part, Not) else part.parts[0]
    return part.name


def _word(pattern: Pattern) -> str:
    return type(pattern).__name__.upper()
