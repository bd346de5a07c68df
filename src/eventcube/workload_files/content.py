"""Workload files: a hierarchy of types, queries and settings in YAML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from eventcube.concepts.concepts import Concepts
from eventcube.concepts.yaml_nodes import node_to_text, repeated_names, text_to_node
from eventcube.errors import Diagnostic, EventCubeError, InputError, QueryError, Span, did_you_mean
from eventcube.language.parse import parse
from eventcube.language.syntax import CountWindow, Query, TimeWindow
from eventcube.options import MEANING_SETTINGS, options
from eventcube.workload_files.setting_text import read_setting

FIELDS = ("concepts", "queries", "settings", "within")
# `concepts` is a field.
SETTINGS = (*(name for name in MEANING_SETTINGS if name != "concepts"), "limit", "sharing", "strategy", "flat_strategy")
_ONE_QUERY = "write, say, q1: PATTERN SEQ(A a, B b) WITHIN 1 hour"
_EXAMPLE = _ONE_QUERY + ", below queries:"
Window = TimeWindow | CountWindow


class WorkloadFileError(QueryError):
    """A mistake in a workload file (EC47x)."""


class WorkloadFile:
    """The content of a workload file: `concepts`, the texts of `queries` by name, `settings`, and the window.

    `concepts` is None if the file has none, and so is `within`. `places` has where in the file each query begins. What
    is wrong is left out, and is among the `mistakes`.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._text = _read_text(self.path)
        self._problems: list[Diagnostic] = []
        self.concepts: Concepts | None = None
        self.queries: dict[str, str] = {}
        self.places: dict[str, int] = {}
        self.settings: dict[str, Any] = {}
        self.within: Window | None = None
        try:
            self._read(text_to_node(self._text))
        except yaml.YAMLError as error:
            self._problems = [_not_yaml(error, self.path)]
        except RecursionError:
            self._problems = [Diagnostic("EC470", f"{self.path} is nested too deeply")]

    def mistakes(self) -> Iterator[tuple[int, WorkloadFileError]]:
        """Each mistake with its place in the file; those of the whole file come last."""
        for problem in dict.fromkeys(self._problems):
            place = len(self._text) if problem.span is None else problem.span.start
            yield place, WorkloadFileError([problem], self._text, self.path.name)

    def _report(self, code: str, message: str, node: yaml.Node | None = None, hint: str | None = None) -> None:
        self._problems.append(Diagnostic(code, message, None if node is None else _span(node), hint))

    def _read(self, root: yaml.Node | None) -> None:
        if root is None or not isinstance(root, yaml.MappingNode):
            self._report("EC472", f"{self.path} has no queries", hint=_EXAMPLE)
            return
        found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in root.value:
            if key.value in FIELDS:
                found.setdefault(key.value, (key, value))
            else:
                self._report("EC470", f"unknown field {_shown(key)}", key, _field_hint(str(key.value)))
        self._refuse_repeated(root, found.get("queries", (root, root))[1])
        readers = {
            "concepts": self._read_concepts,
            "queries": self._read_queries,
            "settings": self._read_settings,
            "within": self._read_window,
        }
        for name, (key, value) in found.items():
            readers[name](key, value)
        if "queries" not in found:
            self._report("EC472", f"{self.path} has no queries", hint=_EXAMPLE)

    def _refuse_repeated(self, root: yaml.Node, queries: yaml.Node) -> None:
        names = {id(key) for key, _ in queries.value} if isinstance(queries, yaml.MappingNode) else set()
        for first, again in repeated_names(root):
            is_query = id(again) in names and queries is not root
            message = f"two queries are called {again.value!r}" if is_query else f"{again.value!r} is there twice"
            hint = f"the first is at line {first.start_mark.line + 1}; " + (
                "give one of them another name" if is_query else "take one of them out, or join them"
            )
            self._report("EC471", message, again, hint)

    def _read_concepts(self, _: yaml.Node, value: yaml.Node) -> None:
        content = node_to_text(value)
        try:
            if isinstance(content, str):
                self.concepts = Concepts.from_file(self.path.parent / content)
            elif isinstance(content, dict):
                self.concepts = Concepts(content)
            elif content is not None:
                hint = "write Computer: [INTC, MSFT] below it, or name a YAML or JSON file"
                self._report("EC470", "concepts is no hierarchy of types", value, hint)
        except InputError as error:
            self._report(error.code, error.message, value, error.hint)

    def _read_queries(self, key: yaml.Node, value: yaml.Node) -> None:
        if _is_empty(value):
            self._report("EC472", f"{self.path} has no queries", key, _ONE_QUERY)
        elif not isinstance(value, yaml.MappingNode):
            self._report("EC470", "queries has no names", value, _ONE_QUERY)
        else:
            for name, query in value.value:
                if not isinstance(name, yaml.ScalarNode):
                    self._report("EC470", "the name of a query is a text", name, _ONE_QUERY)
                elif not isinstance(query, yaml.ScalarNode) or _is_empty(query):
                    self._report("EC470", f"query {name.value!r} is not a text", name, _ONE_QUERY)
                else:
                    self.queries.setdefault(name.value, query.value)
                    self.places.setdefault(name.value, name.start_mark.index)

    def _read_settings(self, _: yaml.Node, value: yaml.Node) -> None:
        if _is_empty(value):
            return
        if not isinstance(value, yaml.MappingNode):
            self._report("EC470", "settings has no names", value, "write, say, type: kind")
            return
        for key, node in value.value:
            if key.value not in SETTINGS:
                self._report("EC470", f"unknown setting {_shown(key)}", key, _setting_hint(str(key.value)))
            elif not _is_empty(node):
                self._read_setting(key.value, node)

    def _read_setting(self, name: str, node: yaml.Node) -> None:
        content = node_to_text(node)
        try:
            value = read_setting(name, content) if isinstance(content, str) else content
            if name == "limit" and isinstance(value, str) and value.isdecimal():
                value = int(value)
            settings: dict[str, Any] = {name: value}
            options(**settings)
        except EventCubeError as error:
            self._report(error.code, error.message, node, error.hint)
        else:
            self.settings[name] = value

    def _read_window(self, _: yaml.Node, value: yaml.Node) -> None:
        written = node_to_text(value)
        try:
            query = parse(f"PATTERN A a WITHIN {written}")
        except QueryError as error:
            self._report("EC470", f"within is no window: {error.message}", value, error.diagnostics[0].hint)
            return
        self.within = query.within
        if query != Query(query.pattern, within=query.within):
            self._report("EC470", "within is a window and nothing else", value, "write, say, within: 1 hour")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"there is no workload file {path}",
            code="EC320",
            hint="give the path of a YAML file with queries; `eventcube run` asks a query that you write in its place",
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="EC321") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8", code="EC321", hint="is it really a workload file?") from None


def _not_yaml(error: yaml.YAMLError, path: Path) -> Diagnostic:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it is not text"
    hint = (
        "put a text with ': ' or ' #' into quotes, or below its name, after |" if "mapping values" in problem else None
    )
    return Diagnostic("EC470", f"{path} is not YAML: {problem}", mark and Span(mark.index, mark.index + 1), hint)


def _field_hint(name: str) -> str | None:
    if name in SETTINGS:
        return f"{name} is a setting: write it below settings"
    return did_you_mean(name, FIELDS, "a workload file")


def _setting_hint(name: str) -> str | None:
    return f"{name} stands beside settings" if name in FIELDS else did_you_mean(name, SETTINGS)


def _is_empty(node: yaml.Node) -> bool:
    return node_to_text(node) in (None, "", {}, [])


def _shown(key: yaml.Node) -> str:
    return repr(key.value) if isinstance(key, yaml.ScalarNode) else "that is no text"


def _span(node: yaml.Node) -> Span:
    """The place of a node; of one with several lines, where it begins."""
    start, end = node.start_mark, node.end_mark
    return Span(start.index, end.index if start.line == end.line else start.index + 1)
