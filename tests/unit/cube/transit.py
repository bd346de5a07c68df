"""The transit queries of the E-Cube paper, and how to bind queries to its events."""

from __future__ import annotations

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.language.parse import parse
from eventcube.plan.bind import bind
from eventcube.plan.logical import LogicalQuery
from eventcube.schema import EventSchema

CONCEPTS = Concepts(
    {
        "TX": ["D", "G", "A"],
        "OK": ["T"],
        "D": ["DBusStation", "DHospital", "DShelter"],
        "T": ["TBusStation", "THospital", "TShelter"],
    }
)
COLUMNS = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("type", pa.string()),
        ("k", pa.int64()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
    ]
)
SCHEMA = EventSchema(COLUMNS, "ts", "type")
QUERIES = {
    "q1": "SEQ(TX, OK)",
    "q2": "SEQ(D, T)",
    "q3": "SEQ(G, A, T)",
    "q4": "SEQ(G, !DBusStation, A, T)",
    "q5": "SEQ(DBusStation, TBusStation, THospital)",
    "q6": "SEQ(G, A, D, T)",
    "q7": "SEQ(G, !D, A, T)",
}


def bound(text: str, schema: EventSchema = SCHEMA) -> LogicalQuery:
    """The query of a pattern and its clauses."""
    return bind(parse(f"PATTERN {text}"), schema, CONCEPTS)
