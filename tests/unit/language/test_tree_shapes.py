"""A clause whose shape is known is read as if it were parsed."""

import pytest

from eventcube.language import tree_shapes
from eventcube.language.parse import parse
from eventcube.nodes import walk

PAIRS = [
    ("PATTERN SEQ(A a, B b) WITHIN 20 ms AGG COUNT(*)", "PATTERN  SEQ(Long name, Other z)  WITHIN 5 ms AGG COUNT( * )"),
    ("PATTERN SEQ(A a, !B b, C c) WHERE a.x = 1", "PATTERN SEQ(Aa a, ! Bb bb, C c)\nWHERE aaa.xyz  =  12345"),
    ("PATTERN SEQ(A a, AND(B b, C c, b.x < c.x + 2))", "PATTERN SEQ(A one, AND(B two, C three, two.x < three.x + 22))"),
    ("PATTERN OR(A a, * b) RETURN a.x AS y, b", "PATTERN OR( Alpha a ,* beta ) RETURN a.volume AS v , beta"),
    (
        "PATTERN A a WHERE a.x IN (1, 2) AND NOT (a.y LIKE 'a%')",
        "PATTERN A b WHERE b.x IN (11, 2) AND NOT (b.yy LIKE 'b')",
    ),
    (
        "PATTERN A a GROUPBY a.k AGG SUM(a.x) HAVING k > 1",
        "PATTERN A abc GROUPBY abc.k AGG MAX(abc.price) HAVING k > 10",
    ),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_known_shape_gives_the_same_query_and_places(
    first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_shapes, "_known", {})
    parsed = parse(second)
    monkeypatch.setattr(tree_shapes, "_known", {})
    parse(first)
    shapes = dict(tree_shapes._known)
    known = parse(second)
    assert tree_shapes._known == shapes, "the second query has no other shape than the first"
    assert known == parsed
    assert [getattr(node, "span", None) for node in walk(known)] == [getattr(n, "span", None) for n in walk(parsed)]
