"""Decisions of the engine taken by chance, and sizes that make it do in small what it does in large."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random

import numpy as np

from eventcube.engine.execute import Execution
from eventcube.engine.table import Table
from eventcube.optimizer import choose
from eventcube.plan.steps import Bind


def any_of(rng: Random) -> Callable[[Mapping[str, float], str | None], str]:
    """A choice that costs have no part in, so that programs take turns."""
    return lambda expected, _: rng.choice(sorted(expected))


def any_costs(rng: Random) -> Callable[[object, Mapping[str, float], object], choose.Costs]:
    """Costs that say nothing, so that all strategies of a part take turns."""
    return lambda _, least, __: choose.Costs({name: rng.random() for name in least})


def in_chunks(size: int) -> Callable[[Execution, Bind, Table], Iterator[Table]]:
    """The engine's join, with chunks of so many rows at most."""
    bind = Execution._bind

    def chunked(execution: Execution, step: Bind, table: Table) -> Iterator[Table]:
        for out in bind(execution, step, table):
            for start in range(0, len(out), size):
                yield Table(out.columns, np.ascontiguousarray(out.data[:, start : start + size]))

    return chunked
