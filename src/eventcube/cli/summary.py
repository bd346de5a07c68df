"""The summary of a run, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

# The counters that tell how much several queries have shared: events looked at, and partial matches made.
WORK = ("candidates", "made")
# With fewer events a run does not reach full speed, and a rate would mislead.
RATED_EVENTS = 10_000
RATED_EVENTS_ON_SPARK = 1_000_000


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one run; `seconds` is the time to read, match and write, `start_seconds` the time before that.

    Starting is loading libraries and, on Spark, starting the session; `compile_seconds`, for the engine's loops, is
    separate. `events` are all of the input, of which `left_out` were not used. `matches` counts rows of the result:
    groups, if the query has AGG. `counts` are the matches of each of several queries, if they were counted, and `work`
    tells the counters of `WORK`.
    """

    events: int
    set_aside: int
    matches: int
    seconds: float
    left_out: int = 0
    out: str | None = None
    set_aside_out: str | None = None
    set_aside_reasons: Mapping[str, int] = field(default_factory=dict)
    grouped: bool = False
    nested: Mapping[str, int] = field(default_factory=dict)
    start_seconds: float = 0.0
    compile_seconds: float = 0.0
    on_spark: bool = False
    queries: int = 1
    counts: Mapping[str, int | None] = field(default_factory=dict)
    work: Mapping[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds if self.seconds else 0.0

    def _rate(self) -> str:
        if self.events < (RATED_EVENTS_ON_SPARK if self.on_spark else RATED_EVENTS):
            return ""
        shown = f"{self.rate / 1e6:.2f} M" if self.rate >= 1e6 else f"{self.rate:,.0f}"
        return f" ({shown} events/s)"

    def as_json(self) -> str:
        """One JSON object in one line."""
        seconds = {name: round(getattr(self, name), 3) for name in ("seconds", "start_seconds", "compile_seconds")}
        return json.dumps({**asdict(self), **seconds, "events_per_second": round(self.rate)})

    def as_text(self) -> str:
        """A few lines for the screen."""
        one, more = ("group", "groups") if self.grouped else ("match", "matches")
        matches = f"{self.matches:,} {one if self.matches == 1 else more}"
        matches += f" of {self.queries} queries" if self.queries > 1 else ""
        started = f"{'Spark ' if self.on_spark else ''}started in {self.start_seconds:.1f} s"
        compiled = f"; compiled in {self.compile_seconds:.1f} s, once" if self.compile_seconds else ""
        lines = [f"{matches} in {self.events:,} events, {self.seconds:.1f} s{self._rate()}; {started}{compiled}"]
        if self.left_out:
            lines.append(f"{self.left_out:,} {'event' if self.left_out == 1 else 'events'} left out: --less")
        if self.set_aside:
            reasons = ", ".join(f"{reason}: {count:,}" for reason, count in self.set_aside_reasons.items())
            where = f"in {self.set_aside_out}" if self.set_aside_out else "--set-aside PATH writes them"
            rows = "row" if self.set_aside == 1 else "rows"
            lines.append(f"{self.set_aside:,} {rows} skipped ({reasons}); {where}")
        if self.queries > 1 and self.work:
            candidates, made = (f"{self.work[name]:,}" for name in WORK)
            lines.append(f"work: {candidates} candidates looked at, {made} partial matches made")
        if any(self.nested.values()):
            counts = {name: f"{count:,}" for name, count in self.nested.items()}
            lines.append(
                f"nested parts: {counts['inner_computed']} inner results computed, {counts['inner_reused']} reused, "
                f"{counts['inner_unused']} never used; {counts['view_lookups']} look-ups, "
                f"{counts['view_intervals']} intervals, views held {counts['view_bytes']} bytes"
            )
        if self.out:
            lines.append(f"written to {self.out}")
        return "\n".join(lines)
