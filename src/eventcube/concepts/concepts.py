"""The concept hierarchy: which event types are kinds of which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from eventcube import markup
from eventcube.errors import InputError

# The most types shown of a hierarchy.
_SHOWN = 500


class Concepts:
    """A forest of type names.

    >>> stocks = Concepts({"Computer": ["INTC", "MSFT"], "Stock": ["Computer"]})
    >>> sorted(stocks.closure("Computer"))
    ['Computer', 'INTC', 'MSFT']
    """

    def __init__(self, children: Mapping[str, Any]) -> None:
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
    def from_yaml(cls, path: str | Path) -> Concepts:
        """Read `Concept: [type, …]` or nested mappings from a YAML file."""
        try:
            content = yaml.safe_load(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", code="EC314") from None
        except UnicodeDecodeError:
            raise InputError(f"{path} is not text in UTF-8", code="EC311", hint="is it really YAML?") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            problem = getattr(error, "problem", None) or "it is not text"
            raise InputError(f"{path} is not YAML{place}: {problem}", code="EC311") from None
        if not isinstance(content, dict):
            raise InputError(
                f"{path} has no hierarchy of types", code="EC311", hint="write, say, Computer: [INTC, MSFT]"
            )
        return cls(content)

    def _add(self, children: Mapping[str, Any]) -> None:
        for concept, below in children.items():
            self._names[str(concept)] = None
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
                    self._place(str(name), str(concept))

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
        for name in self._names:
            seen = {name}
            while (name := self.parents.get(name, "")) != "":
                if name in seen:
                    raise InputError(f"{name!r} is below itself", code="EC313")
                seen.add(name)

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
        ordered: list[str] = []
        todo = [name for name in reversed(self._names) if name not in self.parents]
        while todo:
            ordered.append(todo.pop())
            todo += reversed(self._children.get(ordered[-1], []))
        return tuple(ordered)

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
