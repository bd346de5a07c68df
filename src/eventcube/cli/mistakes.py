"""The mistakes of several queries as one error."""

from __future__ import annotations

from collections.abc import Iterable

from eventcube.errors import EventCubeError


class SeveralQueriesError(EventCubeError):
    """Several errors, shown one after the other."""

    def __init__(self, errors: list[EventCubeError]) -> None:
        super().__init__(errors[0].message, code=errors[0].code, hint=errors[0].hint)
        self.errors = errors

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.errors))


def raise_all(errors: Iterable[EventCubeError]) -> None:
    """Raise the errors, if there are any, as one."""
    collected = list(errors)
    if collected:
        raise collected[0] if len(collected) == 1 else SeveralQueriesError(collected)
