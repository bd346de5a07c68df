"""The settings of a run as command line options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from eventcube.concepts.concepts import Concepts
from eventcube.errors import OptionError
from eventcube.options import SETTINGS, SHARINGS, UNITS_IN_MICROSECONDS, options

_Command = TypeVar("_Command", bound=Callable[..., Any])

# The settings of all commands that take a query and events.
EVENT_SETTINGS = ("time", "type", "time_unit", "partition_by", "order_by", "concepts")
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
    "sharing": click.Choice(list(SHARINGS)),
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


def read_setting(name: str, value: Any) -> Any:
    """A setting as `ec.match` takes it, from the text on the command line."""
    match name:
        case "partition_by" | "order_by":
            return [column.strip() for column in (value or "").split(",") if column.strip()]
        case "concepts":
            return read_concepts(value) if value else None
        case "strategy":
            return _strategies(value)
        case _:
            return value


def read_concepts(path: str) -> Concepts:
    """The hierarchy of types in a JSON file, by its ending, or in a YAML file."""
    return (Concepts.from_json if path.lower().endswith(".json") else Concepts.from_yaml)(path)


def _strategies(value: str) -> str | dict[str, str]:
    """`balanced` for all nested parts, or `s=balanced,d=passive` for those with these variables."""
    if "=" not in value:
        return value
    chosen: dict[str, str] = {}
    for item in value.split(","):
        name, _, strategy = (text.strip() for text in item.partition("="))
        if name in chosen:
            raise OptionError(f"two strategies for {name!r}", code="EC404", hint="name each part once")
        chosen[name] = strategy
    return chosen
