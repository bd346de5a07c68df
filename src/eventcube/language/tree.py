"""The attributes in syntax trees, and conditions split at AND."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventcube.language.syntax import AllOf, Attribute, Every, Qual, Value
from eventcube.nodes import walk


def attributes(node: Value | Every | Qual) -> Iterator[Attribute]:
    """Every attribute in a value or a condition, in the order of the text."""
    return (found for found in walk(node) if isinstance(found, Attribute))


def conjuncts(quals: Iterable[Qual]) -> Iterator[Qual]:
    """The conditions, split at every AND and every chain at their top."""
    for qual in quals:
        if isinstance(qual, AllOf):
            yield from conjuncts(qual.quals)
        else:
            yield qual
