"""The settings of a run as command line options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from eventcube.options import AGGREGATIONS, SETTINGS, SHARINGS, UNITS_IN_MICROSECONDS, options
from eventcube.workload_files.setting_text import read_setting

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Help on the syntax of settings on the command line.
_SYNTAX = {
    "partition_by": " Write a or a,b.",
    "order_by": " Write a or a,b.",
    "concepts": " Give a YAML or JSON file.",
    "strategy": " Write one for all parts, or one for each by a variable in it: s=balanced,d=passive "
    "(b..e=passive if it has only parts in it).",
}
_TYPES: dict[str, Any] = {
    "concepts": click.Path(),
    "time_unit": click.Choice(list(UNITS_IN_MICROSECONDS)),
    "limit": click.IntRange(1),
    "lateness": str,
    "sharing": click.Choice(list(SHARINGS)),
    "aggregates": click.Choice(AGGREGATIONS),
}


def takes_options(*names: str) -> Callable[[_Command], _Command]:
    """Add these settings to a command, which receives them as one argument: `options`."""

    def add(command: _Command) -> _Command:
        @functools.wraps(command)
        def call(*args: Any, **arguments: Any) -> Any:
            settings: dict[str, Any] = {name: read_setting(name, arguments.pop(name)) for name in names}
            return command(*args, options=options(**settings), **arguments)

        return _with_options(cast("_Command", call), names)

    return add


def takes_given_settings(*names: str) -> Callable[[_Command], _Command]:
    """Add these settings to a command, which receives those that were given, by their names, as `given`."""

    def add(command: _Command) -> _Command:
        @functools.wraps(command)
        def call(*args: Any, **arguments: Any) -> Any:
            source = click.get_current_context().get_parameter_source
            settings = {name: arguments.pop(name) for name in names}
            given = {
                name: read_setting(name, value)
                for name, value in settings.items()
                if source(name) is not click.core.ParameterSource.DEFAULT
            }
            return command(*args, given=given, **arguments)

        return _with_options(cast("_Command", call), names)

    return add


def _with_options(call: _Command, names: tuple[str, ...]) -> _Command:
    for name in reversed(names):
        call = _option(name)(call)
    return call


def _option(name: str) -> Callable[[_Command], _Command]:
    setting = SETTINGS[name]
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        type=_TYPES.get(name),
        default=setting.default,
        show_default=setting.default is not None,
        help=setting.meaning + _SYNTAX.get(name, ""),
    )
