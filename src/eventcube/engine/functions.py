"""Functions of numbers and times over columns; null in, null out, but for COALESCE."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.columns import Column
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.plan.expressions import Clock

_HOUR, _DAY = 3_600_000_000, 86_400_000_000
_LEAST = np.iinfo(np.int64).min
# No float has digits beyond these places.
_FINEST, _COARSEST = 400, -400
# Floats are rounded by their digits where they lie so near to the middle, or are so large, that computing could err.
_NEAR, _LARGE = 1e-3, 1e12
_EXACT = Context(prec=1000, rounding=ROUND_HALF_UP)
# Times so far away are not told by a calendar.
_FURTHEST = 2**62


def absolute(column: Column) -> Column:
    """Each number without its sign; null for the most negative whole number, which has no counterpart."""
    if column.values.dtype == np.float64:
        return Column(np.abs(column.values), column.valid)
    known = column.values != _LEAST
    values = np.abs(np.where(known, column.values, 0))
    return Column(values, column.valid if known.all() else _both(column.valid, known))


def coalesced(columns: Sequence[Column]) -> Column:
    """The first value of each row that is not null."""
    floats = any(c.values.dtype == np.float64 for c in columns)
    values = np.full(len(columns[0].values), np.nan if floats else 0, np.float64 if floats else np.int64)
    missing = np.ones(len(values), np.bool_)
    for column in columns:
        taken = missing & _known(column)
        values[taken] = column.values[taken]
        missing &= ~taken
    return Column(values, None if floats or not missing.any() else ~missing)


def rounded(column: Column, digits: int) -> Column:
    """Each number with so many digits after the point, or rounded to tens and so on below 0; halves away from zero."""
    digits = max(_COARSEST, min(_FINEST, digits))
    if column.values.dtype == np.float64:
        return Column(_rounded_floats(column.values, digits), column.valid)
    return column if digits >= 0 else _rounded_whole(column, -digits)


def _rounded_whole(column: Column, zeros: int) -> Column:
    if zeros > 19:
        return Column(np.zeros_like(column.values), column.valid)
    if zeros == 19:
        # 10**19 takes more than 64 bits, so nothing but zero is left.
        near = (column.values < 5 * 10**18) & (column.values > -5 * 10**18)
        return Column(np.zeros_like(column.values), _both(column.valid, near))
    unit = 10**zeros
    size = np.where(column.values < 0, -(column.values + 1), column.values).view(np.uint64)
    size = size + (column.values < 0).astype(np.uint64)
    whole = (size // np.uint64(unit) + ((size % np.uint64(unit)) >= np.uint64(unit // 2))).astype(np.uint64)
    product = whole * np.uint64(unit)
    fits = (whole <= np.uint64((2**63 - 1) // unit)) | ((column.values < 0) & (product == np.uint64(2**63)))
    values = np.where(column.values < 0, -(product.view(np.int64)), product.view(np.int64))
    return Column(values, column.valid if fits.all() else _both(column.valid, fits))


def _rounded_floats(values: Array, digits: int) -> Array:
    if abs(digits) > 22:
        return _rounded_by_digits(values, digits)
    # Powers of ten up to 22 are exact, and so is what one of them is divided by or multiplied with.
    power = 10.0 ** abs(digits)
    with np.errstate(all="ignore"):
        size = np.abs(values) * power if digits >= 0 else np.abs(values) / power
        whole = np.floor(size)
        part = size - whole
        whole = whole + (part >= 0.5)
        found = np.copysign(whole / power if digits >= 0 else whole * power, values) + 0.0
        unsure = np.flatnonzero(~((np.abs(part - 0.5) > _NEAR) & (size < _LARGE)) & np.isfinite(values))
    found = np.where(np.isinf(values), values, found)
    found[unsure] = _rounded_by_digits(values[unsure], digits)
    return found


def _rounded_by_digits(values: Array, digits: int) -> Array:
    """The same by the shortest decimal digits of each different number."""
    different, places = np.unique(values, return_inverse=True)
    unit = Decimal(1).scaleb(-digits)
    found = [
        float(Decimal(repr(v)).quantize(unit, context=_EXACT)) + 0.0 if np.isfinite(v) else v
        for v in different.tolist()
    ]
    return np.array(found, np.float64)[places.reshape(-1)]


# Times.


def clock_part(function: str, column: Column, clock: Clock) -> Column:
    """What a clock and a calendar show at each time; DATE gives the beginning of its day."""
    bound = _FURTHEST // clock.microseconds
    with np.errstate(invalid="ignore"):
        near = (column.values < bound) & (column.values > -bound)
    # A length of time times a fraction makes a time a float.
    ts = np.floor(np.where(near, column.values, 0)).astype(np.int64)
    unit = Fraction(clock.microseconds)
    ts = ts * unit.numerator // unit.denominator
    valid = column.valid if near.all() else _both(column.valid, near)
    local = _local(ts, clock.zone)
    days = local // _DAY
    match function:
        case "HOUR":
            return Column((local - days * _DAY) // _HOUR, valid)
        case "MINUTE":
            return Column((local % _HOUR) // 60_000_000, valid)
        case "WEEKDAY":
            # 1970 began on a Thursday.
            return Column((days + 3) % 7 + 1, valid)
        case "DATE":
            return Column(_instant(days * _DAY, clock.zone), valid)
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    match function:
        case "DAY":
            return Column((date - month.astype("datetime64[D]")).astype(np.int64) + 1, valid)
        case "MONTH":
            return Column(month.astype(np.int64) % 12 + 1, valid)
        case _:
            return Column(month.astype("datetime64[Y]").astype(np.int64) + 1970, valid)


def _local(ts: Ints, zone: str | None) -> Ints:
    """Times as clocks in the zone show them."""
    if zone is None or not len(ts):
        return ts
    shown = pc.local_timestamp(pa.array(ts).view(pa.timestamp("us", zone)))
    return np.asarray(shown.view(pa.int64()))


def _instant(local: Ints, zone: str | None) -> Ints:
    """When clocks in the zone show these times: first, if they do twice, and right after, if they never do."""
    if zone is None or not len(local):
        return local
    shown = pa.array(local).view(pa.timestamp("us"))
    instants = pc.assume_timezone(shown, zone, ambiguous="earliest", nonexistent="latest")
    return np.asarray(instants.view(pa.int64()))


def _known(column: Column) -> Bools:
    known: Bools = (
        ~np.isnan(column.values) if column.values.dtype == np.float64 else np.ones(len(column.values), np.bool_)
    )
    return known if column.valid is None else known & column.valid


def _both(one: Bools | None, other: Bools) -> Bools:
    return other if one is None else one & other
