"""Hierarchies from JSON files and from tables of parents, and what is refused there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from eventcube.concepts.concepts import Concepts
from eventcube.errors import InputError

ROWS = {
    "name": ["Stock", "Computer", "INTC", "MSFT", "Bond", "INTC"],
    "kind": [None, "Stock", "Computer", "Computer", None, "Computer"],
}
TREE = "Stock\n  Computer\n    INTC\n    MSFT\nBond"


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(pa.table(ROWS), id="Arrow"),
        pytest.param(pa.table(ROWS).to_batches()[0], id="a batch"),
        pytest.param(
            pa.table(ROWS).cast(pa.schema([(n, pa.dictionary(pa.int8(), pa.string())) for n in ROWS])), id="codes"
        ),
        pytest.param(pd.DataFrame(ROWS), id="pandas"),
        pytest.param(pd.DataFrame(ROWS).fillna(float("nan")), id="pandas with NaN"),
        pytest.param(pd.DataFrame(ROWS).iloc[::-1].iloc[::-1], id="pandas with an index"),
        pytest.param(pl.DataFrame(ROWS), id="polars"),
        pytest.param(pl.DataFrame(ROWS).lazy(), id="lazy polars"),
    ],
)
def test_tables(table: Any) -> None:
    concepts = Concepts.from_table(table, child="name", parent="kind")
    assert str(concepts) == TREE
    assert concepts.depth_first == ("Stock", "Computer", "INTC", "MSFT", "Bond")


def test_a_parent_needs_no_row() -> None:
    assert str(Concepts.from_table(pa.table({"child": ["INTC"], "parent": ["Stock"]}))) == "Stock\n  INTC"


def test_numbers_become_names() -> None:
    assert str(Concepts.from_table(pa.table({"child": [1, 2], "parent": [None, 1]}))) == "1\n  2"


@pytest.mark.parametrize(
    ("rows", "code", "words"),
    [
        pytest.param(
            {"child": ["A"], "up": ["B"]}, "EC302", "no column 'parent' for parent\n.*: child, up", id="no column"
        ),
        pytest.param({"child": ["A", None], "parent": [None, "A"]}, "EC311", "row 2 .* no type", id="no type"),
        pytest.param({"child": ["A", "A"], "parent": ["B", "C"]}, "EC312", "below both 'B' and 'C'", id="two parents"),
        pytest.param(
            {"child": ["A", "A"], "parent": [None, "C"]}, "EC312", "a root in one row and below 'C'", id="a root"
        ),
        pytest.param({"child": ["A", "B"], "parent": ["B", "A"]}, "EC313", "B → A → B", id="a circle"),
    ],
)
def test_tables_that_are_refused(rows: Any, code: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Concepts.from_table(pa.table(rows))
    assert caught.value.code == code


def test_what_is_no_table() -> None:
    with pytest.raises(InputError, match="Arrow table, or a pandas or polars frame") as caught:
        Concepts.from_table("kinds.csv")
    assert caught.value.code == "EC307"


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "kinds.json"
    path.write_text('{"Stock": {"Computer": ["INTC", "MSFT"]}, "Bond": []}')
    assert str(Concepts.from_json(path)) == TREE


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        pytest.param(None, "EC314", "cannot read", id="no file"),
        pytest.param('{"a": [', "EC311", "is not JSON at line 1, column 8", id="cut off"),
        pytest.param('["a"]', "EC311", "has no hierarchy", id="a list"),
        pytest.param('{"a": ["b"], "a": ["c"]}', "EC311", "lists 'a' twice", id="a name twice"),
        pytest.param('{"a": 1}', "EC311", "'a' has 1 below it, not types", id="a number"),
        pytest.param('{"a":' * 100_000, "EC311", "nested too deeply", id="too deep"),
    ],
)
def test_json_that_is_refused(tmp_path: Path, content: str | None, code: str, words: str) -> None:
    path = tmp_path / "kinds.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        Concepts.from_json(path)
    assert caught.value.code == code


def test_the_message_shows_the_circle_alone() -> None:
    with pytest.raises(InputError, match="'B' is below itself: B → D → C → B"):
        Concepts.from_parents({"A": "B", "B": "D", "D": "C", "C": "B"})


def test_a_long_chain_is_no_circle() -> None:
    chain = Concepts.from_parents({f"t{i}": f"t{i + 1}" for i in range(20_000)})
    assert len(chain.ancestors("t0")) == 20_000


def test_neighbours() -> None:
    concepts = Concepts({"Stock": {"Computer": ["INTC", "MSFT"], "Bank": []}})
    assert concepts.children("Stock") == ("Computer", "Bank")
    assert concepts.ancestors("MSFT") == ("Computer", "Stock")
    assert concepts.descendants("Stock") == ("Computer", "INTC", "MSFT", "Bank")
    assert concepts.descendants("Other") == concepts.ancestors("Other") == ()


def test_unknown_names_are_told_with_the_nearest() -> None:
    concepts = Concepts({"Computer": ["INTC", "MSFT"]})
    concepts.check_known("INTC")
    with pytest.raises(InputError, match="no type 'Compter'\nhint: did you mean 'Computer'") as caught:
        concepts.check_known("Compter")
    assert caught.value.code == "EC318"
