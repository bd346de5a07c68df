"""What RETURN, GROUPBY and AGG make of the matches."""

from decimal import Decimal
from typing import Any

import pytest

from eventcube.language.parse import parse
from tests.oracle.event import Event
from tests.oracle.results import evaluate_rows
from tests.oracle.shorthand import stream


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        pytest.param("SEQ(A, B)", "A1 B2", [(0, 1)], id="without RETURN: all positive variables"),
        pytest.param("SEQ(A, B) RETURN B", "A1 B2", [(1,)], id="RETURN picks events"),
        pytest.param(
            "SEQ(A, B) RETURN A.x AS x, B.ts - A.ts AS d", "A1:x=7 B3", [(7, 2000)], id="RETURN computes values"
        ),
        pytest.param("SEQ(A, B) RETURN A.x", "A1:x=7 B2 B3", [(7,), (7,)], id="RETURN keeps duplicates"),
        pytest.param("OR(A, B) RETURN A, A.x", "B1", [(None, None)], id="an alternative not taken is null"),
        pytest.param("SEQ(A, B) AGG COUNT", "A1 B2 B3", [(2,)], id="COUNT counts matches"),
        pytest.param("SEQ(A, B) AGG COUNT(*)", "A1", [(0,)], id="without GROUPBY there is always one row"),
        pytest.param("SEQ(A, B) GROUPBY A.k AGG COUNT(*)", "A1", [], id="without matches there are no groups"),
        pytest.param(
            "A AGG COUNT(A.x), SUM(A.x), AVG(A.x), MIN(A.x), MAX(A.x)",
            "A1:x=1 A2:x=4 A3:x=None",
            [(2, 5, 2.5, 1, 4)],
            id="aggregates pass over nulls",
        ),
        pytest.param("A AGG COUNT(A.x), SUM(A.x)", "A1", [(0, None)], id="the sum of nothing is null"),
        pytest.param(
            "SEQ(A, B) GROUPBY A.k AGG COUNT(*), MAX(B.x)",
            "A1:k=1 A2:k=2 B3:x=5 A4:k=1 B5:x=3",
            [(1, 3, 5), (2, 2, 5)],
            id="one row for each group",
        ),
        pytest.param(
            "A GROUPBY A.k AGG COUNT(*)", "A1:k=None A2:k=1 A3", [(None, 2), (1, 1)], id="null is a group of its own"
        ),
        pytest.param(
            "Computer c GROUPBY c AGG COUNT(*)",
            "Laptop1 Server2 Laptop3",
            [("Laptop", 2), ("Server", 1)],
            id="GROUPBY of a variable goes by the event's own type",
        ),
    ],
)
def test_rows(query: str, events: str, expected: list[tuple[Any, ...]]) -> None:
    concepts = {"Laptop": "Computer", "Server": "Computer"}
    assert evaluate_rows(parse(f"PATTERN {query}"), stream(events), concepts=concepts) == expected


@pytest.mark.parametrize(("condition", "rows"), [("SUM(A.w) = SUM(A.d)", [(1,)]), ("MAX(A.w) = MAX(A.d)", [])])
def test_sums_of_decimals_are_floats_and_their_maximum_is_exact(condition: str, rows: list[tuple[int]]) -> None:
    event = Event(0, "A", 1000, attrs={"w": 2**62, "d": Decimal(2**62 + 1)})
    assert evaluate_rows(parse(f"PATTERN A HAVING {condition} AGG COUNT(*)"), [event]) == rows
