"""The options of `eventcube stream`: where events come from, where matches go, and how the stream runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

import click

from eventcube.cli.inputs import FORMATS

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Where events come from, where matches and late rows go, and how the stream runs."""

    out: str | None = None
    checkpoint: str | None = None
    late: str | None = None
    format_: str | None = None
    columns: str | None = None
    input_format: str | None = None
    once: bool = False
    trigger: str = "1 second"
    max_files: int | None = None
    max_records: int | None = None
    metrics: str | None = None
    metrics_port: int | None = None
    master: str = "local[*,4]"
    conf: tuple[str, ...] = ()
    as_json: bool = False
    quiet: bool = False

    @property
    def silent(self) -> bool:
        """Whether neither progress nor notes are shown."""
        return self.quiet or self.as_json


_OPTIONS = (
    click.option("--out", help="Where matches go: a folder, or a topic kafka://host:port/topic; else the screen."),
    click.option(
        "--checkpoint",
        help="The folder from which the next start goes on; needed with --out. Keep it, and do not share it.",
    ),
    click.option("--late", help="A folder for late rows, which are else only counted; needs a folder as --out."),
    click.option(
        "--format",
        "format_",
        type=click.Choice(list(FORMATS)),
        help="The format of the files in --out, parquet by default; jsonl without --out goes to standard output.",
    ),
    click.option(
        "--columns", help="The columns, as in SQL, if no file is there yet, or of a topic: 'ts timestamp, kind string'."
    ),
    click.option(
        "--input-format", type=click.Choice(list(FORMATS)), help="The format of the files, if their names do not say."
    ),
    click.option("--once", is_flag=True, help="Take what there is now, then stop; undecided matches wait."),
    click.option("--trigger", default="1 second", show_default=True, help="The time between two micro-batches."),
    click.option("--max-files", type=click.IntRange(1), help="The most files in a micro-batch."),
    click.option("--max-records", type=click.IntRange(1), help="The most records of a topic in a micro-batch."),
    click.option("--metrics", type=click.Path(), help="A file that gets a line of JSON for each micro-batch."),
    click.option("--metrics-port", type=click.IntRange(0, 65535), help="The port where Prometheus reads /metrics."),
    click.option(
        "--master",
        default="local[*,4]",
        show_default=True,
        help="The Spark master; by default all cores here, and four attempts for each task.",
    ),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
    click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object; matches need --out."),
    click.option("--quiet", "-q", is_flag=True, help="No status line and no summary."),
)


def takes_stream_options(command: _Command) -> _Command:
    """Add these options to a command, which receives them as one argument: `how`."""

    @functools.wraps(command)
    def call(*args: Any, **arguments: Any) -> Any:
        how = StreamOptions(**{field.name: arguments.pop(field.name) for field in fields(StreamOptions)})
        return command(*args, how=how, **arguments)

    for option in reversed(_OPTIONS):
        call = option(call)
    return cast("_Command", call)
