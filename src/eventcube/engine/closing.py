"""Groups by buckets of time, which are final once the watermark has passed them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import Groups
from eventcube.engine.functions import bucket_ends
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.saved import BOUND
from eventcube.plan.closing import ClosingKey

_NEVER = np.iinfo(np.int64).max


class ClosingGroups:
    """Groups that leave as the watermark moves on.

    Which of them have left follows from the watermark, so it is not saved: a restored state drops them again.
    """

    def __init__(self, groups: Groups, keys: Sequence[ClosingKey]) -> None:
        self.groups, self._keys = groups, keys
        # No group closes before that watermark.
        self._next = BOUND

    def note(self, summary: pa.Table) -> None:
        """Take note of groups to which matches were added."""
        if summary.num_rows:
            self._next = min(self._next, int(self._closed_at(summary).min()))

    def note_restored(self) -> None:
        """Take note that the groups are others."""
        self._next = -BOUND

    def take(self, watermark: int) -> Groups | None:
        """Take out the groups that no match to come can fall into; None if there are none."""
        if watermark < self._next:
            return None
        closed = self.groups.take(lambda partial: self._closed_at(partial) <= watermark)
        left, self._next = self.groups.partial, BOUND
        if left is not None:
            self.note(left)
        return closed

    def _closed_at(self, groups: pa.Table) -> Ints:
        """The watermark at which each group is final: a match must fall into all of its buckets."""
        at = np.full(groups.num_rows, _NEVER)
        for key in self._keys:
            starts = groups.column(f"k{key.number}").cast(pa.int64())
            is_known: Bools = np.asarray(starts.is_valid())
            ends = bucket_ends(np.asarray(starts.fill_null(0)), key.microseconds, key.zone)
            ends = np.minimum(ends, _NEVER - key.delay) + key.delay
            at = np.minimum(at, np.where(is_known, ends, _NEVER))
        return at
