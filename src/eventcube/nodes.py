"""Traversal and transformation of trees of frozen dataclasses: syntax trees, expressions and plans.

A node is a frozen dataclass; its children are the nodes in its fields, alone or in tuples (of
tuples). A span is no node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from eventcube.errors import Span

_Node = TypeVar("_Node")
_field_names: dict[type, tuple[str, ...]] = {}


def children(node: object) -> Iterator[object]:
    """The nodes directly below a node."""
    for name in _fields_of(type(node)):
        yield from _nodes_in(getattr(node, name))


def _nodes_in(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        for part in value:
            yield from _nodes_in(part)
    elif _fields_of(type(value)):
        yield value


def with_children(node: _Node, below: Iterable[object]) -> _Node:
    """The node with new nodes directly below it, in the order of `children`."""
    new_nodes = iter(below)
    values = {name: getattr(node, name) for name in _fields_of(type(node))}
    changed = {name: new for name, value in values.items() if (new := _with_nodes(value, new_nodes)) is not value}
    return cast("_Node", replace(cast("Any", node), **changed)) if changed else node


def _with_nodes(value: object, new_nodes: Iterator[object]) -> object:
    """The value with its nodes replaced by the next new ones; the same object if nothing changes."""
    if isinstance(value, tuple):
        new = tuple(_with_nodes(part, new_nodes) for part in value)
        return value if all(one is other for one, other in zip(new, value, strict=True)) else new
    return next(new_nodes) if _fields_of(type(value)) else value


def walk(node: object) -> Iterator[object]:
    """The node and all nodes below it, in the order of their fields."""
    yield node
    for child in children(node):
        yield from walk(child)


def transform(node: _Node, change: Callable[[object], object]) -> _Node:
    """The tree with `change` applied to every node, bottom-up."""
    return cast("_Node", change(with_children(node, [transform(child, change) for child in children(node)])))


def _fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a node's class; empty for other classes."""
    if kind not in _field_names:
        is_node = is_dataclass(kind) and kind is not Span
        _field_names[kind] = tuple(field.name for field in fields(kind)) if is_node else ()
    return _field_names[kind]
