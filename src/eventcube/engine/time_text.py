"""Times as ISO text, parsed a column at a time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    rf"(?:\d{{4}}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    rf"|02-(?:0[1-9]|1\d|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_CLOCK = r"[ T](?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?)?"
_ZONE = r"(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
# A time as text, without blanks around it.
MOMENT = f"{_DATE}(?:{_CLOCK}{_ZONE}?)?"
# RE2 takes $ for the very end of the text.
_PLAIN = f"^{_DATE}(?:{_CLOCK})?$"
_ZONED = f"^{_DATE}{_CLOCK}{_ZONE}$"


def parse_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """ISO text as microseconds; null for other text."""
    text = _trimmed(column)
    try:
        return _microseconds(text, zoned=_first_has_zone(text))
    except pa.ArrowInvalid:
        # Not all are times, or only some have a zone.
        plain = _microseconds(_where(text, _PLAIN), zoned=False)
        return pc.coalesce(plain, _microseconds(_where(text, _ZONED), zoned=True))


def has_zones(column: pa.ChunkedArray) -> bool:
    """Whether some of the times are written with a zone."""
    return bool(pc.any(pc.match_substring_regex(_trimmed(column), _ZONED)).as_py())


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_trim_whitespace(column.cast(pa.string()))


def _microseconds(text: pa.ChunkedArray, *, zoned: bool) -> pa.ChunkedArray:
    return text.cast(pa.timestamp("us", "UTC" if zoned else None)).cast(pa.int64())


def _first_has_zone(text: pa.ChunkedArray) -> bool:
    first = next((t.as_py() for t in text if t.is_valid), "")
    return first.endswith("Z") or "+" in first[10:] or "-" in first[10:]


def _where(text: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """The text that matches a pattern; null for all else."""
    return pc.if_else(pc.match_substring_regex(text, pattern), text, pa.scalar(None, pa.string()))
