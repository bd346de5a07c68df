"""The command `eventcube`, and what every subcommand shares: one clear message for a mistake, and exit codes."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from typing import Any, NoReturn, TextIO

import click

from eventcube import __version__
from eventcube.cli.bench import bench
from eventcube.cli.check import check
from eventcube.cli.demo import demo
from eventcube.cli.explain import explain
from eventcube.cli.run import run
from eventcube.errors import EventCubeError, EventCubeWarning

MISTAKE, INTERRUPTED, PIPE_CLOSED = 2, 130, 141


class Commands(click.Group):
    """A group whose errors are told in one message: exit code 2 for a user's mistake, 130 for Ctrl-C."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; a reader that went away, as `head` does, ends it quietly."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _forget_output()
            return PIPE_CLOSED
        return result

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        """Run a subcommand and leave with its exit code."""
        settings["standalone_mode"] = False
        with warnings.catch_warnings():
            warnings.simplefilter("always", EventCubeWarning)
            warnings.showwarning = _show_warning
            try:
                code = super().main(*args, **settings)
            except EventCubeError as error:
                click.echo(str(error), err=True)
                code = MISTAKE
            except click.ClickException as error:
                error.show()
                code = MISTAKE
            except OSError as error:
                _forget_output()
                place = f"{error.filename}: " if error.filename else ""
                click.echo(f"error[EC426]: {place}{error.strerror or error}", err=True)
                code = MISTAKE
            except (click.Abort, KeyboardInterrupt):
                click.echo("interrupted", err=True)
                code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


def _forget_output() -> None:
    """Throw away what standard output could not take, so that leaving does not try once more."""
    with contextlib.suppress(OSError, ValueError):
        output = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output)
        os.close(nowhere)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, EventCubeWarning):
        click.echo(f"warning: {message}", err=True)
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), end="", file=file or sys.stderr)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="eventcube")
def main() -> None:
    """Find patterns in tables of events, on Spark.

    \b
    Start with:
      eventcube demo                    a hospital day with planted violations, found again
      eventcube run --help              ask a query of your own events

    Exit codes: 0 done, 1 the demo did not find what was planted, 2 a mistake in what was asked (the message says
    which), 130 interrupted, 141 the reader of the output went away.
    """


for _subcommand in (run, check, explain, demo, bench):
    main.add_command(_subcommand)
