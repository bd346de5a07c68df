"""The options that subcommands share, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from eventcube.concepts.concepts import Concepts
from eventcube.errors import OptionError
from eventcube.options import UNITS_IN_MICROSECONDS

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Settings:
    """How events are to be read and the query to be run."""

    time: str = "ts"
    type: str | None = None
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    concepts: Concepts | None = None
    time_unit: str = "us"
    strategy: str | dict[str, str] = "auto"
    limit: int | None = None

    def for_match(self) -> dict[str, Any]:
        """The keyword arguments of `ec.match`."""
        return {
            "time": self.time,
            "type": self.type,
            "partition_by": self.partition_by,
            "order_by": self.order_by,
            "concepts": self.concepts,
            "time_unit": self.time_unit,
            "strategy": self.strategy,
            "limit": self.limit,
        }


strategy_option = click.option(
    "--strategy",
    default="auto",
    show_default=True,
    help="How nested parts are answered: iterative, rewrite, aggressive (= object), semantic, passive, balanced, "
    "auto; or for each part by a variable in it: s=balanced,d=passive (b..e=passive if it has only parts in it).",
)


def event_options(command: F) -> F:
    """The options that say which columns play which part."""
    for option in reversed(
        (
            click.option("--time", default="ts", show_default=True, help="The column that holds the time."),
            click.option(
                "--type", "type_", help="The column that holds the type; without one, every event fits every component."
            ),
            click.option(
                "--partition-by",
                help="Columns that all events of a match share, as PARTITION BY in the query: a or a,b.",
            ),
            click.option("--order-by", help="Columns that order events of the same time: a or a,b."),
            click.option("--concepts", type=click.Path(), help="A YAML file with the hierarchy of types."),
            click.option(
                "--time-unit",
                type=click.Choice(list(UNITS_IN_MICROSECONDS)),
                default="us",
                show_default=True,
                help="What a whole number in the time column counts.",
            ),
        )
    ):
        command = option(command)
    return command


def make_settings(
    time: str,
    type_: str | None,
    partition_by: str | None,
    order_by: str | None,
    concepts: str | None,
    time_unit: str,
    strategy: str = "auto",
    limit: int | None = None,
) -> Settings:
    """Settings from options as they are written."""
    return Settings(
        time,
        type_,
        _names(partition_by),
        _names(order_by),
        Concepts.from_yaml(concepts) if concepts else None,
        time_unit,
        _strategy(strategy),
        limit,
    )


def _strategy(value: str) -> str | dict[str, str]:
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


def _names(value: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip()) if value else ()
