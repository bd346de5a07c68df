"""YAML as nodes with their places, so that a name given twice is noticed and names stay as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

_NULL = "tag:yaml.org,2002:null"


def text_to_node(text: str) -> yaml.Node | None:
    """The document in a text, None if there is none; raises YAMLError, or RecursionError if it nests too deeply."""
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    return node


def repeated_names(root: yaml.Node) -> Iterator[tuple[yaml.ScalarNode, yaml.ScalarNode]]:
    """The names that a mapping has twice: where each stands first, and where again.

    >>> [name.value for name, _ in repeated_names(text_to_node("{A: [B], C: {D: E, D: F}}"))]
    ['D']
    """
    todo, seen = [root], {id(root)}
    while todo:
        node = todo.pop()
        below: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            first: dict[str, yaml.ScalarNode] = {}
            for key, value in node.value:
                below.append(value)
                if isinstance(key, yaml.ScalarNode) and first.setdefault(key.value, key) is not key:
                    yield first[key.value], key
        elif isinstance(node, yaml.SequenceNode):
            below += node.value
        # An alias stands for a node that was there before.
        todo += [inner for inner in reversed(below) if id(inner) not in seen]
        seen.update(map(id, below))


def node_to_text(node: yaml.Node) -> Any:
    """Mappings, lists and text, or None for an empty value: `NO` and `007` are names, not a boolean and a number.

    >>> node_to_text(text_to_node("{NO: [007, 2026-01-01], empty: }"))
    {'NO': ['007', '2026-01-01'], 'empty': None}
    """
    if isinstance(node, yaml.MappingNode):
        # Puts the content of `<<: *other` in its place.
        yaml.SafeLoader("").flatten_mapping(node)
        return {_name(key): node_to_text(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [node_to_text(item) for item in node.value]
    return None if node.tag == _NULL else node.value


def _name(key: yaml.Node) -> str:
    if isinstance(key, yaml.ScalarNode):
        return str(key.value)
    raise yaml.MarkedYAMLError(problem="a name cannot be a list or a mapping", problem_mark=key.start_mark)
