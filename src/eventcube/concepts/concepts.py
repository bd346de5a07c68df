"""The concept hierarchy: which event types are kinds of which."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from eventcube import markup
from eventcube.concepts.read import json_to_children, table_to_children, yaml_to_children
from eventcube.errors import InputError, OptionError, did_you_mean

# The most types shown of a hierarchy.
_SHOWN = 500


class Concepts:
    """A forest of type names.

    >>> stocks = Concepts({"Computer": ["INTC", "MSFT"], "Stock": ["Computer"]})
    >>> sorted(stocks.closure("Computer"))
    ['Computer', 'INTC', 'MSFT']
    """

    def __init__(self, children: Mapping[str, Any]) -> None:
        given: Any = children
        if not isinstance(given, Mapping):
            hint = "give a mapping of each concept to the types below it; Concepts.from_yaml and others read files"
            raise OptionError(f"a hierarchy cannot be {reprlib.repr(given)}", code="EC414", hint=hint)
        self.parents: dict[str, str] = {}
        self._names: dict[str, None] = {}
        self._add(children)
        self._refuse_cycles()

    @classmethod
    def from_parents(cls, parents: Mapping[str, str]) -> Concepts:
        """The forest in which each type has the given parent."""
        children: dict[str, list[str]] = {}
        for child, parent in parents.items():
            children.setdefault(parent, []).append(child)
        return cls(children)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Concepts:
        """Read a JSON file, known by its ending, or a YAML file."""
        return (cls.from_json if str(path).lower().endswith(".json") else cls.from_yaml)(Path(path))

    @classmethod
    def from_yaml(cls, path: str | Path) -> Concepts:
        """Read `Concept: [type, …]` or nested mappings from a YAML file."""
        return cls(yaml_to_children(path))

    @classmethod
    def from_json(cls, path: str | Path) -> Concepts:
        """Read `{"Concept": ["type", …]}` or nested objects from a JSON file."""
        return cls(json_to_children(path))

    @classmethod
    def from_table(cls, table: Any, *, child: str = "child", parent: str = "parent") -> Concepts:
        """Read a table (Arrow, pandas, polars) of types and their parents; the rows of roots have no parent.

        >>> print(Concepts.from_table({"child": ["Stock", "INTC"], "parent": [None, "Stock"]}))
        Stock
          INTC
        """
        return cls(table_to_children(table, child, parent))

    def _add(self, children: Mapping[str, Any]) -> None:
        for concept, below in children.items():
            self._names[_name(concept)] = None
            if isinstance(below, str):
                below = (below,)
            if not isinstance(below, Iterable | None):
                raise InputError(
                    f"{concept!r} has {below!r} below it, not types",
                    code="EC311",
                    hint="write a list of types: Computer: [INTC, MSFT]",
                )
            if isinstance(below, Mapping):
                self._add(below)
            for child in below or ():
                if isinstance(child, Mapping):
                    self._add(child)
                for name in child if isinstance(child, Mapping) else (child,):
                    self._place(_name(name), str(concept))

    def _place(self, child: str, parent: str) -> None:
        if self.parents.get(child, parent) != parent:
            raise InputError(
                f"{child!r} is below both {self.parents[child]!r} and {parent!r}",
                code="EC312",
                hint="a type has one parent; split the hierarchy or pick one",
            )
        self.parents[child] = parent
        self._names[child] = None

    def _refuse_cycles(self) -> None:
        rooted: set[str] = set()
        for name in self._names:
            path = {name: None}
            while name not in rooted and name in self.parents:
                name = self.parents[name]
                if name in path:
                    cycle = [*path][[*path].index(name) :]
                    raise InputError(
                        f"{name!r} is below itself: {' → '.join([*cycle, name])}",
                        code="EC313",
                        hint="each type is followed by its parent; take one of them out",
                    )
                path[name] = None
            rooted.update(path)

    @property
    def names(self) -> tuple[str, ...]:
        """All type names, in the order given."""
        return tuple(self._names)

    @cached_property
    def depth_first(self) -> tuple[str, ...]:
        """All type names, each followed by those below it, so that a type and its descendants are a range.

        >>> Concepts({"Stock": ["Computer", "Bank"], "Computer": ["INTC"]}).depth_first
        ('Stock', 'Computer', 'INTC', 'Bank')
        """
        roots = (name for name in self._names if name not in self.parents)
        return tuple(name for root in roots for name in (root, *self.descendants(root)))

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        below: dict[str, list[str]] = {}
        for child, parent in self.parents.items():
            below.setdefault(parent, []).append(child)
        return below

    def __str__(self) -> str:
        """The hierarchy as an indented tree."""
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        roots = [name for name in self._names if name not in self.parents]
        shown = ", ".join(roots[:3]) + (", …" if len(roots) > 3 else "")
        return f"<Concepts: {len(self._names)} types below {shown}>" if roots else "<Concepts: no types>"

    def _repr_html_(self) -> str:
        return markup.page(markup.tree(markup.branches(self._lines())))

    def _lines(self) -> list[str]:
        lines: list[str] = []
        todo = [(name, 0) for name in reversed(self._names) if name not in self.parents]
        while todo and len(lines) < _SHOWN:
            name, depth = todo.pop()
            lines.append("  " * depth + name)
            todo += [(child, depth + 1) for child in reversed(self._children.get(name, []))]
        left = len(self._names) - len(lines)
        return [*lines, f"… and {left:,} more"] if left else lines

    def closure(self, name: str) -> frozenset[str]:
        """The type and all its descendants."""
        found, todo = {name}, [name]
        while todo:
            below = self._children.get(todo.pop(), [])
            found.update(below)
            todo.extend(below)
        return frozenset(found)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def check_known(self, name: str) -> None:
        """Refuse a name that the hierarchy does not have; the message says which are like it."""
        if name not in self._names:
            raise InputError(
                f"the hierarchy has no type {name!r}", code="EC318", hint=did_you_mean(name, self._names, "it")
            )

    def children(self, name: str) -> tuple[str, ...]:
        """The types directly below a type."""
        return tuple(self._children.get(name, ()))

    def ancestors(self, name: str) -> tuple[str, ...]:
        """The types above a type, its parent first.

        >>> Concepts({"Stock": {"Computer": ["INTC"]}}).ancestors("INTC")
        ('Computer', 'Stock')
        """
        return tuple(reversed(self._path(name)[:-1]))

    def descendants(self, name: str) -> tuple[str, ...]:
        """The types below a type, each followed by those below it.

        >>> Concepts({"Stock": ["Computer", "Bank"], "Computer": ["INTC"]}).descendants("Stock")
        ('Computer', 'INTC', 'Bank')
        """
        ordered: list[str] = []
        todo = [*reversed(self._children.get(name, []))]
        while todo:
            ordered.append(todo.pop())
            todo += reversed(self._children.get(ordered[-1], []))
        return tuple(ordered)

    def at_level(self, level: int) -> tuple[tuple[str, str], ...]:
        """For each type below a level of the forest its ancestor there; the roots are level 1.

        >>> Concepts({"Stock": {"Computer": ["INTC"]}}).at_level(2)
        (('INTC', 'Computer'),)
        """
        paths = ((name, self._path(name)) for name in self._names)
        return tuple((name, path[level - 1]) for name, path in paths if len(path) > level)

    def _path(self, name: str) -> list[str]:
        """The type's ancestors, its root first, and itself."""
        path = [name]
        while (parent := self.parents.get(path[-1])) is not None:
            path.append(parent)
        return path[::-1]


def _name(written: Any) -> str:
    """The name of a type, as it was written, or as a number is."""
    name = str(written)
    if written is None or not name:
        raise InputError("a type has no name", code="EC311", hint="write a list of names: Computer: [INTC, MSFT]")
    if name == "ANY":
        hint = f"in queries, ANY is an event of any type; give {name!r} another name"
        raise InputError(f"a type of the hierarchy cannot be called {name!r}", code="EC311", hint=hint)
    return name
