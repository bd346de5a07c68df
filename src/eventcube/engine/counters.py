"""What a run did, counted: the same numbers on every machine."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class Counters:
    """Work done. Candidates are events looked at in a join or a negation.

    Rows are those of the input, events the ones that were taken in: on Spark those that tasks have read.
    Inner results are those of nested parts: how often one was computed, how often one that a view kept served again,
    how many a view kept and dropped without use. Look-ups are the intervals that views were asked for, intervals the
    ones they kept a record of, and `view_bytes` is the most that the views held at a time (on Spark: in one task).
    """

    rows: int = 0
    events: int = 0
    relevant: int = 0
    set_aside: int = 0
    late: int = 0
    candidates: int = 0
    inner_computed: int = 0
    inner_reused: int = 0
    inner_unused: int = 0
    view_lookups: int = 0
    view_intervals: int = 0
    view_bytes: int = 0
    matches: int = 0

    def as_dict(self) -> dict[str, int]:
        """The counters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def add(self, other: Counters) -> None:
        """Count what another run beside this one counted, too."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))

    def add_later(self, other: Counters) -> None:
        """Count what a run after this one, or elsewhere, counted: its views hold nothing while those of this one do."""
        most = max(self.view_bytes, other.view_bytes)
        self.add(other)
        self.view_bytes = most
