"""Bound expressions: values and conditions over the columns of events that slots hold.

A column reference has a slot, a column, the kind of its values and their encoding in arrays. Nothing after binding uses
the names of the query again.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from eventcube.nodes import walk
from eventcube.schema import Kind

# The slot of the columns of groups in HAVING.
GROUP = -1


class Encoding(Enum):
    """How the values of a column are held in an array."""

    NUMBER = "number"  # int64 or float64; times and durations in microseconds, booleans as 0 and 1
    TEXT = "text"  # codes of a dictionary that the expressions evaluated together share
    TIME_TEXT = "time as text"  # text that is read as a time, in microseconds
    RANK = "rank"  # positions in sorted order: numbers that floats would round
    NULLS = "nulls"  # only whether a value is null


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the event in a slot."""

    slot: int
    column: str
    kind: Kind
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant; times and durations are microseconds. `zoned`: a time that was written with a zone."""

    value: int | float | str | bool | Decimal | None
    kind: Kind
    encoding: Encoding = Encoding.NUMBER
    zoned: bool = False


@dataclass(frozen=True, slots=True)
class Negative:
    """`-value`."""

    value: Expression

    @property
    def kind(self) -> Kind:
        return self.value.kind


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right` with op one of + - * / %."""

    op: str
    left: Expression
    right: Expression
    kind: Kind


@dataclass(frozen=True, slots=True)
class Clock:
    """How a function reads a time: the time zone (None: none), and the unit of the time in microseconds."""

    zone: str | None = None
    microseconds: int | Fraction = 1


@dataclass(frozen=True, slots=True)
class Call:
    """A function, in upper case, with its arguments; functions of time have a clock."""

    function: str
    arguments: tuple[Expression, ...]
    kind: Kind
    clock: Clock | None = None


@dataclass(frozen=True, slots=True)
class Translate:
    """Text replaced where `table` lists it, as `c AT LEVEL 1` replaces types."""

    value: Expression
    table: tuple[tuple[str, str], ...]
    level: int = 0

    @property
    def kind(self) -> Kind:
        return Kind.TEXT


@dataclass(frozen=True, slots=True)
class Every:
    """The start of the bucket of so many microseconds that a time lies in, as `engine/functions.py` computes it."""

    value: Expression
    microseconds: int
    clock: Clock

    @property
    def kind(self) -> Kind:
        return Kind.TIME


Expression = ColumnRef | Constant | Negative | Arithmetic | Call | Translate | Every


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right` with op one of = != < <= > >=."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In:
    """`value IN (option, …)`."""

    value: Expression
    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """`value BETWEEN low AND high`, both ends included."""

    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Like:
    """`value LIKE pattern`."""

    value: Expression
    pattern: str
    escape: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """`value IS NULL`."""

    value: Expression


@dataclass(frozen=True, slots=True)
class IsTrue:
    """A boolean standing by itself."""

    value: Expression


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of the conditions."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the conditions."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued NOT: holds where the condition fails, not where it is unknown."""

    condition: Condition


Condition = Comparison | In | Between | Like | IsNull | IsTrue | AllOf | AnyOf | Not


def slots_in(node: Expression | Condition) -> frozenset[int]:
    """The slots that an expression refers to."""
    return frozenset(ref.slot for ref in walk(node) if isinstance(ref, ColumnRef))


# The equivalent operator with its sides exchanged.
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
