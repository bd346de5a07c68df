"""What text and what long numbers a set of expressions compares: they share one set of codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

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

# LOWER, UPPER, or a table of texts and what stands for them.
TextFunction = str | tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The columns and constants that expressions compare by codes, and what functions make of text.

    `ordered`: `<` is asked of text. `functions` make other text of it, one of another at most `depth` times.
    `numbers` and `number_constants` are compared by their places in sorted order.
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
        """Whether any of it is text."""
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


def _depth(node: object) -> int:
    """How many functions make text of one another."""
    changes = isinstance(node, Translate) or (isinstance(node, Call) and node.function in ("LOWER", "UPPER"))
    return changes + max(map(_depth, children(node)), default=0)
