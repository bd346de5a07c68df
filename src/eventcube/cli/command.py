"""The command `eventcube`: subcommands, error messages, exit codes and signals."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn, TextIO

import click

from eventcube import __version__
from eventcube.cli.bench import bench
from eventcube.cli.check import check
from eventcube.cli.cube import cube
from eventcube.cli.demo import demo
from eventcube.cli.explain import explain
from eventcube.cli.run import run
from eventcube.cli.stream import stream
from eventcube.cli.warm import warm
from eventcube.errors import EventCubeError, EventCubeWarning

MISTAKE, INTERRUPTED, PIPE_CLOSED = 2, 130, 141


class Commands(click.Group):
    """A group that prints errors as one message: exit code 2 for a user's mistake, 130 for Ctrl-C."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; it ends quietly when the reader of its output does, as `head`."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            return PIPE_CLOSED
        return result

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        """Run a subcommand and exit with its code."""
        settings["standalone_mode"] = False
        with _raise_on_signals(), warnings.catch_warnings():
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
                _discard_output()
                place = f"{error.filename}: " if error.filename else ""
                click.echo(f"error[EC426]: {place}{error.strerror or error}", err=True)
                code = MISTAKE
            except (click.Abort, KeyboardInterrupt, _Terminated, SystemError) as error:
                code = _signal_exit_code(error)
        sys.exit(code if isinstance(code, int) else 0)


class _Terminated(SystemExit):
    """A signal asked the process to end; printed last, as standard error may be redirected until then."""


def _signal_exit_code(error: BaseException) -> Any:
    """Print which signal ended the command, and return the exit code; other errors are raised again.

    A signal at the start of a compiled loop is the cause of a SystemError.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, click.Abort | KeyboardInterrupt | _Terminated):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        raise error
    with contextlib.suppress(OSError):
        click.echo("terminated" if isinstance(cause, _Terminated) else "interrupted", err=True)
    return cause.code if isinstance(cause, _Terminated) else INTERRUPTED


@contextlib.contextmanager
def _raise_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into exceptions, as Ctrl-C is one, so that temporary files are removed."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        # A second signal must not interrupt the clean-up.
        for other in handled:
            signal.signal(other, signal.SIG_IGN)
        raise _Terminated(128 + number)

    handled: list[int] = []
    if threading.current_thread() is threading.main_thread():
        # Ignored signals stay ignored, as under nohup.
        handled += [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _discard_output() -> None:
    """Redirect standard output to nowhere, so that exiting does not try to flush it again."""
    with contextlib.suppress(OSError, ValueError):
        output = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, output)
        os.close(null)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, EventCubeWarning):
        coded = isinstance(message, EventCubeWarning) and message.code is not None
        click.echo(f"warning{'' if coded else ': '}{message}", err=True)
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
      eventcube stream --help           ask it of events as they arrive
      eventcube cube --help             ask many related queries at once

    Exit codes: 0 done, 1 the demo did not find what was planted, 2 a mistake in what was asked (the message says
    which), 130 interrupted, 141 the reader of the output went away, 143 terminated (129 by a terminal that closed).
    """


for _subcommand in (run, stream, cube, check, explain, demo, bench, warm):
    main.add_command(_subcommand)
