from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.errors import InputError
from eventcube.runtime.compared_types import compared_types

ZONED, PLAIN = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("of_event", "of_row", "compared"),
    [
        (pa.string(), pa.string(), pa.string()),
        (pa.string(), pa.float64(), pa.float64()),
        (pa.int32(), pa.string(), pa.int64()),
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.int64(), pa.decimal128(10, 2), pa.decimal128(38, 2)),
        (pa.string(), ZONED, ZONED),
        (PLAIN, ZONED, PLAIN),
        (pa.date32(), PLAIN, PLAIN),
        (pa.string(), pa.bool_(), pa.bool_()),
        (pa.null(), pa.int64(), pa.int64()),
        (pa.int64(), pa.null(), pa.int64()),
    ],
)
def test_a_type_that_both_can_have(of_event: pa.DataType, of_row: pa.DataType, compared: pa.DataType) -> None:
    assert compared_types(pa.schema({"x": of_event, "y": pa.int8()}), pa.schema({"x": of_row})) == {"x": compared}


def test_types_that_cannot_be_compared_and_unknown_columns_are_refused() -> None:
    with pytest.raises(InputError, match=r"column 'x' is int64 in the events, and timestamp\[us\]") as refused:
        compared_types(pa.schema({"x": pa.int64()}), pa.schema({"x": PLAIN}))
    assert refused.value.code == "EC607"
    with pytest.raises(InputError, match="a column 'y'") as refused:
        compared_types(pa.schema({"x": pa.int64()}), pa.schema({"y": pa.int64()}))
    assert refused.value.code == "EC606"
