"""What a run did, for a person or a program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

# Of fewer, a rate says how long the start took.
RATED_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one run; `seconds` counts reading, matching and writing, not the start of Spark.

    `matches` counts rows of the result: groups, if the query has AGG.
    """

    events: int
    set_aside: int
    matches: int
    seconds: float
    out: str | None = None
    set_aside_out: str | None = None
    set_aside_reasons: Mapping[str, int] = field(default_factory=dict)
    grouped: bool = False
    nested: Mapping[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds if self.seconds else 0.0

    def _rate(self) -> str:
        if self.events < RATED_EVENTS:
            return ""
        shown = f"{self.rate / 1e6:.2f} M" if self.rate >= 1e6 else f"{self.rate:,.0f}"
        return f" ({shown} events/s)"

    def as_json(self) -> str:
        """One JSON object in one line."""
        return json.dumps({**asdict(self), "seconds": round(self.seconds, 3), "events_per_second": round(self.rate)})

    def as_text(self) -> str:
        """A few lines for the screen."""
        one, more = ("group", "groups") if self.grouped else ("match", "matches")
        found = f"{self.matches:,} {one if self.matches == 1 else more}"
        lines = [f"{found} in {self.events:,} events, {self.seconds:.1f} s{self._rate()}"]
        if self.set_aside:
            reasons = ", ".join(f"{reason}: {count:,}" for reason, count in self.set_aside_reasons.items())
            where = f"in {self.set_aside_out}" if self.set_aside_out else "--set-aside PATH writes them"
            lines.append(f"{self.set_aside:,} set aside ({reasons}); {where}")
        if any(self.nested.values()):
            own = {name: f"{count:,}" for name, count in self.nested.items()}
            lines.append(
                f"nested parts: {own['inner_computed']} inner results computed, {own['inner_reused']} reused, "
                f"{own['inner_unused']} never used; {own['view_lookups']} look-ups, {own['view_intervals']} intervals, "
                f"views held {own['view_bytes']} bytes"
            )
        if self.out:
            lines.append(f"written to {self.out}")
        return "\n".join(lines)
