"""How queries, hierarchies, plans and runtimes show themselves."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube import markup

QUERY = "PATTERN SEQ(A a, !SEQ(B b, C c), `<D>` d) WHERE a.k = 'it''s WHERE' AND d.k != '<i>' WITHIN 20 us"
COLUMNS = pa.schema({"ts": pa.int64(), "kind": pa.string(), "k": pa.string()})
CONCEPTS = ec.Concepts({"Stock": {"Computer": ["INTC", "MSFT"], "Oil": ["XOM"]}, "<Phone>": ["Nokia"]})


def runtime() -> ec.Runtime:
    made = ec.Runtime({"far": QUERY, "near": "PATTERN A x WITHIN 1 us"}, type="kind", lateness="3 us", advise=False)
    rows = [{"ts": t, "kind": kind, "k": "it's WHERE"} for t, kind in enumerate(["A", "B", "<D>", "A", "C", "<D>"] * 4)]
    list(made.push(pa.Table.from_pylist(rows, COLUMNS)))
    return made


def counts() -> ec.Counts:
    counted = ec.Counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ec.match(
            pa.table({"ts": ["<i>", "<i>"], "kind": ["A", "A"], "k": ["x", "y"]}), QUERY, type="kind", counters=counted
        )
    return counted


SHOWN = {
    "query": lambda: ec.parse(QUERY),
    "concepts": lambda: CONCEPTS,
    "runtime": runtime,
    "plan": lambda: ec.explain(QUERY, COLUMNS, type="kind"),
    "counts": counts,
    "check": lambda: ec.check(QUERY, COLUMNS, type="kind"),
}


class _Page(HTMLParser):
    """Keeps the tags, checks that they close, and gathers the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", SHOWN)
def test_html_is_whole_escaped_and_needs_nothing_from_elsewhere(name: str) -> None:
    thing: Any = SHOWN[name]()
    html = thing._repr_html_()
    page = _Page(html)
    assert page.open == []
    assert page.tags <= {"div", "pre", "b", "span", "details", "summary", "table", "tr", "td"}
    assert page.attributes <= {"style", "open"}
    assert not re.search(r"http|url\(|color:#|<i>|<D>", html), "no address, no colour of its own, nothing unescaped"
    assert "<D>" in page.text or "<Phone>" in page.text


def test_a_query() -> None:
    query = ec.parse(QUERY)
    assert str(query).splitlines()[0] == "PATTERN SEQ(A a, !SEQ(B b, C c), `<D>` d)"
    assert "\n" not in repr(query)
    assert eval(repr(query), {"parse": ec.parse}) == query
    assert "<b>WHERE</b>" in query._repr_html_()
    assert "it''s WHERE'" in query._repr_html_(), "what is quoted is not marked"


def test_a_hierarchy() -> None:
    assert str(CONCEPTS) == "Stock\n  Computer\n    INTC\n    MSFT\n  Oil\n    XOM\n<Phone>\n  Nokia"
    assert repr(CONCEPTS) == "<Concepts: 8 types below Stock, <Phone>>"
    assert repr(ec.Concepts({})) == "<Concepts: no types>"
    assert CONCEPTS._repr_html_().count("<details") == 4


def test_a_large_hierarchy_is_cut() -> None:
    large = ec.Concepts({"All": [f"t{i}" for i in range(10_000)]})
    assert str(large).splitlines()[-1] == "… and 9,501 more"
    assert len(large._repr_html_()) < 50_000


def test_a_deep_hierarchy() -> None:
    deep = ec.Concepts({f"t{i}": [f"t{i + 1}"] for i in range(300)})
    assert str(deep).splitlines()[300].strip() == "t300"
    assert deep._repr_html_()


def test_a_runtime() -> None:
    made = runtime()
    assert repr(made) == f"<Runtime: far, near; 24 events, {made.counters['matches']} matches>"
    text = str(made)
    for words in ("query far", "  WITHIN 20 microseconds", "type            kind", "lateness        3 microseconds"):
        assert words in text
    assert re.search(r"keeps\n  far +\d+ events\n  near +\d+ events?\n  held back +\d+ events", text)
    list(made.finish())
    assert "counted finished" in str(made)
    assert str(ec.Runtime("PATTERN A a")).startswith("<Runtime: q1; 0 events, 0 matches>")


def test_a_plan_folds() -> None:
    plan = ec.explain(QUERY, COLUMNS, type="kind")
    assert "<summary" in plan._repr_html_()
    assert repr(plan) == str(plan)


def test_lines_become_a_tree() -> None:
    branch = markup.Branch
    assert markup.branches(["a", "    b", "  c", "d"]) == [branch("a", [branch("b"), branch("c")]), branch("d")]


def test_only_public_names_are_listed() -> None:
    code = (
        "import eventcube as ec\nimport eventcube.match, eventcube.cli, eventcube.check\n"
        "print(sorted(n for n in dir(ec) if not n.startswith('__')) == sorted(ec.__all__))\n"
        "print(callable(ec.check), hasattr(ec, '__version__'), '__version__' in dir(ec))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True"] * 4
