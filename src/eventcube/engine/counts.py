"""The counters of a `match` for its caller, with findings about the rows of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields

from eventcube import markup
from eventcube.engine.counters import Counters
from eventcube.errors import Diagnostic, warn


@dataclass(frozen=True, slots=True)
class RowFindings:
    """Findings about the rows of an input: missing types, why rows were skipped, and warnings."""

    missing_types: frozenset[str] = frozenset()
    set_aside_reasons: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()


class Counts(Mapping[str, int]):
    """The counters of a `match`, to be read when its result has been used; hand it over as `counters=`.

    With `rows=False` Spark does not count the rows of the input, nor which are skipped or have which type, and need
    not read rows that no query uses. Warnings about the rows that the run did not give itself are given when a counter
    is read.

    >>> counts = Counts()
    >>> counts["matches"]
    0
    """

    def __init__(self, *, rows: bool = True) -> None:
        self.counts_rows = rows
        self._counters: list[Callable[[], Counters]] = []
        self._findings: list[Callable[[], RowFindings]] = []
        self._unwarned: list[Callable[[], RowFindings]] = []
        self._warned: set[Diagnostic] = set()

    def follow(self, source: Callable[[], Counters]) -> None:
        """Include the counters of a run, as of the time of reading."""
        self._counters.append(source)

    def follow_rows(self, source: Callable[[], RowFindings], *, told: bool) -> None:
        """Include the findings of a run, as of the time of reading; `told`: the run gives the warnings itself."""
        self._findings.append(source)
        if not told:
            self._unwarned.append(source)

    @property
    def missing_types(self) -> tuple[str, ...]:
        """The types in the queries that no event has."""
        return tuple(sorted(frozenset().union(*(source().missing_types for source in self._findings))))

    @property
    def set_aside_reasons(self) -> dict[str, int]:
        """Why rows were skipped: for each reason, how many."""
        reasons: dict[str, int] = {}
        for source in self._findings:
            for reason, rows in source().set_aside_reasons.items():
                reasons[reason] = reasons.get(reason, 0) + rows
        return reasons

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about the rows: nearly all are skipped, or their times lie in an unlikely year."""
        return tuple(dict.fromkeys(problem for source in self._findings for problem in source().warnings))

    def _total(self) -> dict[str, int]:
        total = Counters()
        for source in self._counters:
            total.add_later(source())
        return total.as_dict()

    def _warn(self) -> None:
        """Give, once, the warnings that no run gave."""
        for problem in (problem for source in self._unwarned for problem in source().warnings):
            if problem not in self._warned:
                self._warned.add(problem)
                warn(problem)

    def __getitem__(self, name: str) -> int:
        self._warn()
        return self._total()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._total())

    def __len__(self) -> int:
        return len(fields(Counters))

    def __repr__(self) -> str:
        skipped = [f"{reason}: {rows:,}" for reason, rows in self.set_aside_reasons.items()]
        details = [
            *([f"skipped: {', '.join(skipped)}"] if skipped else []),
            *([f"missing types: {', '.join(self.missing_types)}"] if self.missing_types else []),
            *(f"{problem.code}: {problem.message} ({problem.hint})" for problem in self.warnings),
        ]
        return f"Counts({'; '.join([str(self._total()), *details])})"

    def __str__(self) -> str:
        """The counters and findings, one below the other."""
        lines: list[str] = []
        for title, rows in self._sections():
            lines += [title, *(f"  {name:<24}{value}" for name, value in rows)]
        return (
            "\n".join([*lines, *(problem.render("", "", "warning") for problem in self.warnings)]) or "nothing counted"
        )

    def _repr_html_(self) -> str:
        pieces = [piece for title, rows in self._sections() for piece in (markup.heading(title), markup.table(rows))]
        pieces += [markup.laid_out(problem.render("", "", "warning")) for problem in self.warnings]
        return markup.page(*(pieces or [markup.note("nothing counted")]))

    def _sections(self) -> list[tuple[str, list[tuple[str, str]]]]:
        counted = [(name, f"{number:,}") for name, number in self._total().items() if number]
        skipped = [(reason, f"{rows:,}") for reason, rows in self.set_aside_reasons.items()]
        missing = [(name, "no event has it") for name in self.missing_types]
        sections = [("counted", counted), ("skipped rows", skipped), ("missing types", missing)]
        return [(title, rows) for title, rows in sections if rows]
