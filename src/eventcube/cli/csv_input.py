"""The columns of CSV files, with types inferred from every value, the same with and without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from eventcube.cli.read_errors import plain_read_errors
from eventcube.errors import InputError

# With threads, Arrow does not report the number of a malformed row.
_READ = pa_csv.ReadOptions(use_threads=False, block_size=4 << 20)
# Type families; within one, a later type can hold the values of an earlier one.
_TYPE_FAMILIES: tuple[tuple[pa.DataType, ...], ...] = (
    (pa.int64(), pa.float64()),
    (pa.bool_(),),
    (pa.date32(), pa.timestamp("us"), pa.timestamp("ns")),
    (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
)
MOMENT = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?"
ZONE = r"(Z|[+-]\d\d:\d\d)"


def read_options(types: pa.Schema | None = None) -> pa_csv.ConvertOptions:
    """Only empty fields are null, in quotes or not, as on Spark."""
    known = {field.name: field.type for field in types} if types is not None else None
    return pa_csv.ConvertOptions(column_types=known, null_values=[""], strings_can_be_null=True)


def csv_columns(files: Sequence[str], observe: Callable[[pa.RecordBatch], None] | None = None) -> pa.Schema:
    """The columns of the files, which must be the same in all; one pass over all values.

    Times with more than six decimals are in nanoseconds, so that Arrow can read them. `observe` is called with all
    rows, as text.
    """
    names: list[str] = []
    inferred: list[_InferredType] = []
    for file in files:
        with plain_read_errors([file], "csv"):
            header = _header(file)
        if not names:
            names, inferred = header, [_InferredType() for _ in header]
            _refuse_duplicates(names, file)
        elif header != names:
            raise InputError(_difference(file, header, files[0], names), code="EC331", hint="read them one by one")
        with plain_read_errors([file], "csv"):
            for batch in _as_text(file, names):
                for column_type, column in zip(inferred, batch.columns, strict=True):
                    column_type.narrow(column)
                if observe is not None:
                    observe(batch)
    return pa.schema([(name, column_type.type) for name, column_type in zip(names, inferred, strict=True)])


def value_that_does_not_fit(file: str, types: pa.Schema) -> tuple[str, str] | None:
    """A column of the file, and a value in it that cannot be read as the type that the column must have."""
    with plain_read_errors([file], "csv"):
        header = _header(file)
        for batch in _as_text(file, header):
            for name, column in zip(header, batch.columns, strict=True):
                type_ = types.field(name).type if name in types.names else pa.string()
                if not _can_be(column, type_):
                    return name, next(v for v in column.unique().to_pylist() if v and not _can_be(pa.array([v]), type_))
    return None


def _can_be(text: pa.Array, type_: pa.DataType) -> bool:
    """Whether Spark can read every value as a type that was given."""
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return _all(pc.match_substring_regex(text, f"{MOMENT}{ZONE}?$"))
    return not (pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_floating(type_)) or _fits(
        text, type_
    )


def in_microseconds(type_: pa.DataType) -> pa.DataType:
    """The type, with timestamps in microseconds."""
    return pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else type_


def _header(file: str) -> list[str]:
    with pa_csv.open_csv(file, _READ, convert_options=read_options()) as reader:
        return list(reader.schema.names)


def _as_text(file: str, names: Iterable[str]) -> pa_csv.CSVStreamingReader:
    text = pa.schema([(name, pa.string()) for name in names])
    return pa_csv.open_csv(file, _READ, convert_options=read_options(text))


def _refuse_duplicates(names: list[str], file: str) -> None:
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(f"column {duplicate!r} occurs twice in {file}", code="EC301", hint="rename one of the two")


def _difference(file: str, header: list[str], first: str, names: list[str]) -> str:
    for here, there, wanted in ((file, first, names), (first, file, header)):
        missing = [n for n in wanted if n not in (header if here == file else names)]
        if missing:
            return f"{Path(here)} has no column {missing[0]!r}, and {Path(there)} has"
    return f"{file} has the columns of {first} in another order"


class _InferredType:
    """The possible types of a column, given the values so far.

    `types` are the narrowest type that fits and wider ones; None before the first value, and empty if only text fits.
    """

    def __init__(self) -> None:
        self.types: tuple[pa.DataType, ...] | None = None

    @property
    def type(self) -> pa.DataType:
        return self.types[0] if self.types else pa.string()

    def narrow(self, text: pa.Array) -> None:
        """Drop the types that do not fit these values."""
        if text.null_count < len(text):
            families = _TYPE_FAMILIES if self.types is None else (self.types,)
            self.types = next((types for family in families if (types := _fitting(text, family))), ())


def _fitting(text: pa.Array, family: tuple[pa.DataType, ...]) -> tuple[pa.DataType, ...]:
    """The family from the first type that fits all values."""
    return next((family[i:] for i, type_ in enumerate(family) if _fits(text, type_)), ())


def _fits(text: pa.Array, type_: pa.DataType) -> bool:
    """Whether both Arrow and Spark can read every value as the type."""
    if pa.types.is_boolean(type_):
        return _all(pc.is_in(pc.utf8_lower(text), pa.array(["true", "false", None])))
    try:
        read = text.cast(type_)
    except pa.ArrowInvalid:
        return False
    if pa.types.is_integer(type_):
        # Arrow reads 0x1F, Spark does not.
        return not pc.any(pc.match_substring(text, "x", ignore_case=True)).as_py()
    if pa.types.is_floating(type_):
        not_finite = pc.invert(pc.is_finite(read))
        return not pc.any(not_finite).as_py() or _all(pc.equal(text.filter(not_finite), "NaN"))
    zone = ZONE if pa.types.is_timestamp(type_) and type_.tz else ""
    return _all(pc.match_substring_regex(text, f"{MOMENT}{zone}$"))


def _all(truths: pa.Array) -> bool:
    return bool(pc.all(truths, min_count=0).as_py())
