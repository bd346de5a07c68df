"""Generates the visits of a shop: who looks at the page of a product, puts it in the cart, and pays.

More people come in the evening, and they pay more often than those who come at night; so they do in some countries.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "action": pa.string(),
        "user": pa.int64(),
        "country": pa.string(),
        "amount": pa.int64(),
    }
)
ACTIONS = ("Visit", "View", "Cart", "Pay")
COUNTRIES = ("DE", "FR", "IT", "NL")
START_US = 1_767_571_200_000_000  # 2026-01-05 00:00:00, a Monday

_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
_MARKER = "_visits.json"
# How often people come by the hour, how likely they go on, by step and by country, and the mean time between steps.
_BY_HOUR = 1.2 - np.cos(2 * np.pi * (np.arange(24) - 7.5) / 24)
_GO_ON = (0.6, 0.4, 0.5)
_BY_COUNTRY = np.array([1.2, 1.0, 0.7, 1.1])
_SHARES = (0.4, 0.3, 0.2, 0.1)
_MINUTES = (3, 8, 6)


@dataclass(frozen=True, slots=True)
class Visits:
    """The shape of the visits: the number of events, of users, and of days over which they spread."""

    events: int = 20_000
    users: int = 1_000
    days: int = 7
    seed: int = 7

    def table(self) -> pa.Table:
        """All events in order of time."""
        draw = np.random.default_rng(self.seed)
        # A visit has nearly two events; the latest of them are more than enough.
        visits = int(self.events / 1.7) + 100
        shares = _BY_HOUR / _BY_HOUR.sum()
        hours = draw.choice(24, visits, p=shares)
        days = draw.integers(0, self.days, visits)
        ts = (24 * days + hours) * _HOUR_US + draw.integers(0, _HOUR_US, visits)
        users = draw.integers(1, self.users + 1, visits)
        country_of = draw.choice(len(COUNTRIES), self.users + 1, p=_SHARES)
        amounts = draw.integers(5, 200, visits)
        at_night = hours < 6
        steps = [(ts.copy(), np.zeros(visits, np.int8), users, amounts)]
        going = np.arange(visits)
        for step, (likely, minutes) in enumerate(zip(_GO_ON, _MINUTES, strict=True), 1):
            chance = likely * _BY_COUNTRY[country_of[users[going]]] * np.where(at_night[going], 0.7, 1.0)
            going = going[draw.random(len(going)) < chance]
            ts[going] += 1000 + draw.exponential(minutes * _MINUTE_US, len(going)).astype(np.int64)
            steps.append((ts[going], np.full(len(going), step, np.int8), users[going], amounts[going]))
        times, actions, people, amount = (np.concatenate(column) for column in zip(*steps, strict=True))
        order = np.argsort(times, kind="stable")[: self.events]
        people = people[order]
        return pa.table(
            [
                pa.array(START_US + times[order] // 1000 * 1000).cast(pa.timestamp("us")),
                _texts(actions[order], ACTIONS),
                pa.array(people),
                _texts(country_of[people], COUNTRIES),
                pa.array(amount[order]),
            ],
            schema=SCHEMA,
        )

    def write(self, folder: Path, *, file_events: int = 2_500_000, group_events: int = 250_000) -> Path:
        """Writes Parquet files into the folder; does nothing if it has the same events."""
        wanted = {**asdict(self), "file_events": file_events, "group_events": group_events}
        marker = folder / _MARKER
        if marker.exists() and json.loads(marker.read_text()) == wanted:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        table = self.table()
        for number, first in enumerate(range(0, self.events, file_events)):
            path = folder / f"part-{number:05d}.parquet"
            pq.write_table(table.slice(first, file_events), path, row_group_size=group_events)
        # The marker comes last, so that an interrupted run is repeated.
        marker.write_text(json.dumps(wanted))
        return folder


def _texts(codes: NDArray[np.integer[Any]], texts: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(texts)).cast(pa.string())
