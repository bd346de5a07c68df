"""HAVING: which groups are shown."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import Columns
from eventcube.engine.expressions import holds
from eventcube.engine.kernels import Bools
from eventcube.plan.dictionary import dictionary_of
from eventcube.plan.logical import Results


class Having:
    """The conditions that a query has on its groups."""

    def __init__(self, results: Results) -> None:
        self._conditions = results.having
        self._dictionary = dictionary_of(results.having)

    def holds(self, groups: pa.Table) -> Bools:
        """Where all conditions hold; the columns are called as the conditions call them."""
        columns = Columns(groups, self._dictionary)
        found = np.ones(groups.num_rows, np.bool_)
        for condition in self._conditions:
            found &= holds(condition, groups.num_rows, columns.__getitem__, columns)
        return found
