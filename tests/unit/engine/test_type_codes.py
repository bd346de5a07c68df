"""Type names as codes, whatever they are and however Arrow lays them out."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from eventcube.engine.type_codes import TypeCodes

LAYOUTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def names_found(names: list[str], values: list[str], layout: pa.DataType) -> list[str | None]:
    known = TypeCodes(names)
    half = len(values) // 2
    column = pa.chunked_array([pa.array(v, pa.string()).cast(layout) for v in (values[:half], values[half:])], layout)
    return [None if code < 0 else known.names[code] for code in known.codes(column).tolist()]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    ("names", "values"),
    [
        pytest.param(["A", "B"], ["A", "B", "C", "AB", "", "a"], id="short"),
        pytest.param([""], ["", "A", ""], id="the empty name"),
        pytest.param(["A"], ["", "", ""], id="nothing but empty text"),
        pytest.param(["Ä", "日本", "é"], ["Ä", "A", "日本", "日", "e\u0301", "é"], id="beyond ASCII"),
        pytest.param(["ABCDEFGH", "ABCDEFG"], ["ABCDEFGH", "ABCDEFG", "ABCDEFGHI", "ABCDEF"], id="eight bytes"),
        pytest.param(
            ["ABCDEFGHIJKLMNOP"], ["ABCDEFGHIJKLMNOP", "ABCDEFGHxIJKLMNOP", "ABCDEFGHJKLMNOPX"], id="sixteen bytes"
        ),
        pytest.param(
            ["ABCDEFGH1IJKLMNOP", "ABCDEFGH2IJKLMNOP"],
            ["ABCDEFGH1IJKLMNOP", "ABCDEFGH2IJKLMNOP", "ABCDEFGH3IJKLMNOP", "ABCDEFGHIJKLMNOP"],
            id="long names that share their first and last eight bytes",
        ),
        pytest.param(
            ["ABCDEFGHIJKL"], ["ABCDEFGHIJKL", "ABCDEFGHEFGHIJKL", "ABCDEFGHxIJKL"], id="ends that overlap in the name"
        ),
        pytest.param(["A\0", "A"], ["A", "A\0", "A\0\0"], id="names that differ in a zero byte"),
        pytest.param([], ["A", ""], id="no names"),
        pytest.param(["A"], [], id="no values"),
    ],
)
def test_a_value_is_the_name_it_equals(names: list[str], values: list[str], layout: pa.DataType) -> None:
    assert names_found(names, values, layout) == [v if v in names else None for v in values]


@pytest.mark.parametrize("seed", range(30))
def test_random_names(seed: int) -> None:
    rng = Random(seed)

    def name() -> str:
        return "".join(rng.choice("abé\0") for _ in range(rng.choice([0, 1, 2, 7, 8, 9, 15, 16, 17, 30])))

    names = sorted({name() for _ in range(rng.choice([1, 5, 100]))})
    values = [rng.choice(names) if rng.random() < 0.5 else name() for _ in range(300)]
    for layout in LAYOUTS:
        assert names_found(names, values, layout) == [v if v in names else None for v in values]


def test_slices_are_read_where_they_begin() -> None:
    column = pa.chunked_array([pa.array(["B", "A", "long enough to fill", "A", "C", "B"])])
    known = TypeCodes(["A", "B"])
    for start in range(6):
        for stop in range(start, 7):
            assert known.codes(column.slice(start, stop - start)).tolist() == [
                {"A": 0, "B": 1}.get(v, -1) for v in column.to_pylist()[start:stop]
            ]


def test_unused_and_repeated_entries_of_a_dictionary_do_not_matter() -> None:
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([2, 0, 2]), pa.array(["A", "x", "B"]))])
    assert TypeCodes(["A", "B"]).codes(column).tolist() == [1, 0, 1]
