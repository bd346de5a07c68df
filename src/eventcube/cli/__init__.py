"""The command line: `eventcube run`, `cube`, `check`, `explain`, `demo`, `bench`, `warm`."""

import sys

try:
    from eventcube.cli.command import main
except KeyboardInterrupt:
    # To load all that the command needs takes seconds.
    print("interrupted", file=sys.stderr)
    sys.exit(130)

__all__ = ["main"]
