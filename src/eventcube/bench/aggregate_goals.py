"""What aggregates without making matches must show, judged by measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventcube.bench.aggregate import AggregateRow

MANY_MATCHES = 1e12
OF_SCAN = {"COUNT": 3.0, "SUM": 5.0, "AVG": 5.0}
OF_SMALLEST, OF_BEST = 1.3, 1.2
CHOICE = "the way that is taken over the faster one"
LARGE_SECONDS = 1.5
OF_LEAST_MEMORY = 1.1
OF_NOTHING = 0.8


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure, the worst of its kind, and its limit: at most, or `at_least`."""

    name: str
    figure: float
    limit: float
    where: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    @property
    def text(self) -> str:
        bound = "at least" if self.at_least else "at most"
        place = f" ({self.where})" if self.where else ""
        return f"{'met' if self.met else 'missed'}: {self.name}: {self.figure:.2f}{place}, {bound} {self.limit:g}"


def judge(rows: Sequence[AggregateRow], *, large: bool = False) -> list[Goal]:
    """The goals that rows are judged by; `large`: those of SEQ of 5 over many events."""
    if large:
        return [Goal("seconds to count", next(r for r in rows if r.aggregate == "COUNT").seconds, LARGE_SECONDS)]
    goals: list[Goal] = []
    for aggregate, limit in OF_SCAN.items():
        many = [row for row in rows if row.aggregate == aggregate and row.matches > MANY_MATCHES]
        goals += _worst(f"{aggregate} of more than 10¹² matches over the plain scan", many, limit, lambda r: r.of_scan)
    goals += _worst("a window over the smallest one", rows, OF_SMALLEST, lambda r: r.of_smallest)
    return [*goals, *_worst(CHOICE, rows, OF_BEST, lambda r: r.of_best)]


def _worst(
    name: str, rows: Iterable[AggregateRow], limit: float, figure: Callable[[AggregateRow], float]
) -> Iterable[Goal]:
    """The row with the greatest figure, of each length."""
    by_length: dict[int, AggregateRow] = {}
    for row in rows:
        if row.length not in by_length or figure(row) > figure(by_length[row.length]):
            by_length[row.length] = row
    for length, row in by_length.items():
        unit = "events" if row.by_events else "ms"
        where = f"{row.aggregate} within {row.window:,} {unit}{', keyed' if row.keyed else ''}"
        yield Goal(f"SEQ of {length}, {name}", figure(row), limit, where)
