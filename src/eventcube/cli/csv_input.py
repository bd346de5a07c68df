"""The columns of CSV files, and their types: found by looking at every value, the same with and without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from eventcube.cli.readable import readable
from eventcube.errors import InputError

# With threads, Arrow does not know the number of a row that is wrong.
_READ = pa_csv.ReadOptions(use_threads=False, block_size=4 << 20)
_LADDERS: tuple[tuple[pa.DataType, ...], ...] = (
    (pa.int64(), pa.float64()),
    (pa.bool_(),),
    (pa.date32(), pa.timestamp("us"), pa.timestamp("ns")),
    (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
)
MOMENT = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?"
ZONE = r"(Z|[+-]\d\d:\d\d)"


def read_options(types: pa.Schema | None = None) -> pa_csv.ConvertOptions:
    """An empty field is null, in quotes or not, and nothing else is, as on Spark."""
    known = {field.name: field.type for field in types} if types is not None else None
    return pa_csv.ConvertOptions(column_types=known, null_values=[""], strings_can_be_null=True)


def csv_columns(files: Sequence[str], look_at: Callable[[pa.RecordBatch], None] | None = None) -> pa.Schema:
    """The columns of the files, which all must have the same; one pass over all values.

    Times with more than six digits of a second are in nanoseconds, so that Arrow can read them. `look_at` is shown
    all rows, as text.
    """
    names: list[str] = []
    guesses: list[_Guess] = []
    for file in files:
        with readable([file], "csv"):
            header = _header(file)
        if not names:
            names, guesses = header, [_Guess() for _ in header]
            _refuse_duplicates(names, file)
        elif header != names:
            raise InputError(_difference(file, header, files[0], names), code="EC331", hint="read them one by one")
        with readable([file], "csv"):
            for batch in _as_text(file, names):
                for guess, column in zip(guesses, batch.columns, strict=True):
                    guess.look_at(column)
                if look_at is not None:
                    look_at(batch)
    return pa.schema([(name, guess.type) for name, guess in zip(names, guesses, strict=True)])


def in_microseconds(type_: pa.DataType) -> pa.DataType:
    """The type itself, times counted in microseconds."""
    return pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else type_


def _header(file: str) -> list[str]:
    with pa_csv.open_csv(file, _READ, convert_options=read_options()) as reader:
        return list(reader.schema.names)


def _as_text(file: str, names: Iterable[str]) -> pa_csv.CSVStreamingReader:
    text = pa.schema([(name, pa.string()) for name in names])
    return pa_csv.open_csv(file, _READ, convert_options=read_options(text))


def _refuse_duplicates(names: list[str], file: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"column {twice!r} occurs twice in {file}", code="EC301", hint="rename one of the two")


def _difference(file: str, header: list[str], first: str, names: list[str]) -> str:
    for here, there, wanted in ((file, first, names), (first, file, header)):
        missing = [n for n in wanted if n not in (header if here == file else names)]
        if missing:
            return f"{Path(here)} has no column {missing[0]!r}, and {Path(there)} has"
    return f"{file} has the columns of {first} in another order"


class _Guess:
    """What a column can be, after the values looked at so far.

    `types` are the narrowest and those that hold all its values as well; None before the first value, and empty if
    only text is left.
    """

    def __init__(self) -> None:
        self.types: tuple[pa.DataType, ...] | None = None

    @property
    def type(self) -> pa.DataType:
        return self.types[0] if self.types else pa.string()

    def look_at(self, text: pa.Array) -> None:
        if text.null_count < len(text):
            ladders = _LADDERS if self.types is None else (self.types,)
            self.types = next((left for ladder in ladders if (left := _fitting(text, ladder))), ())


def _fitting(text: pa.Array, ladder: tuple[pa.DataType, ...]) -> tuple[pa.DataType, ...]:
    """The ladder from the first type on that all values fit."""
    return next((ladder[i:] for i, type_ in enumerate(ladder) if _fits(text, type_)), ())


def _fits(text: pa.Array, type_: pa.DataType) -> bool:
    """Whether every value can be read as that type by Arrow and by Spark."""
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
        odd = pc.invert(pc.is_finite(read))
        return not pc.any(odd).as_py() or _all(pc.equal(text.filter(odd), "NaN"))
    zone = ZONE if pa.types.is_timestamp(type_) and type_.tz else ""
    return _all(pc.match_substring_regex(text, f"{MOMENT}{zone}$"))


def _all(truths: pa.Array) -> bool:
    return bool(pc.all(truths, min_count=0).as_py())
