"""Settings written as one text, on the command line and in workload files."""

from __future__ import annotations

from typing import Any

from eventcube.errors import OptionError


def read_setting(name: str, value: Any) -> Any:
    """A setting as `ec.match` takes it, from the text on the command line or in a workload file."""
    match name:
        case "partition_by" | "order_by":
            return [column.strip() for column in (value or "").split(",") if column.strip()]
        case "concepts":
            return value or None
        case "strategy":
            return _strategies(value)
        case _:
            return value


def _strategies(value: str) -> str | dict[str, str]:
    """`balanced` for all nested parts, or `s=balanced,d=passive` for those with these variables."""
    if "=" not in value:
        return value
    chosen: dict[str, str] = {}
    for item in value.split(","):
        name, _, strategy = (text.strip() for text in item.partition("="))
        if name in chosen:
            raise OptionError(f"two strategies for {name!r}", code="EC404", hint="name each part once")
        chosen[name] = strategy
    return chosen
