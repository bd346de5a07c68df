"""Keys as bytes: they sort as the engine sorts the values, nulls and NaN first."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eventcube.runtime.read_columns import order_keys
from eventcube.schema import EventSchema
from eventcube.spark.limit import _encoded

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        pytest.param([1.5, NAN, -INF, None, -0.0, INF, 0.0, -2.0], pa.float64(), id="floats"),
        pytest.param([3, None, -1, 0, -(2**63)], pa.int64(), id="whole numbers"),
        pytest.param([2**63 + 1, 2**63, None, 0, 2**64 - 1], pa.uint64(), id="without a sign"),
        pytest.param(
            [Decimal("1e20"), Decimal("100000000000000000000.0001"), None, Decimal(-1), Decimal("-1.0001")],
            pa.decimal128(38, 4),
            id="decimals",
        ),
        pytest.param([1001, 1002, None, -1, 0, 999], pa.timestamp("ns"), id="nanoseconds"),
        pytest.param(["b", "a", None, "a\0", "é", ""], pa.string(), id="text"),
    ],
)
def test_bytes_sort_as_the_order_column_does(values: list[Any], type_: pa.DataType) -> None:
    column = pa.array(values, type_)
    table = pa.table({"ts": pa.array([0] * len(values), pa.int64()), "o": column})
    keys = order_keys(table, EventSchema(table.schema, "ts", order_by=("o",)))
    encoded = _encoded(column)
    order = np.lexsort(keys[::-1])
    assert [encoded[i] for i in order] == sorted(encoded)
    for i in range(len(values)):
        for j in range(len(values)):
            assert (encoded[i] == encoded[j]) == all(key[i] == key[j] for key in keys)
