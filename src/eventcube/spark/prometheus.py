"""Metrics of streams as Prometheus reads them: text, served over HTTP.

Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eventcube.errors import OptionError

_PATH = "/metrics"
_CONTENT = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its samples: `kind` is counter or gauge."""

    name: str
    kind: str
    help: str
    samples: Iterable[tuple[Labels, float]]


def metrics_text(metrics: Iterable[Metric]) -> str:
    """Metrics in Prometheus's text format; one without a sample is left out."""
    return "".join(line + "\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    samples = [*metric.samples]
    if not samples:
        return
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in samples:
        pairs = ",".join(f'{name}="{_label(text)}"' for name, text in labels.items())
        yield f"{metric.name}{{{pairs}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _label(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


class MetricsServer:
    """Serves what `text` gives at /metrics, in a thread that ends with the process."""

    def __init__(self, text: Callable[[], str], host: str, port: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            """Answers a scrape."""

            def do_GET(self) -> None:
                known = self.path.partition("?")[0] == _PATH
                body = text().encode() if known else f"metrics are at {_PATH}\n".encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", _CONTENT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is logged of a scrape."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OptionError(
                f"cannot serve metrics on {host}, port {port}: {reason}",
                code="EC600",
                hint="choose a port that is free; 0 takes any, and `port` says which",
            ) from None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="eventcube-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
