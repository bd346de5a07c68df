"""The shapes of parse trees: clauses with the same kinds of tokens have trees of one shape, and are parsed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token, Tree
from lark.tree import Meta

# Shapes that are kept, and the tokens of a clause whose shape is.
_MOST_SHAPES, _MOST_TOKENS = 512, 64

_known: dict[tuple[str, ...], _Shape] = {}


@dataclass(frozen=True, slots=True)
class _Shape:
    """A node with the numbers of its first and last token; tokens below it are numbers, too."""

    data: str
    first: int
    last: int
    below: tuple[_Shape | int | None, ...]


def known_tree(tokens: Sequence[Token]) -> Tree[Token] | None:
    """The parse tree of tokens, if one of the same kinds of tokens was kept."""
    shape = _known.get(tuple(token.type for token in tokens))
    return None if shape is None else _tree(shape, tokens)


def keep_shape(tree: Tree[Token], tokens: Sequence[Token]) -> None:
    """Keep the shape of the parse tree of tokens."""
    if len(tokens) <= _MOST_TOKENS and len(_known) < _MOST_SHAPES:
        _known[tuple(token.type for token in tokens)] = _shape(tree, {t.start_pos: i for i, t in enumerate(tokens)})


def _shape(tree: Tree[Token], numbers: dict[int | None, int]) -> _Shape:
    # Where an optional part is left out, there is None.
    children: list[Tree[Token] | Token | None] = [*tree.children]
    below = [
        _shape(child, numbers) if isinstance(child, Tree) else None if child is None else numbers[child.start_pos]
        for child in children
    ]
    end = tree.meta.end_pos
    last = max(number for start, number in numbers.items() if start is not None and start < end)
    return _Shape(tree.data, numbers[tree.meta.start_pos], last, tuple(below))


def _tree(shape: _Shape, tokens: Sequence[Token]) -> Tree[Token]:
    children: list[Any] = [
        tokens[part] if isinstance(part, int) else None if part is None else _tree(part, tokens) for part in shape.below
    ]
    meta: Any = Meta()  # type: ignore[no-untyped-call]
    meta.start_pos, meta.end_pos, meta.empty = tokens[shape.first].start_pos, tokens[shape.last].end_pos, False
    return Tree(shape.data, children, meta)
