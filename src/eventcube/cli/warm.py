"""`eventcube warm`: compile the engine's loops before they are needed."""

from __future__ import annotations

import time as clock

import click

from eventcube.cli.progress import working


@click.command(short_help="Compile the engine's loops, once on a machine.")
def warm() -> None:
    """Compile the engine's loops now, so that no run has to: once after installing, as the same user.

    They are kept beside the package, or where nothing can be written there, in your cache folder or the system's
    folder for temporary files. The environment variable NUMBA_CACHE_DIR names another folder.

    \b
    Example:
      eventcube warm
    """
    begun = clock.monotonic()
    with working("compiling the engine's loops"):
        from eventcube.engine.warm import warm as compile_loops

        compiled, folder = compile_loops()
    result = f"compiled {compiled} loops" if compiled else "all loops are compiled already"
    click.echo(f"{result} ({clock.monotonic() - begun:.1f} s)\nkept in {folder}")
