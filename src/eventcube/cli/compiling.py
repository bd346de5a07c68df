"""Compiles the engine's loops at the first run, and says so: it takes far longer than most runs."""

from __future__ import annotations

import time as clock

import click

from eventcube.cli.progress import working


def compile_loops(*, quiet: bool = False) -> float:
    """Compile the loops that are not kept yet, if there are any; gives the seconds that it took."""
    # Loaded when the engine is.
    from eventcube.engine.warm import uncompiled, warm

    begun = clock.monotonic()
    if not uncompiled():
        return 0.0
    if not quiet:
        click.echo("compiling the engine's loops, once on this machine; `eventcube warm` does so ahead", err=True)
    with working("compiling", quiet=quiet):
        warm()
    return clock.monotonic() - begun
