"""The graph of a cube: which of its queries refine which."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from eventcube import markup
from eventcube.cube.candidates import candidate_pairs
from eventcube.cube.reduce import groups_of, reduced_edges
from eventcube.cube.refinement import Change, Refinement, refinements_of
from eventcube.cube.shape import shape_of
from eventcube.language.printer import print_line
from eventcube.plan.logical import LogicalQuery

# The most lines shown of a graph, and the most characters of a query.
_LINES = 500
_WIDTH = 100
# Of several embeddings, the one with the least change names the edge.
_LEAST_FIRST = (Change.EQUAL, Change.CONDITION, Change.CONCEPT, Change.PATTERN, Change.BOTH)


@dataclass(frozen=True, slots=True)
class Edge:
    """Two queries of which one refines the other, in one or more ways; `change` is the least of these.

    A field for each, so that `pandas.DataFrame(graph.edges)` has all of them.
    """

    finer: str
    coarser: str
    refinements: tuple[Refinement, ...]
    change: Change = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "change", min((r.change for r in self.refinements), key=_LEAST_FIRST.index))


class CubeGraph:
    """The queries of a cube by their names, and their refinements.

    `pairs` has every two queries of which one refines the other. `edges` are those that do not follow from others, from
    coarser to finer queries; of queries that are equal (`groups` of more than one), the first stands for all.
    """

    def __init__(self, queries: Mapping[str, LogicalQuery]) -> None:
        self.queries = dict(queries)
        self.pairs: dict[tuple[str, str], Edge] = {}
        shapes = [(name, shape) for name, query in queries.items() if (shape := shape_of(query)) is not None]
        for finer, coarser in candidate_pairs([shape for _, shape in shapes]):
            found = refinements_of(shapes[finer][1], shapes[coarser][1])
            if found:
                names = shapes[finer][0], shapes[coarser][0]
                self.pairs[names] = Edge(*names, found)

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The queries, equal ones together, in the order given."""
        return tuple(sorted((tuple(names) for names in self._named_groups), key=lambda group: self._places[group[0]]))

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges that do not follow from others, by the coarser query and then by the finer one."""
        names = self._named_groups
        # A group's first query refines that of another group, but it may be another one whose relation was found.
        edges = [
            self._edge(names[finer], names[coarser]) for coarser, finer in reduced_edges(self._below, self._groups)
        ]
        return tuple(sorted(edges, key=lambda edge: (self._places[edge.coarser], self._places[edge.finer])))

    def _edge(self, finer: Sequence[str], coarser: Sequence[str]) -> Edge:
        return next(self.pairs[one, other] for one in finer for other in coarser if (one, other) in self.pairs)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.queries)}

    @cached_property
    def _below(self) -> list[int]:
        """For each query those that refine it, as a mask."""
        below = [0] * len(self.queries)
        for finer, coarser in self.pairs:
            below[self._places[coarser]] |= 1 << self._places[finer]
        return below

    @cached_property
    def _groups(self) -> list[list[int]]:
        return groups_of(self._below)

    @cached_property
    def _named_groups(self) -> list[list[str]]:
        names = list(self.queries)
        return [[names[place] for place in group] for group in self._groups]

    # Shown.

    def __repr__(self) -> str:
        pairs = f"{len(self.pairs)} pair{'s' * (len(self.pairs) != 1)}"
        return f"<CubeGraph: {len(self.queries)} queries, {pairs} of which one refines the other>"

    def __str__(self) -> str:
        """The graph as an indented tree, from coarser to finer queries."""
        return "\n".join(self._lines()) or "no queries"

    def _repr_html_(self) -> str:
        return markup.page(markup.tree(markup.branches(str(self).splitlines())))

    def _lines(self) -> list[str]:
        lines: list[str] = []
        for line in self._all_lines():
            if len(lines) == _LINES:
                return [*lines, "…"]
            lines.append(line)
        return lines

    def _all_lines(self) -> Iterator[str]:
        """A line for each query and each edge to it; what is below a query follows only once."""
        group_of = {name: group for group in self.groups for name in group}
        finer: dict[str, list[Edge]] = {}
        for edge in self.edges:
            finer.setdefault(group_of[edge.coarser][0], []).append(edge)
        refined = {group_of[edge.finer][0] for edge in self.edges}
        todo = [(group[0], "", 0) for group in reversed(self.groups) if group[0] not in refined]
        seen: set[str] = set()
        while todo:
            name, change, depth = todo.pop()
            above = " (see above)" if name in seen and name in finer else ""
            yield "  " * depth + change + f"{' = '.join(group_of[name])}: {self._text(name)}" + above
            if name not in seen:
                seen.add(name)
                below = [
                    (group_of[edge.finer][0], f"{edge.change.value} → ", depth + 1) for edge in finer.get(name, ())
                ]
                todo += reversed(below)

    def _text(self, name: str) -> str:
        """The query on one line, or its beginning."""
        text = print_line(self.queries[name].query)
        return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart, for documents."""
        lines = ["flowchart TD"]
        places = self._places
        lines += [f'  n{place}["{_quoted(f"{name}: {self._text(name)}")}"]' for name, place in places.items()]
        lines += [f"  n{places[edge.coarser]} -->|{edge.change.value}| n{places[edge.finer]}" for edge in self.edges]
        for first, *others in self.groups:
            lines += [f"  n{places[first]} -.-|equal| n{places[other]}" for other in others]
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """The queries, the groups of equal ones, and the edges with the variables of the embeddings."""
        content = {
            "queries": [
                {"name": name, "text": query.query.text or str(query.query)} for name, query in self.queries.items()
            ],
            "equal": [group for group in self.groups if len(group) > 1],
            "edges": [
                {
                    "coarser": edge.coarser,
                    "finer": edge.finer,
                    "change": edge.change.value,
                    "embeddings": [self._variables(edge, refinement) for refinement in edge.refinements],
                }
                for edge in self.edges
            ],
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def _variables(self, edge: Edge, refinement: Refinement) -> dict[str, str]:
        coarser, finer = self.queries[edge.coarser].slots, self.queries[edge.finer].slots
        places = zip(coarser, refinement.slots, strict=True)
        return {slot.name: finer[place].name for slot, place in places if place is not None}


def _quoted(text: str) -> str:
    """Text in a Mermaid label."""
    text = " ".join(text.splitlines())
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
