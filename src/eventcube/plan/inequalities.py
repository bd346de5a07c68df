"""The joins of a plan whose candidates can be found by a min-max index: those that test them by an inequality."""

from __future__ import annotations

from typing import Any

from eventcube.plan.steps import Bind, Program, rebuilt


def inequalities(bind: Bind) -> str:
    """The comparisons of a join by `<`, `<=`, `>` or `>=`, as text; "" if there is none."""
    return ", ".join(dict.fromkeys(c.text for c in bind.compare if c.op in ("<", "<=", ">", ">=")))


def all_inequalities(program: Program) -> list[str]:
    """Those of each join of a program that has some, at any depth."""
    found: dict[str, None] = {}

    def note(node: Any) -> Any:
        if isinstance(node, Bind):
            found[inequalities(node)] = None
        return node

    rebuilt(program, note)
    return [text for text in found if text]
