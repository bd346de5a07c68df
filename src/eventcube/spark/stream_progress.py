"""One micro-batch of a stream, read from Spark's progress: what was done in it, and what the state holds after it.

Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

# The names that `match` observes under: one for each result in the query.
_OBSERVED = re.compile(r"eventcube(-\d+)?")
_OPERATOR = "transformWithStateInPandas"
# Spark's watermark before there is one.
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

# A bucket: the name it is observed under, and its number.
BucketName = tuple[str, int]


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """What a micro-batch did, in counts, bytes and seconds, and what the buckets have after it.

    `input_rows` are all that Spark read; `rows` those that queries can use, which reached the buckets, of which `late`
    and other rows were `set_aside`. `dropped` counts packs of rows that Spark dropped by its watermark, which must
    never happen. `restored` buckets were built from their saved state. Times of buckets are sums over tasks, which run
    beside each other; `spark_seconds` has Spark's own stages, which follow each other.

    `held` rows wait for the watermark, and `retained` ones can be in a match to come. Buckets that did not run in the
    micro-batch have what they had, if they ran in one before. `largest_…` are those of the largest bucket.
    """

    name: str | None
    id: str
    run_id: str
    batch: int
    began: datetime
    seconds: float
    input_rows: int
    rows: int
    late: int
    set_aside: int
    matches: int
    restored: int
    dropped: int
    written_bytes: int
    restore_seconds: float
    match_seconds: float
    save_seconds: float
    spark_seconds: Mapping[str, float]
    watermark: datetime | None
    newest: datetime | None
    held: int
    retained: int
    view_bytes: int
    state_bytes: int
    buckets: int
    largest_state_rows: int
    largest_state_bytes: int
    largest_match_seconds: float
    spark_state_rows: int
    spark_state_bytes: int
    sizes: Mapping[BucketName, Mapping[str, int]] = field(repr=False)

    @classmethod
    def of(cls, progress: Mapping[str, Any], before: StreamProgress | None = None) -> StreamProgress | None:
        """What Spark's progress says, after that of the micro-batch before; None for a query without buckets."""
        observed = {
            name: _plain(values) for name, values in progress["observedMetrics"].items() if _OBSERVED.fullmatch(name)
        }
        operators = [o for o in progress["stateOperators"] if o["operatorName"].startswith(_OPERATOR)]
        # A micro-batch without any input and without timers observes nothing.
        if not observed and before is None:
            return None
        ran = {(name, bucket["bucket"]): bucket for name, did in observed.items() for bucket in did["buckets"]}
        sizes: dict[BucketName, Mapping[str, int]] = {**(before.sizes if before is not None else {}), **ran}
        spark_seconds = {
            **{_snake(name): ms / 1000 for name, ms in progress["durationMs"].items() if name != "triggerExecution"},
            "state_commit": sum(o["commitTimeMs"] for o in operators) / 1000,
        }

        def did(name: str) -> int:
            return sum(values[name] or 0 for values in observed.values())

        event_time = progress["eventTime"]
        times = [before.newest if before is not None else None, _moment(event_time.get("max"))]
        return cls(
            name=progress["name"],
            id=str(progress["id"]),
            run_id=str(progress["runId"]),
            batch=progress["batchId"],
            began=datetime.fromisoformat(progress["timestamp"]),
            seconds=progress["durationMs"].get("triggerExecution", progress["batchDuration"]) / 1000,
            # Spark counts a row once for each operator that reads it.
            input_rows=(progress["numInputRows"] or 0) // max(1, len(operators)),
            rows=did("rows"),
            late=did("late"),
            set_aside=did("set_aside"),
            matches=did("matches"),
            restored=did("restored"),
            dropped=sum(o["numRowsDroppedByWatermark"] for o in operators),
            written_bytes=did("written_bytes"),
            restore_seconds=did("restore_us") / 1e6,
            match_seconds=did("match_us") / 1e6,
            save_seconds=did("save_us") / 1e6,
            spark_seconds=spark_seconds,
            watermark=_moment(event_time.get("watermark")),
            newest=max((t for t in times if t is not None), default=None),
            held=_total(sizes, "held"),
            retained=_total(sizes, "retained"),
            view_bytes=_total(sizes, "view_bytes"),
            state_bytes=_total(sizes, "state_bytes"),
            buckets=len(sizes),
            largest_state_rows=max((bucket["held"] + bucket["retained"] for bucket in sizes.values()), default=0),
            largest_state_bytes=max((bucket["state_bytes"] for bucket in sizes.values()), default=0),
            largest_match_seconds=max((bucket["match_us"] for bucket in ran.values()), default=0) / 1e6,
            spark_state_rows=sum(o["numRowsTotal"] for o in operators),
            spark_state_bytes=sum(o["memoryUsedBytes"] for o in operators),
            sizes=sizes,
        )

    @property
    def lag_seconds(self) -> float | None:
        """How far the watermark is behind the newest event so far."""
        if self.watermark is None or self.newest is None:
            return None
        return (self.newest - self.watermark) / timedelta(seconds=1)

    def as_dict(self) -> dict[str, Any]:
        """The figures by name, ready for JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sizes"}
        values["lag_seconds"] = self.lag_seconds
        return {name: v.isoformat() if isinstance(v, datetime) else v for name, v in values.items()}


def progress_of(progresses: Iterable[Mapping[str, Any]]) -> Iterator[StreamProgress]:
    """What each of Spark's progresses says, in their order; those of other queries are left out."""
    before: StreamProgress | None = None
    for progress in progresses:
        if (now := StreamProgress.of(progress, before)) is not None:
            before = now
            yield now


def _total(sizes: Mapping[BucketName, Mapping[str, int]], name: str) -> int:
    return sum(bucket[name] for bucket in sizes.values())


def _plain(values: Any) -> Mapping[str, Any]:
    """A row of Spark, or what its JSON says."""
    plain: Mapping[str, Any] = values.asDict(recursive=True) if hasattr(values, "asDict") else values
    return plain


def _moment(text: str | None) -> datetime | None:
    moment = None if text is None else datetime.fromisoformat(text)
    return None if moment == _EPOCH else moment


def _snake(name: str) -> str:
    """A name of Spark's, such as queryPlanning, with underscores."""
    return re.sub(r"(?=[A-Z])", "_", name).lower()
