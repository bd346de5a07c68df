"""The pipeline of a stream whose stateful operator only stores its events: what `ec.match` is measured against.

For benchmarks. Events are read, packed and shuffled as for the query; a bucket stores what came as one chunk, and
removes the chunks that have left the window.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from eventcube.options import Settings, options
from eventcube.runtime.queries import queries_by_name
from eventcube.spark.bucket import BucketTask
from eventcube.spark.stream import Stream

if TYPE_CHECKING:
    import pandas as pd


def storing_dataframe(events: DataFrame, query: str, **settings: Unpack[Settings]) -> DataFrame:
    """The stream of `ec.match` for one query, which stores events and has no matches."""
    return _StoringStream(events, queries_by_name(query), True, options(**settings)).frame()


class _StoringStream(Stream):
    def operator(self, tasks: Sequence[BucketTask]) -> StatefulProcessor:
        (query,) = tasks[0].plan.queries.values()
        return _Storing((query.plan.scan.width or 0) // 1000)


@dataclass
class _Storing(StatefulProcessor):
    """Stores the packs of each micro-batch as one chunk; `window` is in milliseconds."""

    window: int

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._manifest = handle.getValueState("manifest", "data binary")
        self._chunks = handle.getMapState("chunks", "number bigint", "data binary")

    def handleInputRows(  # noqa: N802 - as Spark calls it
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        packs = b"".join(bytes(pack) for frame in rows for pack in frame.iloc[:, -1])
        watermark = timerValues.getCurrentWatermarkInMs()
        stored = self._manifest.get()
        # The number of each chunk, and the watermark when it was stored.
        chunks = [] if stored is None else json.loads(stored[0])
        for number, at in chunks:
            if at < watermark - self.window:
                self._chunks.removeKey((number,))
        number = chunks[-1][0] + 1 if chunks else 0
        chunks = [chunk for chunk in chunks if chunk[1] >= watermark - self.window] + [[number, watermark]]
        self._chunks.updateValue((number,), (packs,))
        self._manifest.update((json.dumps(chunks).encode(),))
        return iter(())

    def close(self) -> None:
        pass
