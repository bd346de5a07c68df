"""The text and long numbers that a set of expressions compares by shared codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from eventcube.nodes import children, walk
from eventcube.plan.expressions import (
    Between,
    Call,
    ColumnRef,
    Comparison,
    Condition,
    Constant,
    Encoding,
    Expression,
    Translate,
)
from eventcube.schema import Kind

# LOWER, UPPER, or a table of replacements.
TextFunction = str | tuple[tuple[str, str], ...]
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The columns and constants that expressions compare by codes, and the functions of text.

    `ordered`: codes sort like the text, for `<` and BETWEEN. `functions` are nested at most `depth` deep. `numbers` and
    `number_constants` are compared by rank.
    """

    columns: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    ordered: bool = False
    functions: tuple[TextFunction, ...] = ()
    depth: int = 0
    numbers: tuple[str, ...] = ()
    number_constants: tuple[Decimal, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether any text is compared."""
        return bool(self.columns or self.constants or self.functions)


def dictionary_of(expressions: Iterable[Condition | Expression]) -> Dictionary:
    """The dictionary of expressions that are evaluated over the same columns."""
    roots = list(expressions)
    columns: dict[Encoding, dict[str, None]] = {Encoding.TEXT: {}, Encoding.RANK: {}}
    texts: dict[str, None] = {}
    numbers: dict[Decimal, None] = {}
    functions: dict[TextFunction, None] = {}
    ordered = False
    for node in (node for root in roots for node in walk(root)):
        match node:
            case ColumnRef(column=name, encoding=Encoding.TEXT | Encoding.RANK as encoding):
                columns[encoding][name] = None
            case Constant(str() as text):
                texts[text] = None
            case Constant(Decimal() as number):
                numbers[number] = None
            case Between(value) | Comparison("<" | "<=" | ">" | ">=", value):
                ordered |= value.kind is Kind.TEXT
            case Call("LOWER" | "UPPER" as case):
                functions[case] = None
            case Translate(_, table):
                functions[table] = None
    return Dictionary(
        tuple(columns[Encoding.TEXT]),
        tuple(texts),
        ordered,
        tuple(functions),
        max(map(_depth, roots), default=0),
        tuple(columns[Encoding.RANK]),
        tuple(numbers),
    )


def merged(dictionaries: Iterable[Dictionary]) -> Dictionary:
    """One dictionary with all that the others have, for expressions that share columns."""
    all_of = list(dict.fromkeys(dictionaries))
    if len(all_of) == 1:
        return all_of[0]
    return Dictionary(
        _union(d.columns for d in all_of),
        _union(d.constants for d in all_of),
        any(d.ordered for d in all_of),
        _union(d.functions for d in all_of),
        max((d.depth for d in all_of), default=0),
        _union(d.numbers for d in all_of),
        _union(d.number_constants for d in all_of),
    )


def _union(parts: Iterable[tuple[_Item, ...]]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(item for part in parts for item in part))


def _depth(node: object) -> int:
    """How deep functions of text are nested."""
    is_text_function = isinstance(node, Translate) or (isinstance(node, Call) and node.function in ("LOWER", "UPPER"))
    return is_text_function + max(map(_depth, children(node)), default=0)
