"""The interface of a flat strategy, which searches for sequences of events, and the registry of those there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from eventcube.engine.registry import import_all
from eventcube.errors import OptionError, did_you_mean
from eventcube.optimizer.program import ProgramEstimate
from eventcube.options import AUTO
from eventcube.plan.steps import Program


class FlatStrategy(ABC):
    """Searches for sequences by a program of the plan that is made for it; all of them find the same matches."""

    @classmethod
    @abstractmethod
    def cost(cls, program: Program, estimate: ProgramEstimate) -> float:
        """What its program would cost over some events, in events looked at."""


_Flat = TypeVar("_Flat", bound=type[FlatStrategy])
_registered: dict[str, type[FlatStrategy]] = {}


def register(name: str) -> Callable[[_Flat], _Flat]:
    """Make a flat strategy known by its name; a file in this folder does so when it is imported."""

    def add(strategy: _Flat) -> _Flat:
        _registered[name] = strategy
        return strategy

    return add


def flat_strategies() -> dict[str, type[FlatStrategy]]:
    """Every flat strategy in this folder, by name."""
    import_all("eventcube.engine.flat")
    return dict(_registered)


def flat_cost(name: str, program: Program, estimate: ProgramEstimate) -> float:
    """What a program would cost by the flat strategy that it is for."""
    return flat_strategies()[name].cost(program, estimate)


def check_flat_strategy(name: str) -> None:
    """Refuse a flat strategy that is not known."""
    known = sorted((*flat_strategies(), AUTO))
    if name not in known:
        raise OptionError(f"unknown flat strategy {name!r}", code="EC404", hint=did_you_mean(name, known))
