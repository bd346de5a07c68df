"""Compiles the engine's loops at the first run, with a message, since it takes longer than most runs."""

from __future__ import annotations

import time as clock

import click

from eventcube.cli.progress import working


def compile_loops(*, quiet: bool = False) -> float:
    """Compile the loops that are not cached yet; returns the seconds it took."""
    # Imports the engine, which takes a while.
    from eventcube.engine.warm import uncompiled, warm

    begun = clock.monotonic()
    if not uncompiled():
        return 0.0
    if not quiet:
        click.echo("compiling the engine's loops, once on this machine; `eventcube warm` does so ahead", err=True)
    with working("compiling", quiet=quiet):
        warm()
    return clock.monotonic() - begun
