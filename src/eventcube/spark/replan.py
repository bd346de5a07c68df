"""Plans of a bucket's queries on their way from one workload to another.

They are made in the workers, since only a bucket knows what its state is of; once for all buckets of a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from eventcube.engine.reuse.derive import plan_shared
from eventcube.language.parse import parse
from eventcube.options import INDEPENDENT, StrategyChoice
from eventcube.plan.parts import own_strategies
from eventcube.plan.planned import plan_queries
from eventcube.plan.workload import Added, WorkloadPlan
from eventcube.spark.match_ids import numbered

if TYPE_CHECKING:
    from eventcube.spark.bucket import BucketTask


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The texts of queries in their order, the times since which some see events, and the task that runs them."""

    stream: str
    place: int
    texts: tuple[tuple[str, str], ...]
    added: tuple[tuple[str, int], ...]
    task: BucketTask = field(compare=False)


def plan_of(task: BucketTask, texts: Mapping[str, str], added: Added) -> WorkloadPlan:
    """The plan of queries, those of the task or others before them, some of which were added to those at work."""
    wanted = _Wanted(task.name, task.place, tuple(texts.items()), tuple(sorted(added.items())), task)
    return task.plan if not added and wanted.texts == tuple(task.texts.items()) else _planned(wanted)


@lru_cache(maxsize=32)
def _planned(wanted: _Wanted) -> WorkloadPlan:
    task, chosen = wanted.task, wanted.task.options
    queries = {name: parse(text, name) for name, text in wanted.texts}
    if wanted.texts != tuple(task.texts.items()):
        # Any strategy goes on from a state, and those of the task need not fit other queries.
        chosen = replace(chosen, strategy=StrategyChoice(), sharing=INDEPENDENT)
    chosen = replace(chosen, strategy=own_strategies(chosen.strategy, queries.values()))
    plans = plan_queries(queries, task.schema, chosen)
    if task.match_id:
        plans = {name: plan if queries[name].agg else numbered(plan) for name, plan in plans.items()}
    return plan_shared(plans, chosen.concepts, chosen.sharing, dict(wanted.added))
