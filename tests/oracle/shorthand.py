"""Streams and matches written on one line, so that an example reads as on paper: `A1 B2 C2:x=3,s='a'`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from eventcube.language.syntax import Query
from tests.oracle.brute import Event, evaluate

MILLISECOND = 1000
_EVENT = re.compile(
    r"(?P<label>(?P<type>[A-Za-z]+)(?P<ms>-?\d+)(?:/(?P<order>-?inf|nan|null|-?[\d.]+))?[a-z]?)(?::(?P<attrs>\S+))?"
)


def stream(text: str, types: Mapping[str, str] | None = None, *, key: str | None = None) -> list[Event]:
    """The events, in the order of arrival.

    Each is its type, its time in milliseconds, `/order` if any (a number, inf, -inf, nan or null), a letter to tell
    twins apart, and attributes.
    `types` spells short type names out; `key` names the attribute that events are partitioned by.
    """
    events = []
    for i, token in enumerate(text.split()):
        found = _EVENT.fullmatch(token)
        assert found, f"not an event: {token}"
        attrs: dict[str, Any] = {"label": found["label"]}
        for pair in (found["attrs"] or "").split(","):
            name, _, value = pair.partition("=")
            if name:
                attrs[name] = float("nan") if value == "nan" else ast.literal_eval(value)
        events.append(
            Event(
                id=i,
                type=(types or {}).get(found["type"], found["type"]),
                ts=int(found["ms"]) * MILLISECOND,
                order=(_order(found["order"]),) if found["order"] else None,
                key=attrs[key] if key else None,
                attrs=attrs,
            )
        )
    return events


def _order(text: str) -> int | float | None:
    if text == "null":
        return None
    return int(text) if text.isdigit() else float(text)


def matches(
    query: Query, events: list[Event], *, typed: bool = True, concepts: Mapping[str, str] | None = None
) -> list[str]:
    """The oracle's matches in its order, each as the labels of its events, `-` for an alternative not taken."""
    labels = {e.id: str(e.attrs["label"]) for e in events}
    found = evaluate(query, events, typed=typed, concepts=concepts)
    return [" ".join("-" if i is None else labels[i] for i in m.key()) for m in found]
