"""How a nested part is answered: the interface that every strategy fills, and where strategies are found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Protocol

from eventcube.engine.kernels import Bools
from eventcube.engine.table import Table
from eventcube.errors import OptionError, did_you_mean
from eventcube.plan.physical import Nested, Program, Reject


class Executor(Protocol):
    """What a strategy may ask of the engine."""

    def run(self, program: Program, table: Table) -> Iterator[Table]:
        """Every way to take each partial match through the program, in chunks."""

    def any(self, program: Program, table: Table) -> Bools:
        """For each partial match whether there is a way through the program."""


class Strategy(Protocol):
    """One way to answer a nested part for a set of outer rows, each with its own interval."""

    def join(self, nested: Nested, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""

    def exists(self, reject: Reject, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval (marks `start…`, `end…`)."""


_registered: dict[str, Callable[[], Strategy]] = {}


def register(name: str) -> Callable[[Callable[[], Strategy]], Callable[[], Strategy]]:
    """Make a strategy known by a name; a file in this folder does so when it is imported."""

    def add(make: Callable[[], Strategy]) -> Callable[[], Strategy]:
        _registered[name] = make
        return make

    return add


def strategies() -> dict[str, Callable[[], Strategy]]:
    """Every strategy in this folder, by name."""
    package = importlib.import_module("eventcube.engine.views")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"eventcube.engine.views.{module.name}")
    return dict(_registered)


def strategy(name: str) -> Strategy:
    """The strategy of that name; `auto` is the best one there is."""
    known = strategies()
    if name == "auto":
        name = "iterative"
    if name not in known:
        raise OptionError(f"unknown strategy {name!r}", code="EC404", hint=did_you_mean(name, ["auto", *known]))
    return known[name]()
