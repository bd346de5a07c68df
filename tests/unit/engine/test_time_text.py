"""Text that is a time, however much of a column is not."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventcube.engine.time_text import has_zones, parse_times

NOON = 1_706_702_400_000_000

days = st.one_of(
    st.dates().map(str),
    st.builds("{:04}-{:02}-{:02}".format, st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32)),
    st.builds(
        "{}-02-{}".format, st.sampled_from(["1900", "2000", "2023", "2024", "0000", "0100"]), st.integers(28, 30)
    ),
)
parts = st.integers(0, 61).map("{:02}".format)
clocks = st.one_of(
    st.just(""),
    st.builds("{}{:02}".format, st.sampled_from(" Tt"), st.integers(0, 25)),
    st.builds("{}{:02}:{}".format, st.sampled_from(" T"), st.integers(0, 25), parts),
    st.builds("{}{:02}:{}:{}".format, st.sampled_from(" T"), st.integers(0, 25), parts, parts),
    st.builds("T12:00:00.{}".format, st.text("0123456789", max_size=8)),
)
zones = st.sampled_from(
    ["", "", "", "Z", "z", "+02", "-0330", "+05:30", "+24:00", "+23:59", "-00:60", "+2", "+02:3", "+02:00:00", " Z"]
)
written = st.builds("{}{}{}".format, days, clocks, zones)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(written)
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(st.sampled_from(["", "x", " ", "\n", "0", "-", ":", "٣", "\x00"])) + text[at + 1 :]


def one_by_one(text: str | None) -> int | None:
    """What Arrow makes of a text by itself, without a zone or else with one."""
    if text is None:
        return None
    trimmed = pa.compute.utf8_trim_whitespace(pa.array([text]))
    for type_ in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return int(trimmed.cast(type_).cast(pa.int64())[0].as_py())
        except pa.ArrowInvalid:
            continue
    return None


@settings(max_examples=500)
@given(st.lists(st.none() | written | damaged() | st.text(max_size=12), min_size=1, max_size=20))
@example(["2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-04-31", "2024-01-31 12:00Z"])
@example([" 2024-01-31 12:00:00+02:00\xa0", "2024-01-31 12:00:00\n", "2024-01-31 12:00:00.1234567"])
def test_a_column_is_read_as_its_texts_are_one_by_one(texts: list[str | None]) -> None:
    column = pa.chunked_array([texts[: len(texts) // 2], texts[len(texts) // 2 :]], pa.string())
    assert parse_times(column).to_pylist() == [one_by_one(text) for text in texts]


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_text_of_every_layout(type_: pa.DataType) -> None:
    texts = pa.array(["2024-01-31 12:00", None, "soon", "2024-01-31 13:00+01:00"], pa.string())
    assert parse_times(pa.chunked_array([texts.cast(type_)])).to_pylist() == [NOON, None, None, NOON]


def test_nothing_but_text_that_is_no_time() -> None:
    assert parse_times(pa.chunked_array([["soon"] * 1000])).null_count == 1000
    assert parse_times(pa.chunked_array([], pa.string())).to_pylist() == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-01-31 12:00", None, "soon+02"], False),
        (["2024-01-31 12:00", "2024-01-31 12:00-05"], True),
        (["2024-01-31T12Z "], True),
        ([None], False),
        ([], False),
    ],
)
def test_whether_some_have_a_zone(texts: list[str | None], expected: bool) -> None:
    assert has_zones(pa.chunked_array([texts], pa.string())) is expected
