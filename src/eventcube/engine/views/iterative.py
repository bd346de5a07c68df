"""Each outer row computes its inner matches anew: nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator

from eventcube.engine.kernels import Bools
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Executor, register
from eventcube.plan.physical import Nested, Reject


@register("iterative")
class Iterative:
    """Runs the inner program for all outer rows of a chunk together, without remembering any result."""

    def join(self, nested: Nested, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        return executor.run(nested.program, table)

    def exists(self, reject: Reject, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        return executor.any(reject.program, table)
