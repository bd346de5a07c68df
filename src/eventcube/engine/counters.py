"""Counters of the work of a run: the same numbers on every machine."""

from __future__ import annotations

from dataclasses import dataclass, fields

# What counters hold at most, in states and on Spark.
MOST_COUNTED = 2**63 - 1


@dataclass(slots=True)
class Counters:
    """Work done. Candidates are events looked at in a join or a negation, and blocks of them where a min-max index is;
    made are the partial matches that joins gave, complete ones among them, unless these were only counted.

    Rows are those of the input, events those that were accepted (on Spark: that tasks have read).
    Inner results are those of nested parts: computed, reused from a view, or dropped from a view without use. Look-ups
    are query intervals that views were asked for, intervals those that they recorded, and `view_bytes` is the peak size
    of the views (on Spark: in one task). Reused results are kept matches of a query that others were answered from.
    Events counted are those that matches were counted by without being made, once for each group that needs it.
    """

    rows: int = 0
    events: int = 0
    relevant: int = 0
    set_aside: int = 0
    late: int = 0
    candidates: int = 0
    made: int = 0
    inner_computed: int = 0
    inner_reused: int = 0
    inner_unused: int = 0
    view_lookups: int = 0
    view_intervals: int = 0
    view_bytes: int = 0
    results_reused: int = 0
    events_counted: int = 0
    matches: int = 0

    def add_matches(self, number: int) -> None:
        """Count matches, of which there can be more than 64 bits can count: then they are `MOST_COUNTED`."""
        self.matches = min(self.matches + number, MOST_COUNTED)

    def as_dict(self) -> dict[str, int]:
        """The counters by name."""
        return {name: getattr(self, name) for name in _NAMES}

    @property
    def nonzero(self) -> dict[str, int]:
        """The counters that are not 0, by name."""
        return {name: value for name in _NAMES if (value := getattr(self, name))}

    @property
    def work(self) -> str:
        """The work of joins, in words."""
        return f"{self.candidates:,} candidates, {self.made:,} made"

    def add(self, other: Counters) -> None:
        """Add the counters of a run beside this one."""
        for name, value in other.nonzero.items():
            setattr(self, name, getattr(self, name) + value)

    def add_later(self, other: Counters) -> None:
        """Add the counters of a run after this one, or elsewhere, whose views are not held at the same time."""
        peak = max(self.view_bytes, other.view_bytes)
        self.add(other)
        self.view_bytes = peak


_NAMES = tuple(f.name for f in fields(Counters))


def within_limit(matches: int | None, limit: int | None) -> int | None:
    """A number of matches up to a limit, if there is one; None is more than 64 bits can hold."""
    return matches if limit is None else limit if matches is None else min(matches, limit)
