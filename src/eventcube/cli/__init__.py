"""The command line: `eventcube run`, `check`, `explain`, `demo`, `bench`, `warm`."""

from eventcube.cli.command import main

__all__ = ["main"]
