from __future__ import annotations

from tests.unit.cli.conftest import Call

from eventcube.engine.compiled import cache_folder


def test_the_second_time_all_is_there(call: Call) -> None:
    assert call("warm").exit_code == 0
    again = call("warm")
    assert again.exit_code == 0
    assert again.stdout.splitlines()[-1] == f"kept in {cache_folder()}"
