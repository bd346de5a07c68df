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
