"""The settings are declared once: signatures, help and the command line show that declaration."""

from __future__ import annotations

import inspect
import pickle
import pydoc
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.cli.command import main
from eventcube.engine.flat.strategy import flat_strategies
from eventcube.engine.views.strategy import strategies
from eventcube.options import SETTINGS, Options, RowSettings, Settings, StreamSettings, options
from eventcube.settings import settings_of

QUERY = "PATTERN SEQ(a, b) WITHIN 5 us"
EVENTS = pa.table({"ts": [1, 2], "kind": ["A", "B"]})
# Settings that change nothing where the events are a table.
STREAMED = {"lateness", "idle_timeout", "keep_late", "match_id"}
# Public functions, the settings that they take, and a call of each.
TAKERS: dict[str, tuple[Callable[..., Any], type, Callable[..., Any]]] = {
    "match": (ec.match, StreamSettings, lambda **given: ec.match(EVENTS, QUERY, **given)),
    "match_all": (ec.match_all, StreamSettings, lambda **given: ec.match_all(EVENTS, {"q": QUERY}, **given)),
    "set_aside": (ec.set_aside, RowSettings, lambda **given: ec.set_aside(EVENTS, **given)),
    "explain": (ec.explain, Settings, lambda **given: ec.explain(QUERY, EVENTS, **given)),
    "check": (ec.check, Settings, lambda **given: ec.check(QUERY, EVENTS, **given)),
    "Runtime": (ec.Runtime, Settings, lambda **given: ec.Runtime(QUERY, **given)),
}


@pytest.mark.parametrize("name", TAKERS)
class TestPublicFunctions:
    def test_the_signature_has_each_setting_with_its_default(self, name: str) -> None:
        function, declared, _ = TAKERS[name]
        parameters = inspect.signature(function).parameters
        settings = settings_of(declared)
        assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        assert {n: p.default for n, p in parameters.items() if n in SETTINGS} == {
            n: setting.default for n, setting in settings.items()
        }
        assert {n for n, p in parameters.items() if n in SETTINGS and p.kind is not p.KEYWORD_ONLY} == set()

    def test_help_explains_each_setting(self, name: str) -> None:
        function, declared, _ = TAKERS[name]
        shown = " ".join(pydoc.plain(pydoc.render_doc(function)).replace("|", " ").split())
        for setting, said in settings_of(declared).items():
            assert f"{setting}: {said.meaning} Give {said.accepts}." in shown

    def test_defaults_can_be_given(self, name: str) -> None:
        _, declared, call = TAKERS[name]
        call(**{n: setting.default for n, setting in settings_of(declared).items()})

    def test_an_unknown_keyword_is_refused_with_the_nearest(self, name: str) -> None:
        function, _, call = TAKERS[name]
        refused = r"\(\) got an unexpected keyword argument "
        with pytest.raises(TypeError, match=f"^{function.__qualname__}.*{refused}'tipe'. Did you mean 'type'\\?$"):
            call(tipe="kind")
        with pytest.raises(TypeError, match=f"{refused}'zzz'$"):
            call(zzz=1)


def test_a_function_takes_only_its_own_settings() -> None:
    with pytest.raises(TypeError, match="'lateness'"):
        ec.set_aside(EVENTS, lateness="1 s")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'limit'"):
        ec.set_aside(EVENTS, limit=1)  # type: ignore[call-arg]


def test_options_have_a_field_for_each_setting() -> None:
    assert [field.name for field in fields(Options)] == list(SETTINGS)


def test_options_are_plain_data() -> None:
    made = options(type="kind", partition_by="k", strategy={"b": "passive"}, lateness="5 seconds", limit=3)
    assert pickle.loads(pickle.dumps(made)) == made
    read = pickle.loads(pickle.dumps(options(concepts={"Session": ["Login", "Logout"]}))).concepts
    assert read.closure("Session") == {"Session", "Login", "Logout"}


def test_a_runtime_shows_its_hierarchy() -> None:
    assert "concepts        <Concepts: 2 types below P>" in str(ec.Runtime(QUERY, concepts={"P": ["A"]}))


def test_every_strategy_is_named() -> None:
    words = SETTINGS["strategy"].meaning.replace(")", " ").replace(",", " ").split()
    assert strategies().keys() <= set(words)


def test_every_flat_strategy_is_named() -> None:
    words = SETTINGS["flat_strategy"].meaning.replace(",", " ").split()
    assert flat_strategies().keys() <= set(words)


def _command_options(command: str) -> dict[str, click.Option]:
    parameters = main.commands[command].params
    return {p.name: p for p in parameters if p.name in SETTINGS and isinstance(p, click.Option)}


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("run", {*STREAMED, "sharing"}),
        ("explain", {*STREAMED, "until", "limit", "sharing"}),
        ("check", {*STREAMED, "until", "limit", "strategy", "flat_strategy", "sharing", "aggregates"}),
        # --late PATH stands for keep_late.
        ("stream", {"until", "limit", "sharing", "keep_late", "match_id"}),
    ],
)
def test_the_command_line_has_the_same_settings(command: str, without: set[str]) -> None:
    found = _command_options(command)
    assert found.keys() == SETTINGS.keys() - without
    for name, option in found.items():
        assert option.opts == [f"--{name.replace('_', '-')}"]
        assert option.default == SETTINGS[name].default
        assert option.help is not None
        assert option.help.startswith(SETTINGS[name].meaning)
