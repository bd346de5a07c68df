"""Settings that functions take as keywords: declared once, shown in the signature and help of all that take them."""

from __future__ import annotations

import difflib
import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_args, get_type_hints

_Function = TypeVar("_Function", bound=Callable[..., Any])
_HELP_WIDTH = 116


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its default, a sentence that says what it means, and what it may be, in words."""

    default: Any
    meaning: str
    accepts: str


def settings_of(declared: type) -> dict[str, Setting]:
    """The settings, by name, of a TypedDict whose fields are each `Annotated[<type>, Setting(…)]`."""
    return {name: hint.__metadata__[0] for name, hint in get_type_hints(declared, include_extras=True).items()}


def takes_settings(function: _Function) -> _Function:
    """Show each setting that a function takes as `**settings: Unpack[<TypedDict>]` in its signature and its help.

    A keyword that is none of them is refused as Python itself does.
    """
    signature = inspect.signature(function, eval_str=True)
    *own, keywords = signature.parameters.values()
    (declared,) = get_args(keywords.annotation)
    settings, types = settings_of(declared), get_type_hints(declared)
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=setting.default, annotation=types[name])
        for name, setting in settings.items()
    ]
    known = [parameter.name for parameter in (*own, *shown)]

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f". Did you mean {close[0]!r}?" if close else ""
                raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}{hint}")
        return function(*args, **given)

    call.__dict__["__signature__"] = signature.replace(parameters=[*own, *shown])
    call.__doc__ = f"{inspect.getdoc(function)}\n\n{_help(settings)}"
    return cast("_Function", call)


def _help(settings: dict[str, Setting]) -> str:
    """The part of a docstring that explains settings."""
    lines = ["Settings:"]
    for name, setting in settings.items():
        text = f"{name}: {setting.meaning} Give {setting.accepts}."
        lines.append(textwrap.fill(text, _HELP_WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8))
    return "\n".join(lines)
