"""Generates the log of a purchasing department: requests that are checked, decided, ordered, received and paid.

Most requests go straight through. Some are sent back and checked again, some skip a step, are approved by the person
who made them, or are cancelled after they were paid: what people look for in the log of a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import pyarrow as pa

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "activity": pa.string(),
        "request": pa.int64(),
        "person": pa.string(),
        "amount": pa.float64(),
    }
)
CLERKS = ("Ada", "Ben", "Cho", "Dan", "Eve", "Fay", "Gus", "Hal")
MANAGERS = ("Ira", "Joy", "Kai", "Lea")
BEGIN = datetime(2026, 1, 5, 8)

_HOUR = 60


@dataclass(slots=True)
class _Request:
    """One request; `at` is the time of its latest step."""

    number: int
    draw: Random
    at: datetime
    steps: list[tuple[datetime, str, int, str, float]] = field(default_factory=list)

    def chance(self, probability: float) -> bool:
        return self.draw.random() < probability

    def add(self, activity: str, person: str, amount: float, wait: int) -> None:
        """Add a step, `wait` minutes on average after the one before, at least one."""
        self.at += timedelta(minutes=1 + int(self.draw.expovariate(1 / wait)))
        self.steps.append((self.at, activity, self.number, person, amount))


def purchase_log(requests: int = 2_000, seed: int = 7) -> pa.Table:
    """The events of a number of requests in time order; the same seed gives the same log."""
    draw = Random(seed)
    rows = [
        step
        for number in range(1, requests + 1)
        for step in _steps(_Request(number, draw, BEGIN + timedelta(minutes=number * 90)))
    ]
    rows.sort(key=lambda row: row[0])
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=SCHEMA.names).cast(SCHEMA)


def _steps(request: _Request) -> Iterator[tuple[datetime, str, int, str, float]]:
    draw = request.draw
    clerk, manager = draw.choice(CLERKS), draw.choice(MANAGERS)
    amount = round(draw.lognormvariate(6, 1), 2)
    request.add("Create", clerk, amount, 10)
    request.add("Check", draw.choice(CLERKS), amount, 4 * _HOUR)
    while request.chance(0.25):
        request.add("SendBack", draw.choice(CLERKS), amount, 8 * _HOUR)
        request.add("Check", draw.choice(CLERKS), amount, 6 * _HOUR)
    if request.chance(0.08):
        request.add("Reject", manager, amount, 24 * _HOUR)
        return iter(request.steps)
    if not request.chance(0.02):
        request.add("Approve", clerk if request.chance(0.03) else manager, amount, 24 * _HOUR)
    if request.chance(0.04):
        request.add("Check", draw.choice(CLERKS), amount, 12 * _HOUR)
    request.add("Order", draw.choice(CLERKS), amount, 40 * _HOUR)
    if not request.chance(0.04):
        request.add("Receive", draw.choice(CLERKS), amount, 96 * _HOUR)
    request.add("Invoice", draw.choice(CLERKS), amount, 48 * _HOUR)
    request.add("Pay", draw.choice(MANAGERS), amount, 72 * _HOUR)
    if request.chance(0.03):
        request.add("Cancel", clerk, amount, 48 * _HOUR)
        if request.chance(0.6):
            request.add("Refund", manager, amount, 72 * _HOUR)
    return iter(request.steps)
