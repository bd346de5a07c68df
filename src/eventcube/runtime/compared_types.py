"""The types by which rows of two inputs are compared, where a column was inferred differently in each."""

from __future__ import annotations

import pyarrow as pa

from eventcube.errors import InputError


def compared_types(events: pa.Schema, rows: pa.Schema) -> dict[str, pa.DataType]:
    """For each column of the rows the type by which it is compared with that of the events; else they are refused."""
    strange = [name for name in rows.names if name not in events.names]
    if strange:
        raise InputError(
            f"the rows to leave out have a column {strange[0]!r}, and the events have not",
            code="EC606",
            hint="give the late rows of a stream over the same events",
        )
    found = {}
    for field in rows:
        of_event = events.field(field.name).type
        type_ = _compared_type(of_event, field.type)
        if type_ is None:
            raise InputError(
                f"column {field.name!r} is {of_event} in the events, and {field.type} in the rows to leave out",
                code="EC607",
                hint="give both in the same format, or rows with the types of the events",
            )
        found[field.name] = type_
    return found


def _compared_type(of_event: pa.DataType, of_row: pa.DataType) -> pa.DataType | None:
    """A type in which equal values of both are equal; None if there is none. Text is compared as what it says."""
    pair = (of_event, of_row)
    if of_event == of_row or pa.types.is_null(of_row):
        return of_event
    if pa.types.is_null(of_event):
        return of_row
    if all(map(_is_text, pair)):
        return pa.string()
    if all(_is_number(t) or _is_text(t) for t in pair):
        return _number_type([t for t in pair if _is_number(t)])
    times = [type_ for type_ in pair if pa.types.is_timestamp(type_) or pa.types.is_date(type_)]
    if times and all(type_ in times or _is_text(type_) for type_ in pair):
        # A timestamp rather than a date, which says less.
        return next((type_ for type_ in times if pa.types.is_timestamp(type_)), times[0])
    if all(pa.types.is_boolean(type_) or _is_text(type_) for type_ in pair):
        return pa.bool_()
    return None


def _number_type(types: list[pa.DataType]) -> pa.DataType:
    if any(map(pa.types.is_floating, types)):
        return pa.float64()
    if all(map(pa.types.is_signed_integer, types)):
        return pa.int64()
    return pa.decimal128(38, max(getattr(type_, "scale", 0) for type_ in types))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
