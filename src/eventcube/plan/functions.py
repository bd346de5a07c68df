"""Kinds of the arguments and results of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eventcube.errors import Diagnostic
from eventcube.language.functions import TIME_PARTS
from eventcube.language.syntax import Call, Literal
from eventcube.schema import Kind

Report = Callable[[Diagnostic], None]


def call_kind(call: Call, kinds: Sequence[Kind], report: Report, *, timed: bool) -> Kind:
    """The kind of a function's result, given the kinds of its arguments; type errors are reported.

    `timed`: the argument is a time, or a whole number that counts units of time.
    """
    first = kinds[0] if kinds else Kind.NULL
    match call.function:
        case "COALESCE":
            return _common(call, kinds, report)
        case "LOWER" | "UPPER" | "LENGTH":
            fits, wanted = first is Kind.TEXT, "text"
        case "ABS":
            fits, wanted = first.numeric or first is Kind.DURATION, "a number or a duration"
        case "ROUND":
            fits, wanted = first.numeric, "a number"
            _check_digits(call, report)
        case _:
            fits = first is Kind.TIME or (first is Kind.INTEGER and timed)
            wanted = "a time"
    if first is Kind.NULL:
        return Kind.NULL
    if not fits:
        span = call.arguments[0].span
        hint = "name a column of times, or make it one beforehand" if wanted == "a time" else None
        report(Diagnostic("EC223", f"{call.function} takes {wanted}, and this is {first.value}", span, hint))
        return Kind.NULL
    if call.function in (*TIME_PARTS, "LENGTH"):
        return Kind.INTEGER
    return Kind.TIME if call.function == "DATE" else first


def _common(call: Call, kinds: Sequence[Kind], report: Report) -> Kind:
    known = list(dict.fromkeys(k for k in kinds if k is not Kind.NULL))
    if all(k.numeric for k in known):
        return Kind.FLOAT if Kind.FLOAT in known else Kind.INTEGER if known else Kind.NULL
    if len(known) == 1 and known[0] is not Kind.OTHER:
        return known[0]
    names = " and ".join(k.value for k in known)
    hint = "give it values of one kind" if len(known) > 1 else None
    report(Diagnostic("EC223", f"COALESCE cannot take {names}", call.span, hint))
    return Kind.NULL


def _check_digits(call: Call, report: Report) -> None:
    if len(call.arguments) < 2:
        return
    digits = call.arguments[1]
    if not isinstance(digits, Literal) or not isinstance(digits.value, int) or isinstance(digits.value, bool):
        hint = "ROUND(a.x, 2) keeps two digits after the point"
        report(Diagnostic("EC223", "ROUND takes a whole number of digits, written out", digits.span, hint))
