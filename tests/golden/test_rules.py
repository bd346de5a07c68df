"""What each rule makes of a query: pairs of before and after, and a rule for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.golden.titled import Titled, read_titled

from eventcube.plan.rule_examples import show, show_steps
from eventcube.plan.rules.aggregate_links import aggregate_links
from eventcube.plan.rules.keep_prefixes import keep_prefixes
from eventcube.plan.rules.rewrite import LOGICAL_RULES, NEAREST_RULES, STEP_RULES

CASES = read_titled("rules.txt")
# Those that flat strategies ask for come last.
LOGICAL = {rule.__name__: rule for rule in (*LOGICAL_RULES, keep_prefixes)}
STEPS = {rule.__name__: rule for rule in (*STEP_RULES, *NEAREST_RULES, aggregate_links)}


def _rule(case: Titled) -> str:
    return case.title.partition(":")[0]


def _shown(case: Titled, printed: Callable[[], Any]) -> str:
    name, (pattern, *settings) = _rule(case), case.given.splitlines()
    if name in STEPS:
        show_steps(STEPS[name], pattern)
    else:
        strategy = settings[0].removeprefix("strategy: ") if settings else "auto"
        show(LOGICAL[name], pattern, None if strategy == "none" else strategy)
    return str(printed().out).rstrip("\n")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_rule_rewrites(case: Titled, capsys: pytest.CaptureFixture[str]) -> None:
    assert _shown(case, capsys.readouterr) == case.expected


@pytest.mark.parametrize("name", [*LOGICAL, *STEPS])
def test_every_rule_has_pairs_and_a_case_in_which_it_does_nothing(name: str) -> None:
    expected = [case.expected for case in CASES if _rule(case) == name]
    assert any(text.endswith("→\nthe same") for text in expected)
    assert any(not text.endswith("→\nthe same") for text in expected)
