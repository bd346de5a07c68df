"""Bound expressions: values and conditions over the columns of events that slots hold.

A column reference knows its slot, its column, the kind of its values and how they are encoded in arrays. Nothing that
comes after binding looks at names of the query again.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from eventcube.nodes import walk
from eventcube.schema import Kind

# The slot of a column of groups, which HAVING speaks of.
GROUP = -1


class Encoding(Enum):
    """How the values of a column are held in an array."""

    NUMBER = "number"  # int64 or float64; times and durations in microseconds, booleans as 0 and 1
    TEXT = "text"  # codes of a dictionary that the expressions evaluated together share
    TIME_TEXT = "time as text"  # text that is read as a time, in microseconds
    RANK = "rank"  # places in sorted order: numbers that floats would round
    NULLS = "nulls"  # only whether a value is null


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The value that a column has in the event of a slot."""

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
    """How a function reads a time: in which zone (None: as it is), and how many microseconds its unit has."""

    zone: str | None = None
    microseconds: int | Fraction = 1


@dataclass(frozen=True, slots=True)
class Call:
    """A function, in upper case, and what it works on; functions of time have a clock."""

    function: str
    arguments: tuple[Expression, ...]
    kind: Kind
    clock: Clock | None = None


@dataclass(frozen=True, slots=True)
class Translate:
    """Text exchanged for other text where `table` has it, as `c AT LEVEL 1` exchanges types."""

    value: Expression
    table: tuple[tuple[str, str], ...]
    level: int = 0

    @property
    def kind(self) -> Kind:
        return Kind.TEXT


Expression = ColumnRef | Constant | Negative | Arithmetic | Call | Translate


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
    """One of the conditions at least."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The condition fails; a condition that is unknown does not."""

    condition: Condition


Condition = Comparison | In | Between | Like | IsNull | IsTrue | AllOf | AnyOf | Not


def slots_in(node: Expression | Condition) -> frozenset[int]:
    """The slots that an expression speaks of."""
    return frozenset(found.slot for found in walk(node) if isinstance(found, ColumnRef))


# The operator that says the same with its sides exchanged.
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
