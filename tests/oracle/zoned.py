"""Cases whose times have zones, close to where clocks change, and whose queries write moments with and without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from eventcube.language.syntax import (
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Duration,
    In,
    IsNull,
    Item,
    Literal,
    NotQual,
    Qual,
    Timestamp,
    Value,
)
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Case
from tests.oracle.quals import LOOSE, TICK, chance
from tests.oracle.text import query_to_text
from tests.oracle.zones import DAY, EPOCH, offset_at

ZONES = (None, "UTC", "America/New_York", "America/New_York", "Europe/Berlin", "Europe/Berlin", "Asia/Kolkata")
# Clocks go forward and back in New York, forward and back in Berlin; and a day on which nothing happens.
CHANGES = tuple(
    int((datetime(*day, tzinfo=UTC) - EPOCH) / timedelta(microseconds=1))
    for day in ((2024, 3, 10, 7), (2024, 11, 3, 6), (2024, 3, 31, 1), (2024, 10, 27, 1), (2024, 6, 15, 12))
)


def with_zones(rng: Random, case: Case) -> Case:
    """The case with a zone (or none) for its times, another column of times `t`, and moments in its conditions."""
    maker = _Maker(rng, {"ts": rng.choice(ZONES), "t": rng.choice(ZONES)})
    events = [
        replace(
            event,
            ts=event.ts + maker.base,
            attrs={**event.attrs, "t": None if chance(rng, 10) else maker.instant()},
            zones=maker.zones,
        )
        for event in case.events
    ]
    # HAVING may repeat what GROUPBY and AGG say, which would have to be changed alike.
    query = maker.changed(replace(case.query, having=()))
    if chance(rng, 40):
        names = positive_variables(query.pattern)
        query = replace(query, where=(*query.where, maker.qual(rng.choice(names), rng.choice(names))))
    return Case(replace(query, text=query_to_text(query)), events, case.options)


class _Maker:
    """Draws moments around one change of clocks."""

    def __init__(self, rng: Random, zones: dict[str, str | None]) -> None:
        self.rng, self.zones = rng, zones
        self.base = rng.choice(CHANGES) - rng.randint(0, 6) * TICK

    def instant(self) -> int:
        return self.base + self.rng.randint(-1, 10) * TICK

    def changed(self, node: Any) -> Any:
        """The node with comparisons of times and moments in place of others."""
        match node:
            case Comparison(_, Attribute(var), Timestamp()):
                return self.qual(var, var)
            case Comparison(_, Attribute(var), Attribute(other)) if chance(self.rng, 30):
                return self.qual(var, other)
            case Comparison(_, Attribute(var), Literal()) | In(Attribute(var)) if chance(self.rng, 50):
                return self.qual(var, var)
            case IsNull(Attribute(var)) if chance(self.rng, 30):
                return IsNull(Arithmetic("-", self._time(var), self._moment()))
            case Item(Attribute(var), alias) if chance(self.rng, 40):
                since = Arithmetic("-", self._time(var), self._moment())
                later = Arithmetic("+", self._time(var), self._length())
                return Item(self.rng.choice([since, later, self._time(var)]), alias)
            case tuple():
                return tuple(self.changed(part) for part in node)
        if not is_dataclass(node) or isinstance(node, type):
            return node
        return replace(node, **{f.name: self.changed(getattr(node, f.name)) for f in fields(node) if f.name != "span"})

    def qual(self, var: str, other: str) -> Qual:
        """A condition on the times of one or two variables."""
        op, time, moment = self.rng.choice(LOOSE), self._time(var), self._constant()
        shifted = Arithmetic(self.rng.choice("+-"), time, self._length())
        length = Duration(self.rng.randint(-8, 8) * TICK)
        since = Arithmetic("-", time, self._moment())
        choices: Sequence[Qual] = [
            Comparison(op, time, moment),
            Comparison(op, time, moment),
            Comparison(op, moment, time),
            Comparison(op, shifted, moment),
            Comparison(op, time, Arithmetic("+", self._moment(), self._length())),
            Comparison(op, since, length),
            Comparison(op, Arithmetic("-", self._moment(), time), length),
            Comparison(op, since, Arithmetic("-", self._time(other), self._moment())),
            Comparison(op, Arithmetic("-", self._moment(), self._moment()), Arithmetic("-", time, self._time(other))),
            Comparison(op, self._moment(), Arithmetic("+", self._moment(), self._length())),
            In(time, tuple(self._constant() for _ in range(self.rng.randint(1, 3)))),
            In(self._moment(), (self._moment(), time, self._time(other))),
            Between(time, moment, self._constant()),
            Between(moment, time, self._time(other)),
            NotQual(Between(time, moment, self._time(other))),
        ]
        return self.rng.choice(choices)

    def _time(self, var: str) -> Attribute:
        return Attribute(var, self.rng.choice(["ts", "ts", "t"]))

    def _length(self) -> Duration:
        return Duration(self.rng.randint(0, 6) * TICK)

    def _moment(self) -> Timestamp:
        """A moment near the events, in UTC or as clocks of some zone show it before or after they change."""
        instant = self.instant()
        if chance(self.rng, 25):
            return Timestamp(instant, zoned=True)
        zone = self.rng.choice([self.zones["ts"], self.zones["ts"], self.zones["t"], None])
        return Timestamp(instant + (offset_at(instant + self.rng.choice([-DAY, 0, DAY]), zone) if zone else 0))

    def _constant(self) -> Value:
        """A moment, or the text of one."""
        moment = self._moment()
        if chance(self.rng, 60):
            return moment
        shown = EPOCH + timedelta(microseconds=moment.microseconds)
        if not moment.zoned:
            return Literal(shown.replace(tzinfo=None).isoformat(sep=" "))
        hours = self.rng.choice([0, 2, -5])
        return Literal(f"{(shown + timedelta(hours=hours)).replace(tzinfo=None).isoformat()}{hours:+03d}:00")
