from __future__ import annotations

import pytest
from tests.unit.cli.conftest import Call

QUERY = "PATTERN SEQ(Login a, !(Logout b, b.user = a.user), Login c) WHERE a.user = c.user WITHIN 1 hour"


def test_without_events_the_query_says_which_columns_there_are(call: Call) -> None:
    result = call("explain", QUERY, "--type", "kind")
    assert result.exit_code == 0
    assert "split by    user" in result.stdout


@pytest.mark.usefixtures("folder")
def test_over_files(call: Call) -> None:
    result = call("explain", QUERY, "events.csv", "--type", "kind")
    assert result.exit_code == 0
    assert "amount: double" in result.stdout


def test_a_window_of_events_is_not_split_by_a_key_that_was_found(call: Call) -> None:
    query = QUERY.replace("1 hour", "10 events")
    plan = call("explain", query, "--type", "kind").stdout
    assert "split by    nothing (a window of events is split only by partition_by)" in plan
    assert "split by    user" in call("explain", query, "--type", "kind", "--partition-by", "user").stdout


def test_a_partition_in_the_text_is_a_column_and_splits_the_work(call: Call) -> None:
    query = "PATTERN SEQ(Login a, ANY b) PARTITION BY user WITHIN 10 events"
    plan = call("explain", query, "--type", "kind").stdout
    assert "split by    user" in plan
    assert "bind b: event of any type" in plan
