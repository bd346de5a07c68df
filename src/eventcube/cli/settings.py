"""The settings of a run as options of a command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from eventcube.concepts.concepts import Concepts
from eventcube.errors import OptionError
from eventcube.options import SETTINGS, UNITS_IN_MICROSECONDS, options

_Command = TypeVar("_Command", bound=Callable[..., Any])

# The settings that a query and the events alone need.
EVENT_SETTINGS = ("time", "type", "time_unit", "partition_by", "order_by", "concepts")
# How settings are written on the command line, where their meaning does not say it.
_WRITTEN = {
    "partition_by": " Write a or a,b.",
    "order_by": " Write a or a,b.",
    "concepts": " Give a YAML file.",
    "strategy": " Write one for all parts, or one for each by a variable in it: s=balanced,d=passive "
    "(b..e=passive if it has only parts in it).",
}
_TYPES: dict[str, Any] = {
    "concepts": click.Path(),
    "time_unit": click.Choice(list(UNITS_IN_MICROSECONDS)),
    "limit": click.IntRange(1),
}


def takes_options(*names: str) -> Callable[[_Command], _Command]:
    """Add these settings to a command, which gets them all as one argument: `options`."""

    def add(command: _Command) -> _Command:
        @functools.wraps(command)
        def call(*args: Any, **given: Any) -> Any:
            settings: dict[str, Any] = {name: _read(name, given.pop(name)) for name in names}
            return command(*args, options=options(**settings), **given)

        for name in reversed(names):
            call = _option(name)(call)
        return cast("_Command", call)

    return add


def _option(name: str) -> Callable[[_Command], _Command]:
    setting = SETTINGS[name]
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        type=_TYPES.get(name),
        default=setting.default,
        show_default=setting.default is not None,
        help=setting.meaning + _WRITTEN.get(name, ""),
    )


def _read(name: str, written: Any) -> Any:
    """A setting as `ec.match` takes it, from the text on the command line."""
    match name:
        case "partition_by" | "order_by":
            return [column.strip() for column in (written or "").split(",") if column.strip()]
        case "concepts":
            return Concepts.from_yaml(written) if written else None
        case "strategy":
            return _strategies(written)
        case _:
            return written


def _strategies(written: str) -> str | dict[str, str]:
    """`balanced` for all nested parts, or `s=balanced,d=passive` for those with these variables."""
    if "=" not in written:
        return written
    chosen: dict[str, str] = {}
    for item in written.split(","):
        name, _, strategy = (text.strip() for text in item.partition("="))
        if name in chosen:
            raise OptionError(f"two strategies for {name!r}", code="EC404", hint="name each part once")
        chosen[name] = strategy
    return chosen
