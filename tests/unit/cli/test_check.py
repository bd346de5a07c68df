from __future__ import annotations

import pytest
from tests.unit.cli.conftest import Call

QUERY = "pattern seq(Login a, Login b) where a.user=b.user within 60 min"


def test_syntax_alone(call: Call) -> None:
    result = call("check", QUERY)
    assert result.exit_code == 0
    assert result.stdout == "PATTERN SEQ(Login a, Login b)\nWHERE a.user = b.user\nWITHIN 1 hour\n"
    assert result.stderr.startswith("ok (syntax only")


@pytest.mark.usefixtures("folder")
def test_against_the_columns_of_files(call: Call) -> None:
    assert call("check", QUERY, "--schema", "events.csv", "--type", "kind").stderr == "ok\n"
    wrong = call("check", QUERY.replace("user", "usr"), "--schema", "events.csv", "--type", "kind")
    assert wrong.exit_code == 2
    assert wrong.stderr.count("error[EC203]") == 2


def test_against_columns_given_as_text(call: Call) -> None:
    columns = "ts timestamp, kind string, `user` varchar(20), price decimal(10, 2)"
    assert call("check", QUERY, "--columns", columns, "--type", "kind").exit_code == 0


def test_a_batch_may_have_no_window_but_is_warned(call: Call) -> None:
    result = call("check", "PATTERN SEQ(A a, B b)")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: the query has no WITHIN")
    assert "warning" not in call("check", "PATTERN A a").stderr
