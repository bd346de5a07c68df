"""The syntax tree of a query: what was written, before any schema is known.

Two trees are equal if they say the same, wherever it was written: spans do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eventcube import markup
from eventcube.errors import Span
from eventcube.language.identifiers import ANY

NOWHERE = Span(0, 0)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


# Values: numbers, texts, booleans, times.


@dataclass(frozen=True, slots=True)
class Attribute:
    """`a.price`: an attribute of the event bound to a variable."""

    var: str
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant as written: 10, 2.5, 'text', TRUE, NULL."""

    value: int | float | str | bool | None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration as a value: `o.ts - r.ts < 5 minutes`."""

    microseconds: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A timestamp as a value: `TIMESTAMP '2024-01-31 12:00:00'`, in microseconds since 1970.

    Written with a zone they are counted in UTC, without one (`zoned` is false) on the clock of a zone not yet known.
    """

    microseconds: int
    zoned: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right` with op one of + - * / %."""

    op: str
    left: Value
    right: Value
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Minus:
    """`-value`."""

    value: Value
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """`LOWER(a.name)`: a function, in upper case, and what it works on."""

    function: str
    arguments: tuple[Value, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name alone: of the events after PARTITION BY, of the groups after HAVING."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`COUNT(*)`, `SUM(a.x)` …: function in upper case, its argument (None for `*`), and its alias.

    `distinct`: of equal arguments one counts. After HAVING it is a value, without an alias.
    """

    function: str
    argument: Value | None = None
    alias: str | None = None
    distinct: bool = False
    span: Span = _span()


Value = Attribute | Literal | Duration | Timestamp | Arithmetic | Minus | Call | Column | Aggregate


# Quals: conditions.


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right` with op one of = != < <= > >=."""

    op: str
    left: Value
    right: Value
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class In:
    """`value IN (option, …)`."""

    value: Value
    options: tuple[Value, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Between:
    """`value BETWEEN low AND high`, both ends included."""

    value: Value
    low: Value
    high: Value
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Like:
    """`value LIKE 'abc%'`: `%` stands for any characters, `_` for one, and `escape` before either for itself."""

    value: Value
    pattern: str
    escape: str = "\\"
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class IsNull:
    """`value IS NULL`."""

    value: Value
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Truth:
    """A boolean attribute, or TRUE or FALSE, standing by itself: `a.urgent`."""

    value: Value
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AllOf:
    """`qual AND qual …`; a chain `a.id = b.id = c.id` is one of these."""

    quals: tuple[Qual, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """`qual OR qual …`."""

    quals: tuple[Qual, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class NotQual:
    """`NOT qual`; also `NOT IN`, `NOT BETWEEN`, `NOT LIKE` and `IS NOT NULL`."""

    qual: Qual
    span: Span = _span()


Qual = Comparison | In | Between | Like | IsNull | Truth | AllOf | AnyOf | NotQual


# Patterns.


@dataclass(frozen=True, slots=True)
class Component:
    """`Type var` or `Type`: one event; of any type, `ANY var`, if `type` is None."""

    type: str | None
    var: str | None = None
    span: Span = _span()

    @property
    def name(self) -> str:
        """The name of the component in quals and results."""
        return self.var or self.type or ANY


@dataclass(frozen=True, slots=True)
class Not:
    """`!pattern` or `!(pattern, qual, …)`: no match of the pattern there."""

    pattern: Pattern
    quals: tuple[Qual, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Seq:
    """`SEQ(part, …, qual, …)`: the positive parts one after the other."""

    parts: tuple[Part, ...]
    quals: tuple[Qual, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class And:
    """`AND(part, …, qual, …)`: the positive parts in any order."""

    parts: tuple[Part, ...]
    quals: tuple[Qual, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Or:
    """`OR(pattern, …, qual, …)`: any one of the alternatives."""

    parts: tuple[Pattern, ...]
    quals: tuple[Qual, ...] = ()
    span: Span = _span()


Pattern = Component | Seq | And | Or
Part = Pattern | Not


# Clauses.


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """`WITHIN 10 minutes`."""

    microseconds: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class CountWindow:
    """`WITHIN 500 events`."""

    events: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Variable:
    """A whole event in RETURN and PER, or its type in GROUPBY."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Level:
    """`c AT LEVEL 1`: the ancestor of an event's type at that level of the hierarchy, 1 for its root."""

    name: str
    level: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Levels:
    """A group for the type of an event, and one for each type above it, as `Cube.counts` asks for.

    It is no part of the language: printed, `c AT EVERY LEVEL` cannot be read again.
    """

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Every:
    """`c.ts EVERY 1 hour`: the start of the bucket of that length that a time lies in."""

    value: Value
    microseconds: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that RETURN or GROUPBY lists, with the name its column gets (AS), if one was given."""

    value: Variable | Level | Levels | Every | Value
    alias: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query. `per` is the variable of AGG … PER; `text` and `source` (a file's name, say) are kept for messages
    only."""

    pattern: Pattern
    from_: str | None = None
    where: tuple[Qual, ...] = ()
    partition_by: tuple[Column, ...] = ()
    group_by: tuple[Item, ...] = ()
    agg: tuple[Aggregate, ...] = ()
    per: Variable | None = None
    having: tuple[Qual, ...] = ()
    within: TimeWindow | CountWindow | None = None
    returns: tuple[Item, ...] = ()
    limit: int | None = None
    text: str = field(default="", compare=False, repr=False)
    source: str = field(default="query", compare=False, repr=False)

    def __str__(self) -> str:
        # The printer knows the nodes.
        from eventcube.language.printer import print_query

        return print_query(self)

    def __repr__(self) -> str:
        """The call that gives an equal query, on one line."""
        return f"parse({' '.join(line.strip() for line in str(self).splitlines())!r})"

    def _repr_html_(self) -> str:
        return markup.page(markup.query(str(self)))
