"""HTML for notebooks: preformatted text, folding trees, tables of two columns.

Styles are inline, and colours work on light and dark backgrounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

_FONT = "font-family:monospace;font-size:.95em;line-height:1.45"
_CELL = "text-align:left;vertical-align:top;padding:0;border:none;white-space:pre-wrap"
_BRANCH = "margin:0 0 0 .35em;padding-left:1em;border-left:1px solid rgba(128,128,128,.45)"
_KEYWORDS = (
    "PATTERN|FROM|WHERE|PARTITION BY|GROUPBY|AGG|HAVING|WITHIN|RETURN|LIMIT|SEQ|AND|OR|NOT|AS|IN|BETWEEN|LIKE|IS|NULL"
)
# Quoted text has no keywords.
_TOKENS = re.compile(rf"('(?:[^']|'')*'|`(?:[^`]|``)*`)|\b({_KEYWORDS})\b")


@dataclass(slots=True)
class Branch:
    """A line of a tree, with the lines below it."""

    text: str
    below: list[Branch] = field(default_factory=list)


def page(*pieces: str) -> str:
    """The pieces one below the other."""
    return f'<div style="{_FONT};max-width:100%;overflow-x:auto">{"".join(pieces)}</div>'


def laid_out(text: str) -> str:
    """Preformatted text."""
    return _pre(escape(text, quote=False))


def query(text: str) -> str:
    """A query with its keywords in bold."""

    def highlight(token: re.Match[str]) -> str:
        return token[1] or f"<b>{token[2]}</b>"

    return _pre(_TOKENS.sub(highlight, escape(text, quote=False)))


def _pre(content: str) -> str:
    return f'<pre style="{_FONT};margin:.4em 0;background:none;color:inherit">{content}</pre>'


def heading(text: str) -> str:
    """A line in bold."""
    return f"<div><b>{escape(text, quote=False)}</b></div>"


def note(text: str) -> str:
    """A dimmed line."""
    return f'<div style="opacity:.7">{escape(text, quote=False)}</div>'


def table(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values."""
    cells = (
        f'<tr style="background:none"><td style="{_CELL};padding-right:1em;opacity:.7">{escape(name, quote=False)}</td>'
        f'<td style="{_CELL}">{escape(value, quote=False)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="border:none;border-collapse:collapse;margin:.2em 0;{_FONT}">{"".join(cells)}</table>'


def tree(branches: Sequence[Branch]) -> str:
    """A tree whose inner branches can be folded."""
    return "".join(_tree(branches))


def _tree(branches: Sequence[Branch]) -> Iterator[str]:
    for branch in branches:
        text = f'<span style="white-space:pre-wrap">{escape(branch.text, quote=False)}</span>'
        if branch.below:
            yield f'<details open style="margin:0"><summary>{text}</summary><div style="{_BRANCH}">'
            yield from _tree(branch.below)
            yield "</div></details>"
        else:
            yield f"<div>{text}</div>"


def branches(lines: Iterable[str]) -> list[Branch]:
    """Lines as a tree: a line belongs below the last one that is indented less.

    >>> branches(["a", "  b", "c"])
    [Branch(text='a', below=[Branch(text='b', below=[])]), Branch(text='c', below=[])]
    """
    top = Branch("")
    path: list[tuple[int, Branch]] = [(-1, top)]
    for line in lines:
        text = line.lstrip(" ")
        depth = len(line) - len(text)
        while depth <= path[-1][0]:
            path.pop()
        branch = Branch(text.rstrip())
        path[-1][1].below.append(branch)
        path.append((depth, branch))
    return top.below
