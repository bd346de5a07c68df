"""A runtime as text, and as HTML for a notebook: queries, settings, counters, retained events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from eventcube import markup
from eventcube.concepts.concepts import Concepts
from eventcube.language.literals import write_duration
from eventcube.options import AUTO, Options, StrategyChoice, options

if TYPE_CHECKING:
    from eventcube.runtime.runtime import Runtime
    from eventcube.runtime.workload import Workload


def runtime_text(runtime: Runtime) -> str:
    """The runtime as a few lines of text."""
    lines = [repr(runtime)]
    for name, query in runtime.queries.items():
        lines += [f"query {name}", *(f"  {line}" for line in str(query).splitlines())]
    for title, rows in _sections(runtime):
        lines += [title, *(f"  {name:<16}{value}" for name, value in rows)] if rows else []
    return "\n".join(lines)


def runtime_html(runtime: Runtime) -> str:
    """The runtime as HTML for a notebook."""
    pieces = []
    for name, query in runtime.queries.items():
        pieces += [markup.note(f"query {name}"), markup.query(str(query))]
    for title, rows in _sections(runtime):
        pieces += [markup.heading(title), markup.table(rows)] if rows else []
    return markup.page(*pieces)


def _sections(runtime: Runtime) -> list[tuple[str, list[tuple[str, str]]]]:
    counted = [(name, f"{count:,}") for name, count in runtime.counters.items() if count and name != "rows"]
    retained = [(name, _events(count)) for name, count in runtime.kept_events.items()]
    held = [("held back", _events(runtime.held))] if runtime.held else []
    state = "finished" if runtime.finished else "so far"
    return [("settings", _settings(runtime.options)), (f"counted {state}", counted), ("keeps", [*retained, *held])]


def _settings(chosen: Options) -> list[tuple[str, str]]:
    """The settings that differ from the default, and the time column."""
    defaults = options()
    rows = []
    for field in fields(chosen):
        value = getattr(chosen, field.name)
        if field.name == "time" or value != getattr(defaults, field.name):
            rows.append((field.name, _setting(field.name, value)))
    return rows


def _setting(name: str, value: object) -> str:
    match name, value:
        case "lateness", int():
            return write_duration(value)
        case _, StrategyChoice(default, parts):
            by_part = [f"{part}={strategy}" for part, strategy in parts.items()]
            return ", ".join([*([default] if default != AUTO or not by_part else []), *by_part])
        case _, Concepts():
            return repr(value)
        case _, tuple():
            return ", ".join(value)
        case _:
            return str(value)


def _events(count: int) -> str:
    return f"{count:,} event{'s' * (count != 1)}"


def report_text(runtime: Runtime) -> str:
    """The counters, and what was chosen by estimated costs."""
    counted = {name: value for name, value in runtime.counters.items() if value and name != "rows"}
    lines = ["measured", *(f"  {name:<16}{value:>18,}" for name, value in counted.items())]
    choices = [f"  {line}" for line in runtime.choices(measured=True)]
    return "\n".join([*lines, *(["choices, by estimated cost", *choices] if choices else [])])


def choices_of(workload: Workload, *, single: bool, measured: bool) -> Iterator[str]:
    """What was chosen and expected, in words; `single`: there is one query, which need not be named."""
    for name, query in workload.engine.queries.items():
        yield from (line if single else f"{name}: {line}" for line in query.choices(measured=measured))
    for group in workload.engine.groups:
        yield from group.counts.choices()
        told = group.queries.items() if measured and not single else ()
        yield from group.reuse.summary({name: f"; measured {query.counters.work}" for name, query in told})
        if told and (group.counters.candidates or group.counters.made):
            yield f"steps that several queries share: measured {group.counters.work}"
        yield from (f"steps that several queries share: {line}" for line in group.shared_choices())
        yield from group.sharing.summary()
