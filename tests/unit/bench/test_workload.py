import pytest

from eventcube.bench.workload import EVERY_QUERY, Q1, Q2, Q3, Q4, Q5, S1, Sequence
from eventcube.language.parse import parse


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (Q1, "SEQ(INTC a, DELL b, QQQ c) WITHIN 50 ms"),
        (Q2, "SEQ(INTC a, DELL b, QQQ c, b.price > a.price, c.price > b.price) WITHIN 100 ms"),
        (Q3, "SEQ(INTC a, DELL b, QQQ c, a.account = b.account = c.account) WITHIN 60 s"),
        (Q4, "SEQ(INTC a, !MSFT m, FCF b) WITHIN 100 ms"),
        (Q5, "SEQ(QQQ a, DELL b, INTC c, FCF d, ROM e) WITHIN 60 ms"),
        (S1, "SEQ(INTC a, DELL b, QQQ c, b.price > 1.12 * a.price, c.price > 1.12 * b.price) WITHIN 1 s"),
        (Q4.keyed(), "SEQ(INTC a, !(MSFT m, m.account = a.account), FCF b, a.account = b.account) WITHIN 100 s"),
    ],
    ids=lambda value: value.name if isinstance(value, Sequence) else "",
)
def test_text_says_what_the_fields_say(query: Sequence, text: str) -> None:
    assert query.text.startswith(f"PATTERN {text} RETURN a.ts AS a, b.ts AS b")


def test_a_query_that_counts() -> None:
    assert Q1.counting == "PATTERN SEQ(INTC a, DELL b, QQQ c) WITHIN 50 ms AGG COUNT(*)"


@pytest.mark.parametrize("query", EVERY_QUERY.values(), ids=EVERY_QUERY)
def test_every_query_can_be_read(query: Sequence) -> None:
    parse(query.text)
