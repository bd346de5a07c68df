"""Events as they are released: in order of time, none of which can be preceded any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eventcube.engine.kernels import Array, Ints


@dataclass(frozen=True, slots=True)
class Released:
    """Events whose place in time is final, in order: later ones come later in time, with none of equal rank.

    `types` are codes of the workload's type names, -1 for others, if events have types. `halo` is -1 or 1 for events
    that belong to the slice before or after, and whose matches are found there. The events are rows of the table:
    `index` says which, None for all of them as they are.
    """

    table: pa.Table
    ts: Ints
    rank: Ints
    types: Array | None
    halo: Array | None = None
    index: Ints | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns of the events."""
        table = self.table.select(names)
        return table if self.index is None else table.take(pa.array(self.index))
