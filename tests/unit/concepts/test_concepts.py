"""The forest of type names: how it is written, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.concepts.concepts import Concepts
from eventcube.errors import InputError

FOREST = {"Stock": ["Computer", "Finance"], "Computer": ["INTC", "MSFT"], "Finance": ["QQQ"], "Bond": ["T10"]}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(FOREST, id="flat"),
        pytest.param({"Stock": {"Computer": ["INTC", "MSFT"], "Finance": "QQQ"}, "Bond": ["T10"]}, id="nested"),
        pytest.param({"Stock": [{"Computer": ["INTC", "MSFT"]}, {"Finance": ["QQQ"]}], "Bond": "T10"}, id="in lists"),
        pytest.param({"Bond": {"T10": None}, **{k: v for k, v in FOREST.items() if k != "Bond"}}, id="empty leaves"),
    ],
)
def test_ways_to_write_it(given: Any) -> None:
    concepts = Concepts(given)
    assert concepts.closure("Stock") == {"Stock", "Computer", "Finance", "INTC", "MSFT", "QQQ"}
    assert concepts.closure("INTC") == {"INTC"}
    assert concepts.closure("Bond") == {"Bond", "T10"}
    assert set(concepts.names) == {"Stock", "Computer", "Finance", "INTC", "MSFT", "QQQ", "Bond", "T10"}


def test_from_parents() -> None:
    parents = {"INTC": "Computer", "Computer": "Stock"}
    assert Concepts.from_parents(parents).parents == parents


def test_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "concepts.yaml"
    path.write_text("Computer: [INTC, MSFT]\nStock:\n  Computer:\n")
    assert Concepts.from_yaml(path).closure("Stock") == {"Stock", "Computer", "INTC", "MSFT"}


@pytest.mark.parametrize(
    ("content", "code"), [(None, "EC314"), ("a: [b", "EC311"), ("- a\n- b\n", "EC311"), ("", "EC311")]
)
def test_files_that_hold_no_concepts(tmp_path: Path, content: str | None, code: str) -> None:
    path = tmp_path / "concepts.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError) as caught:
        Concepts.from_yaml(path)
    assert caught.value.code == code
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        pytest.param({"A": ["C"], "B": ["C"]}, "EC312", "'C' is below both 'A' and 'B'", id="two parents"),
        pytest.param({"A": ["B"], "B": ["A"]}, "EC313", "is below itself", id="a circle"),
        pytest.param({"A": ["A"]}, "EC313", "'A' is below itself", id="its own parent"),
    ],
)
def test_what_is_no_forest(given: dict[str, list[str]], code: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Concepts(given)
    assert caught.value.code == code


def test_a_component_matches_the_concept_and_all_below() -> None:
    events = pa.table({"ts": [1, 2, 3, 4], "type": ["INTC", "Computer", "QQQ", "T10"]})
    for query, expected in (("Stock", [1, 2, 3]), ("Computer", [1, 2]), ("INTC", [1]), ("Bond", [4])):
        found = ec.match(events, f"PATTERN {query} e RETURN e.ts AS t", type="type", concepts=FOREST)
        assert found.column("t").to_pylist() == expected


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "kinds.yaml"
    path.write_bytes("Möbel: [Stuhl]".encode("latin-1"))
    with pytest.raises(InputError, match="is not text in UTF-8") as told:
        Concepts.from_yaml(path)
    assert told.value.code == "EC311"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("Stock: [INTC]\nBond: [T10]\nStock: [MSFT]\n", "lists 'Stock' twice, at lines 1 and 3"),
        ("Stock: {Computer: [INTC], Computer: [MSFT]}\n", "lists 'Computer' twice, at line 1"),
        ("? [Stock]\n: INTC\n", "line 1, column 3: a name cannot be a list or a mapping"),
    ],
    ids=["twice", "twice inside", "a list as a name"],
)
def test_yaml_that_would_lose_types_is_refused(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "concepts.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=told) as caught:
        Concepts.from_yaml(path)
    assert caught.value.code == "EC311"


def test_names_in_yaml_are_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "concepts.yaml"
    path.write_text("Europe: [NO, DE]\nCode: &codes [007, 1.0, 2026-01-01]\nEmpty:\nOther: {<<: {More: [on]}}\n")
    concepts = Concepts.from_yaml(path)
    assert concepts.children("Europe") == ("NO", "DE")
    assert concepts.children("Code") == ("007", "1.0", "2026-01-01")
    assert concepts.closure("Empty") == {"Empty"}
    assert concepts.closure("Other") == {"Other", "More", "on"}


@pytest.mark.parametrize("below", [[None], [""], ["ANY"], [{"A": [None]}]])
def test_a_type_needs_a_name_that_queries_can_tell(below: list[Any]) -> None:
    with pytest.raises(InputError) as caught:
        Concepts({"Top": below})
    assert caught.value.code == "EC311"
