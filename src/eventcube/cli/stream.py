"""`eventcube stream`: runs a query over files as they arrive, or over a topic of Kafka."""

from __future__ import annotations

from typing import Any

import click

from eventcube.cli.query import read_asked
from eventcube.cli.settings import takes_given_settings
from eventcube.cli.stream_options import StreamOptions, takes_stream_options
from eventcube.options import MEANING_SETTINGS


@click.command(short_help="Ask a query of events as they arrive.")
@click.argument("query")
@click.argument("source")
@takes_given_settings(*MEANING_SETTINGS, "lateness", "idle_timeout", "strategy", "flat_strategy", "aggregates")
@takes_stream_options
def stream(query: str, source: str, given: dict[str, Any], how: StreamOptions) -> None:
    """Find the matches of QUERY in events that arrive in SOURCE, each once, as soon as they are certain.

    \b
    QUERY: the query itself, a text file with one, or a workload file (see `eventcube cube`) with several.
    SOURCE: a folder or a glob of Parquet, CSV (with a header) or JSON lines, to which files are added; or a topic of
    Kafka with JSON values, kafka://host:port/topic.
    Examples:
      eventcube stream violations.neel incoming --type kind --lateness '5 minutes'
      eventcube stream violations.neel incoming --type kind --lateness '5 minutes' \\
          --out matches --late late --checkpoint checkpoint --once
      eventcube stream violations.neel kafka://127.0.0.1:9092/readings --columns 'ts timestamp, kind string' \\
          --type kind --out kafka://127.0.0.1:9092/violations --checkpoint checkpoint

    Put files there whole: write them under another name, such as one that begins with a dot, and rename them.
    --out gets a folder batch=N for each micro-batch that found something. Ctrl-C and SIGTERM stop the stream; the next
    start with the same --checkpoint goes on where it was, with the same query. Without --out, matches are shown as
    they come. Metrics: --metrics and --metrics-port.
    """
    # Imports Spark, which takes a while.
    from eventcube.cli.run_stream import run_stream

    asked, options = read_asked(query, given)
    run_stream(asked, source, options, how)
