"""HAVING: the filter of groups."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import Columns
from eventcube.engine.expressions import holds
from eventcube.engine.kernels import Bools
from eventcube.plan.dictionary import dictionary_of
from eventcube.plan.logical import Results


class Having:
    """The conditions of a query on its groups."""

    def __init__(self, results: Results) -> None:
        self._conditions = results.having
        self._dictionary = dictionary_of(results.having)

    def holds(self, groups: pa.Table) -> Bools:
        """Where all conditions hold; the columns have the names that the conditions use (k0, …, a0, …)."""
        columns = Columns(groups, self._dictionary)
        kept = np.ones(groups.num_rows, np.bool_)
        for condition in self._conditions:
            kept &= holds(condition, groups.num_rows, columns.__getitem__, columns)
        return kept
