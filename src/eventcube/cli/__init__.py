"""The command line: `eventcube run`, `cube`, `check`, `explain`, `demo`, `bench`, `warm`."""

from eventcube.cli.command import main

__all__ = ["main"]
