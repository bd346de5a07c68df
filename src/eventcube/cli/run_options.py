"""The options of commands that run queries over files: where matches go, and where the work is done."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

import click

from eventcube.cli.inputs import FORMATS

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where matches and skipped rows go, and whether the work is done on Spark."""

    out: str | None
    format_: str | None
    input_format: str | None
    master: str
    conf: tuple[str, ...]
    no_spark: bool
    set_aside: str | None
    overwrite: bool
    allow_missing_types: bool
    less: str | None
    as_json: bool
    quiet: bool

    @property
    def silent(self) -> bool:
        """Whether neither progress nor notes are shown."""
        return self.quiet or self.as_json


_OPTIONS = (
    click.option("--out", type=click.Path(), help="Where matches go: a file (.parquet, .csv, .jsonl), or a folder."),
    click.option(
        "--format",
        "format_",
        type=click.Choice([*FORMATS, "screen"]),
        help="The format of the matches; by default as --out is called (a folder: parquet), and the screen without "
        "--out.",
    ),
    click.option(
        "--input-format", type=click.Choice(list(FORMATS)), help="The format of the input, if its name does not say."
    ),
    click.option("--master", default="local[*]", show_default=True, help="The Spark master."),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
    click.option("--no-spark", is_flag=True, help="Run in this process on one core: quickest for small inputs."),
    click.option(
        "--set-aside", type=click.Path(), help="Where to write skipped rows, with the reason (no time, no type)."
    ),
    click.option("--overwrite", is_flag=True, help="Replace files and folders that are written to."),
    click.option("--allow-missing-types", is_flag=True, help="Run even if no event has a type that a query names."),
    click.option(
        "--less", metavar="PATH", help="Rows to leave out: those that `eventcube stream` wrote to --late, for a replay."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object; matches need --out."),
    click.option("--quiet", "-q", is_flag=True, help="No progress and no summary."),
)


def takes_run_options(command: _Command) -> _Command:
    """Add these options to a command, which receives them as one argument: `how`."""

    @functools.wraps(command)
    def call(*args: Any, **arguments: Any) -> Any:
        how = RunOptions(**{field.name: arguments.pop(field.name) for field in fields(RunOptions)})
        return command(*args, how=how, **arguments)

    for option in reversed(_OPTIONS):
        call = option(call)
    return cast("_Command", call)
