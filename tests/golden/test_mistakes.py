"""What a new user is told of the mistakes that everyone makes at first, word for word."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.golden.titled import Titled, read_titled

from eventcube.errors import QueryError
from eventcube.language.parse import parse
from eventcube.plan.bind import bind
from eventcube.schema import EventSchema

CASES = read_titled("mistakes.txt")
COLUMNS = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("kind", pa.string()),
        ("user", pa.string()),
        ("amount", pa.float64()),
        ("country", pa.string()),
        ("device", pa.int64()),
        ("ok", pa.bool_()),
    ]
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_typical_mistake_is_explained(case: Titled) -> None:
    with pytest.raises(QueryError) as caught:
        bind(parse(case.given), EventSchema(COLUMNS, "ts", "kind"))
    assert str(caught.value) == case.expected


def test_there_are_forty_of_them() -> None:
    assert len({case.given for case in CASES}) >= 40
