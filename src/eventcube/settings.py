"""Settings as keyword arguments: declared once, shown in the signature and help of each function that takes them."""

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
    """One setting: its default, its meaning in a sentence, and its allowed values in words."""

    default: Any
    meaning: str
    accepts: str


def settings_of(declared: type) -> dict[str, Setting]:
    """The settings, by name, of a TypedDict whose fields are each `Annotated[<type>, Setting(…)]`."""
    return {name: hint.__metadata__[0] for name, hint in get_type_hints(declared, include_extras=True).items()}


def takes_settings(function: _Function) -> _Function:
    """Show the settings of a function with `**settings: Unpack[<TypedDict>]` in its signature and help.

    Unknown keywords raise TypeError, with a suggestion.
    """
    signature = inspect.signature(function, eval_str=True)
    *parameters, unpacked = signature.parameters.values()
    (declared,) = get_args(unpacked.annotation)
    settings, types = settings_of(declared), get_type_hints(declared)
    setting_parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=setting.default, annotation=types[name])
        for name, setting in settings.items()
    ]
    known = [parameter.name for parameter in (*parameters, *setting_parameters)]

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f". Did you mean {close[0]!r}?" if close else ""
                raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}{hint}")
        return function(*args, **keywords)

    call.__dict__["__signature__"] = signature.replace(parameters=[*parameters, *setting_parameters])
    call.__doc__ = f"{inspect.getdoc(function)}\n\n{_help(settings)}"
    return cast("_Function", call)


def _help(settings: dict[str, Setting]) -> str:
    """The part of a docstring that explains settings."""
    lines = ["Settings:"]
    for name, setting in settings.items():
        text = f"{name}: {setting.meaning} Give {setting.accepts}."
        lines.append(
            textwrap.fill(text, _HELP_WIDTH, break_on_hyphens=False, initial_indent=" " * 4, subsequent_indent=" " * 8)
        )
    return "\n".join(lines)
