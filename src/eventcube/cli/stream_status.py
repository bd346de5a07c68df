"""What `eventcube stream` says of itself: a status line while it runs, and a summary at the end."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.filesize import decimal

if TYPE_CHECKING:
    from eventcube.spark.metrics import StreamTotals

# Where standard error is no terminal, a line is logged so often, if there was a micro-batch.
LOGGED_SECONDS = 60
# If more of the rows are late, the summary says what helps.
LATE_PART = 0.1
_CLEAR = "\r\x1b[K"


class StatusLine:
    """A line on standard error that is written over again and again; not on a terminal, a line from time to time."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._shown = ""
        self._logged, self._batches = clock.monotonic(), 0

    def show(self, totals: StreamTotals | None, *, note: str = "waiting for events") -> None:
        """Show the figures so far, or a note if there are none."""
        if self._quiet:
            return
        text = note if totals is None else status_text(totals)
        if self._live:
            self._write(text)
        elif (
            totals is not None and totals.batches > self._batches and clock.monotonic() > self._logged + LOGGED_SECONDS
        ):
            self._logged, self._batches = clock.monotonic(), totals.batches
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Take the line away while the block writes to the screen, from whatever thread."""
        with self._lock:
            if self._shown:
                sys.stderr.write(_CLEAR)
                sys.stderr.flush()
            try:
                yield
            finally:
                if self._shown:
                    sys.stderr.write(self._shown)
                    sys.stderr.flush()

    def end(self) -> None:
        """Take the line away for good."""
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        with self._lock:
            self._shown = text[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write(_CLEAR + self._shown)
            sys.stderr.flush()


def status_text(totals: StreamTotals) -> str:
    """The last micro-batch, and the matches and late rows so far, in a line."""
    last = totals.last
    parts = [f"{last.input_rows / last.seconds if last.seconds else 0:,.0f} rows/s", counted(totals.totals["matches"])]
    if last.watermark is not None:
        parts.append(
            f"watermark {last.watermark:%Y-%m-%d %H:%M:%S}, {seconds_text(last.lag_seconds)} behind the newest"
        )
    parts.append(f"state {last.held + last.retained:,} rows, {decimal(last.state_bytes)}")
    if late := totals.totals["late"]:
        parts.append(f"{late:,} late")
    return " · ".join(parts)


def counted(matches: int) -> str:
    """A number of matches."""
    return f"{matches:,} {'match' if matches == 1 else 'matches'}"


def seconds_text(seconds: float | None) -> str:
    """A duration, in its largest unit."""
    if seconds is None:
        return "–"
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """The figures of a stream from its start to its end; `undecided` rows are kept for the next start.

    `stopped` is true if a signal ended it. Matches of all times before the `watermark` were decided.
    """

    rows: int
    matches: int
    late: int
    set_aside: int
    batches: int
    undecided: int
    watermark: datetime | None
    seconds: float
    start_seconds: float
    stopped: bool
    out: str | None = None
    late_out: str | None = None
    checkpoint: str | None = None

    @classmethod
    def of(cls, totals: StreamTotals | None, seconds: float, start_seconds: float, *, stopped: bool) -> StreamSummary:
        """The summary of a query; None is one without a micro-batch."""
        if totals is None:
            return cls(0, 0, 0, 0, 0, 0, None, seconds, start_seconds, stopped)
        total, last = totals.totals, totals.last
        rows, undecided = total["input_rows"], last.held + last.retained
        figures = (rows, total["matches"], total["late"], total["set_aside"], totals.batches, undecided, last.watermark)
        return cls(*figures, seconds, start_seconds, stopped)

    def as_json(self) -> str:
        """One JSON object in one line."""
        rounded = {name: round(getattr(self, name), 3) for name in ("seconds", "start_seconds")}
        watermark = None if self.watermark is None else self.watermark.isoformat()
        return json.dumps({**asdict(self), **rounded, "watermark": watermark})

    def as_text(self) -> str:
        """A few lines for the screen."""
        batches = f"{self.batches:,} micro-batch{'' if self.batches == 1 else 'es'}"
        took = f"{batches}, {self.seconds:.1f} s; Spark started in {self.start_seconds:.1f} s"
        lines = [f"{counted(self.matches)} in {self.rows:,} rows, {took}"]
        if self.set_aside:
            where = f"in {self.late_out}" if self.late_out else "--late PATH writes them"
            unread = "no time, no type, or a value that does not fit its column"
            late = f"{self.late:,} of them late: {where}" if self.late else unread
            lines.append(f"{self.set_aside:,} {'row' if self.set_aside == 1 else 'rows'} skipped, {late}")
        if self.late > LATE_PART * self.rows:
            lines.append(
                f"{self.late / self.rows:.0%} of the rows came late: a larger --lateness takes them. Files of one "
                "modification time are read in any order: see docs/sinks.md#files-in-order"
            )
        if self.watermark is not None:
            lines.append(
                f"matches are decided up to the watermark, {self.watermark.isoformat()}; {self.undecided:,} "
                + ("row waits" if self.undecided == 1 else "rows wait")
            )
        if self.out:
            lines.append(f"written to {self.out}; the next start goes on from {self.checkpoint}")
        return "\n".join(lines)
