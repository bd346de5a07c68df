"""Functions of numbers and times over columns; null in, null out, except for COALESCE."""

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
# Buckets of time are counted from a Monday, 2000-01-03 00:00.
_MONDAY = 10_959 * _DAY
_MIN_INT = np.iinfo(np.int64).min
# No float has digits beyond these positions.
_FINEST, _COARSEST = 400, -400
# Floats this near to a half, or this large, are rounded by their decimal digits: arithmetic could err.
_NEAR, _LARGE = 1e-3, 1e12
_EXACT = Context(prec=1000, rounding=ROUND_HALF_UP)
# Times beyond this are null: no calendar reaches them.
_MAX_TIME = 2**62


def absolute(column: Column) -> Column:
    """Each number without its sign; null for the most negative whole number, which has no counterpart."""
    if column.values.dtype == np.float64:
        return Column(np.abs(column.values), column.valid)
    known = column.values != _MIN_INT
    values = np.abs(np.where(known, column.values, 0))
    return Column(values, column.valid if known.all() else _both(column.valid, known))


def coalesced(columns: Sequence[Column]) -> Column:
    """The first value of each row that is not null."""
    floats = any(c.values.dtype == np.float64 for c in columns)
    values = np.full(len(columns[0].values), np.nan if floats else 0, np.float64 if floats else np.int64)
    missing = np.ones(len(values), np.bool_)
    for column in columns:
        taken = missing & _valid_mask(column)
        values[taken] = column.values[taken]
        missing &= ~taken
    return Column(values, None if floats or not missing.any() else ~missing)


def rounded(column: Column, digits: int) -> Column:
    """Each number rounded to `digits` after the point (negative: to tens, hundreds, …); halves away from zero."""
    digits = max(_COARSEST, min(_FINEST, digits))
    if column.values.dtype == np.float64:
        return Column(_rounded_floats(column.values, digits), column.valid)
    return column if digits >= 0 else _rounded_whole(column, -digits)


def _rounded_whole(column: Column, zeros: int) -> Column:
    if zeros > 19:
        return Column(np.zeros_like(column.values), column.valid)
    if zeros == 19:
        # 10**19 does not fit 64 bits, so the result is zero or null.
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
    # Powers of ten up to 22 are exact as floats.
    power = 10.0 ** abs(digits)
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * power if digits >= 0 else np.abs(values) / power
        whole = np.floor(scaled)
        fraction = scaled - whole
        whole = whole + (fraction >= 0.5)
        result = np.copysign(whole / power if digits >= 0 else whole * power, values) + 0.0
        unsure = np.flatnonzero(~((np.abs(fraction - 0.5) > _NEAR) & (scaled < _LARGE)) & np.isfinite(values))
    result = np.where(np.isinf(values), values, result)
    result[unsure] = _rounded_by_digits(values[unsure], digits)
    return result


def _rounded_by_digits(values: Array, digits: int) -> Array:
    """Rounded by the shortest decimal digits, once for each distinct number."""
    distinct, positions = np.unique(values, return_inverse=True)
    unit = Decimal(1).scaleb(-digits)
    results = [
        float(Decimal(repr(v)).quantize(unit, context=_EXACT)) + 0.0 if np.isfinite(v) else v for v in distinct.tolist()
    ]
    return np.array(results, np.float64)[positions.reshape(-1)]


# Times.


def clock_part(function: str, column: Column, clock: Clock) -> Column:
    """A part of each time, such as HOUR or MONTH; DATE gives the start of its day."""
    ts, valid = _microseconds(column, clock)
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


def bucket_starts(column: Column, length: int, clock: Clock) -> Column:
    """The start of the bucket of so many microseconds that each time lies in."""
    ts, valid = _microseconds(column, clock)
    local = _local(ts, clock.zone)
    into = (local - _MONDAY) % length
    if clock.zone is None or _divides_hour(length):
        # An hour that clocks show twice has two buckets.
        return Column(ts - into, valid)
    return Column(_instant(local - into, clock.zone), valid)


def bucket_ends(starts: Ints, length: int, zone: str | None) -> Ints:
    """The time from which on no time lies in the bucket that starts then."""
    if zone is None or _divides_hour(length):
        return starts + length
    # A bucket starts later than clocks should show it if they skip that time. If clocks go back over its last moment,
    # it is the second one, as they do not go back over it again; if they skip it, the bucket ends with the gap.
    local = _local(starts, zone)
    last_local = local - (local - _MONDAY) % length + length - 1
    times = pa.array(last_local).view(pa.timestamp("us"))
    last = np.asarray(pc.assume_timezone(times, zone, ambiguous="latest", nonexistent="latest").view(pa.int64()))
    ends: Ints = last + (_local(last, zone) == last_local)
    return ends


def _divides_hour(length: int) -> bool:
    return _HOUR % length == 0


def _microseconds(column: Column, clock: Clock) -> tuple[Ints, Bools | None]:
    """Times as a clock counts them, in microseconds, and where they are not null; null if they are too far away."""
    bound = _MAX_TIME // clock.microseconds
    with np.errstate(invalid="ignore"):
        near = (column.values < bound) & (column.values > -bound)
    # A time plus a fraction of a duration is a float.
    ts = np.floor(np.where(near, column.values, 0)).astype(np.int64)
    unit = Fraction(clock.microseconds)
    return ts * unit.numerator // unit.denominator, column.valid if near.all() else _both(column.valid, near)


def _local(ts: Ints, zone: str | None) -> Ints:
    """The local times of instants in the zone."""
    if zone is None or not len(ts):
        return ts
    local = pc.local_timestamp(pa.array(ts).view(pa.timestamp("us", zone)))
    return np.asarray(local.view(pa.int64()))


def _instant(local: Ints, zone: str | None) -> Ints:
    """The instants of local times in the zone: the first if it comes twice, the end of the gap if it is skipped."""
    if zone is None or not len(local):
        return local
    local_times = pa.array(local).view(pa.timestamp("us"))
    instants = pc.assume_timezone(local_times, zone, ambiguous="earliest", nonexistent="latest")
    return np.asarray(instants.view(pa.int64()))


def _valid_mask(column: Column) -> Bools:
    valid: Bools = (
        ~np.isnan(column.values) if column.values.dtype == np.float64 else np.ones(len(column.values), np.bool_)
    )
    return valid if column.valid is None else valid & column.valid


def _both(one: Bools | None, other: Bools) -> Bools:
    return other if one is None else one & other
