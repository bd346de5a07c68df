from __future__ import annotations

from collections import Counter

from eventcube.bench.purchases import SCHEMA, purchase_log


def test_the_same_seed_gives_the_same_log() -> None:
    log = purchase_log(200, seed=3)
    assert log.schema == SCHEMA
    assert log.equals(purchase_log(200, seed=3))
    assert not log.equals(purchase_log(200, seed=4))


def test_events_are_in_order_and_those_of_a_request_apart() -> None:
    log = purchase_log(500)
    times = log["ts"].to_pylist()
    assert times == sorted(times)
    assert len(set(zip(times, log["request"].to_pylist(), strict=True))) == log.num_rows


def test_every_step_occurs_and_most_requests_are_paid() -> None:
    steps = Counter(purchase_log()["activity"].to_pylist())
    assert steps["Create"] == 2_000
    assert steps["Pay"] > 1_500
    assert {"Check", "SendBack", "Approve", "Reject", "Order", "Receive", "Invoice", "Cancel", "Refund"} < set(steps)
