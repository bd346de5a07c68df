from __future__ import annotations

import pytest
from tests.unit.cli.conftest import Call


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nested --repetitions 0", "'--repetitions': 0 is not in the range x>=1"),
        ("nested --scale 0", "'--scale': 0.0 is not in the range x>0"),
        ("nested --scale -1", "'--scale': -1.0 is not in the range x>0"),
        ("engine --repetitions 0", "'--repetitions': 0 is not in the range x>=1"),
        ("many --repetitions 0", "'--repetitions': 0 is not in the range x>=1"),
        ("many --queries 0", "'--queries': 0 is not in the range 1<=x<=500"),
        ("aggregate --repetitions 0", "'--repetitions': 0 is not in the range x>=1"),
        ("aggregate --scale 0", "'--scale': 0.0 is not in the range x>0"),
        ("aggregate --part all", "'--part': 'all' is not one of 'windows', 'large', 'choice', 'memory', 'funnel'"),
        ("spark --repetitions 0", "'--repetitions': 0 is not in the range x>=1"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: str, said: str, call: Call) -> None:
    result = call("bench", *arguments.split())
    assert result.exit_code == 2
    assert said in result.stderr
