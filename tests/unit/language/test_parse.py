"""What a text means as a tree."""

from __future__ import annotations

import pickle
import sys
import threading

import pytest

from eventcube.errors import QuerySyntaxError
from eventcube.language.parse import parse
from eventcube.language.printer import print_query
from eventcube.language.syntax import (
    Aggregate,
    AllOf,
    And,
    AnyOf,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Column,
    Comparison,
    Component,
    CountWindow,
    Duration,
    In,
    IsNull,
    Item,
    Level,
    Like,
    Literal,
    Minus,
    Not,
    NotQual,
    Or,
    Qual,
    Seq,
    Timestamp,
    TimeWindow,
    Truth,
    Value,
    Variable,
)

AX, AY, BX, CX = Attribute("a", "x"), Attribute("a", "y"), Attribute("b", "x"), Attribute("c", "x")


def where(text: str) -> tuple[Qual, ...]:
    return parse(f"PATTERN SEQ(A a, B b, C c) WHERE {text}").where


def value(text: str) -> Value | Variable | Level:
    return parse(f"PATTERN SEQ(A a, B b) RETURN {text} AS v").returns[0].value


def test_a_nested_pattern() -> None:
    query = parse("PATTERN SEQ(Recycle r, !AND(Sharpen s, Disinfect, s.id = r.id), OR(A a, B b))")
    same_id = Comparison("=", Attribute("s", "id"), Attribute("r", "id"))
    inner = And((Component("Sharpen", "s"), Component("Disinfect")), (same_id,))
    either = Or((Component("A", "a"), Component("B", "b")))
    assert query.pattern == Seq((Component("Recycle", "r"), Not(inner), either))


def test_a_negation_in_parentheses_has_quals_of_its_own() -> None:
    query = parse("PATTERN SEQ(A a, !(B b, b.x = a.x, b.x), C c)")
    assert isinstance(query.pattern, Seq)
    assert query.pattern.parts[1] == Not(Component("B", "b"), (Comparison("=", BX, AX), Truth(BX)))


def test_a_part_may_follow_a_qual() -> None:
    assert parse("PATTERN SEQ(A a, a.x = b.x, B b, C)") == parse("PATTERN SEQ(A a, B b, C, a.x = b.x)")


def test_clauses_in_any_order() -> None:
    one = parse("PATTERN A a FROM s WHERE a.x = 1 WITHIN 5 s RETURN a LIMIT 2")
    other = parse("LIMIT 2 RETURN a WITHIN 5 s WHERE a.x = 1 FROM s PATTERN A a;")
    assert one == other
    assert one.from_ == "s"
    assert one.limit == 2


def test_keywords_in_any_case_and_comments() -> None:
    text = "pattern Seq(A a, -- the first\n  b B) Within 5 MINUTES -- done"
    assert parse(text).pattern == Seq((Component("A", "a"), Component("b", "B")))


@pytest.mark.parametrize(
    "name",
    [
        *("s", "m", "h", "min", "events", "count", "sum", "max", "group", "by", "timestamp"),
        *("abs", "Round", "coalesce", "like", "LIKE", "distinct", "escape", "at", "level", "partition"),
    ],
)
def test_units_and_functions_are_free_as_names(name: str) -> None:
    query = parse(f"PATTERN SEQ({name} {name}, B b, {name}.{name} > 1) WITHIN 5 min RETURN {name}, {name}.{name}")
    assert query.pattern == Seq(
        (Component(name, name), Component("B", "b")), (Comparison(">", Attribute(name, name), Literal(1)),)
    )
    assert [item.value for item in query.returns] == [Variable(name), Attribute(name, name)]


@pytest.mark.parametrize("name", ["limit", "From", "in", "AND", "is", "null", "groupby", "within"])
def test_any_word_is_free_after_a_dot(name: str) -> None:
    assert where(f"a.{name} = 1") == (Comparison("=", Attribute("a", name), Literal(1)),)


@pytest.mark.parametrize("written", ["ANY a", "any a", "* a", "*a"])
def test_an_event_of_any_type(written: str) -> None:
    assert parse(f"PATTERN SEQ({written}, B b)").pattern == Seq((Component(None, "a"), Component("B", "b")))
    assert parse(f"PATTERN {written}").pattern == Component(None, "a")
    negated = parse(f"PATTERN SEQ(B b, !{written}, !(* x, x.k = b.k), !*)").pattern
    assert isinstance(negated, Seq)
    assert negated.parts[1] == Not(Component(None, "a"))
    assert negated.parts[3] == Not(Component(None))


def test_a_type_called_any_is_in_backticks() -> None:
    query = parse("PATTERN SEQ(`ANY` a, `any`, ANY) WHERE ANY.x = 1 AND `any`.x = 2")
    assert query.pattern == Seq((Component("ANY", "a"), Component("any"), Component(None)))
    assert query.where[0] == Comparison("=", Attribute("ANY", "x"), Literal(1))


def test_functions_are_read_in_any_case() -> None:
    assert value("coalesce(a.x, Abs(b.x), -1)") == Call("COALESCE", (AX, Call("ABS", (BX,)), Literal(-1)))
    assert where("round(a.x, -2) = 1") == (Comparison("=", Call("ROUND", (AX, Literal(-2))), Literal(1)),)
    assert where("COALESCE(a.x, TRUE)") == (Truth(Call("COALESCE", (AX, Literal(True)))),)


def test_like_and_what_it_escapes() -> None:
    assert where("a.x LIKE 'a%'") == (Like(AX, "a%"),)
    assert where("a.x not like 'a#%' escape '#'") == (NotQual(Like(AX, "a#%", "#")),)
    assert where(r"a.like LIKE '\%'") == (Like(Attribute("a", "like"), r"\%"),)


def test_groups_and_what_holds_of_them() -> None:
    query = parse(
        "PATTERN A a PARTITION BY k, `my key` GROUP BY a AT LEVEL 2 AS sort, a.x AGG COUNT(DISTINCT a.y) AS n "
        "HAVING n > 1 AND count(distinct a.y) = COUNT, SUM(a.x) IS NULL"
    )
    assert query.partition_by == (Column("k"), Column("my key"))
    assert query.group_by == (Item(Level("a", 2), "sort"), Item(AX))
    assert query.agg == (Aggregate("COUNT", AY, "n", distinct=True),)
    distinct = Aggregate("COUNT", AY, distinct=True)
    assert query.having == (
        Comparison(">", Column("n"), Literal(1)),
        Comparison("=", distinct, Column("COUNT")),
        IsNull(Aggregate("SUM", AX)),
    )


def test_backticks_hold_any_name() -> None:
    query = parse("PATTERN SEQ(`SEQ` `or`, B b) FROM `a b`.c WHERE `or`.`x``y` = 1")
    assert query.pattern == Seq((Component("SEQ", "or"), Component("B", "b")))
    assert query.from_ == "a b.c"
    assert query.where == (Comparison("=", Attribute("or", "x`y"), Literal(1)),)


@pytest.mark.parametrize(("written", "op"), [("=", "="), ("==", "="), ("!=", "!="), ("<>", "!="), ("<=", "<=")])
def test_comparisons_have_one_spelling_in_the_tree(written: str, op: str) -> None:
    assert where(f"a.x {written} b.x") == (Comparison(op, AX, BX),)


def test_a_chain_compares_neighbours() -> None:
    assert where("a.x = b.x = c.x") == (AllOf((Comparison("=", AX, BX), Comparison("=", BX, CX))),)
    assert where("1 < a.x <= b.x") == (AllOf((Comparison("<", Literal(1), AX), Comparison("<=", AX, BX))),)


def test_a_comma_and_a_top_level_and_mean_the_same() -> None:
    assert where("a.x AND b.x, c.x") == (Truth(AX), Truth(BX), Truth(CX))
    assert where("(a.x AND b.x), c.x") == (AllOf((Truth(AX), Truth(BX))), Truth(CX))


def test_not_binds_closer_than_and_and_and_closer_than_or() -> None:
    assert where("NOT a.x = 1 AND b.x OR c.x") == (
        AnyOf((AllOf((NotQual(Comparison("=", AX, Literal(1))), Truth(BX))), Truth(CX))),
    )


def test_tests_of_values() -> None:
    low, high = Literal(1), Literal(2)
    assert where("a.x IN (1, 2)") == (In(AX, (low, high)),)
    assert where("a.x NOT IN (1, 2)") == (NotQual(In(AX, (low, high))),)
    assert where("a.x BETWEEN 1 AND 2 AND b.x") == (Between(AX, low, high), Truth(BX))
    assert where("a.x NOT BETWEEN 1 AND 2") == (NotQual(Between(AX, low, high)),)
    assert where("a.x IS NULL, b.x IS NOT NULL") == (IsNull(AX), NotQual(IsNull(BX)))
    assert where("TRUE OR (a.x)") == (AnyOf((Truth(Literal(True)), Truth(AX))),)


def test_arithmetic_groups_as_in_school() -> None:
    assert value("a.x + a.y * 2") == Arithmetic("+", AX, Arithmetic("*", AY, Literal(2)))
    assert value("(a.x + a.y) * 2") == Arithmetic("*", Arithmetic("+", AX, AY), Literal(2))
    assert value("a.x - a.y - 2") == Arithmetic("-", Arithmetic("-", AX, AY), Literal(2))
    assert value("-a.x % 2") == Arithmetic("%", Minus(AX), Literal(2))


@pytest.mark.parametrize(
    ("written", "constant"),
    [
        ("10", Literal(10)),
        ("-10", Literal(-10)),
        ("-9223372036854775808", Literal(-(2**63))),
        ("- 9223372036854775808", Literal(-(2**63))),
        ("a.x - -9223372036854775808", Arithmetic("-", AX, Literal(-(2**63)))),
        ("-(-9223372036854775808)", Minus(Literal(-(2**63)))),
        ("2.5", Literal(2.5)),
        (".5", Literal(0.5)),
        ("1e-3", Literal(0.001)),
        ("'it''s'", Literal("it's")),
        ('"say ""hi"""', Literal('say "hi"')),
        ("true", Literal(True)),
        ("NULL", Literal(None)),
        ("5 minutes", Duration(300_000_000)),
        ("-5 minutes", Duration(-300_000_000)),
        ("INTERVAL 5 minutes", Duration(300_000_000)),
        ("INTERVAL '5 minutes 1s'", Duration(301_000_000)),
        ("TIMESTAMP '1970-01-01 00:00:01'", Timestamp(1_000_000)),
        ("TIMESTAMP '1970-01-01T02:00:01+02:00'", Timestamp(1_000_000, zoned=True)),
        ("TIMESTAMP '1970-01-01T00:00:00.000001Z'", Timestamp(1, zoned=True)),
        ("TIMESTAMP '1969-12-31'", Timestamp(-86_400_000_000)),
    ],
)
def test_constants(written: str, constant: Value) -> None:
    assert repr(value(written)) == repr(constant)


def test_the_smallest_number_stands_wherever_a_value_may() -> None:
    least = Literal(-(2**63))
    written = "-9223372036854775808"
    assert where(f"a.x = {written}") == (Comparison("=", AX, least),)
    assert where(f"a.x IN (1, {written})") == (In(AX, (Literal(1), least)),)
    assert where(f"a.x BETWEEN {written} AND 1") == (Between(AX, least, Literal(1)),)
    query = parse(f"PATTERN A a WHERE a.x BETWEEN {written} AND -9223372036854775807 RETURN {written} + a.x")
    assert parse(print_query(query)) == query


@pytest.mark.parametrize(
    "written",
    [
        "9223372036854775808",
        "a.x - 9223372036854775808",
        "-(9223372036854775808)",
        "- -9223372036854775808",
        "-9223372036854775809",
        "- - 9223372036854775808 + 9223372036854775808",
    ],
)
def test_a_number_beyond_64_bits_is_too_large(written: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        value(written)
    assert {d.code for d in caught.value.diagnostics} == {"EC111"}


@pytest.mark.parametrize("clause", ["LIMIT 9223372036854775808", "WITHIN 9223372036854775808 events"])
def test_a_count_beyond_64_bits_is_too_large(clause: str) -> None:
    with pytest.raises(QuerySyntaxError, match="this number is too large"):
        parse(f"PATTERN A a {clause}")


@pytest.mark.parametrize(
    ("written", "microseconds"),
    [
        ("7 us", 7),
        ("1 microsecond", 1),
        ("50ms", 50_000),
        ("2.5 s", 2_500_000),
        ("3 SECS", 3_000_000),
        ("2 m", 120_000_000),
        ("10 minutes", 600_000_000),
        ("1 hour 30 min", 5_400_000_000),
        ("1 h 1 h", 7_200_000_000),
        ("1 day", 86_400_000_000),
        ("2 weeks", 1_209_600_000_000),
        ("0.000001 seconds", 1),
    ],
)
def test_windows_of_time(written: str, microseconds: int) -> None:
    assert parse(f"PATTERN A WITHIN {written}").within == TimeWindow(microseconds)


def test_windows_of_events() -> None:
    assert parse("PATTERN A WITHIN 500 events").within == CountWindow(500)
    assert parse("PATTERN A WITHIN 1 EVENT").within == CountWindow(1)
    assert parse("PATTERN A").within is None


def test_aggregates_and_groups() -> None:
    query = parse("PATTERN SEQ(A a, B b) GROUP BY a, b.x AS k AGG count, COUNT(*) AS n, Sum(a.x + 1) AS total")
    assert query.group_by == (Item(Variable("a")), Item(BX, "k"))
    total = Aggregate("SUM", Arithmetic("+", AX, Literal(1)), "total")
    assert query.agg == (Aggregate("COUNT"), Aggregate("COUNT", None, "n"), total)
    assert query.group_by == parse("PATTERN SEQ(A a, B b) GROUPBY a, b.x AS k AGG COUNT").group_by


def test_spans_show_where_a_thing_was_written() -> None:
    text = "PATTERN SEQ(A a, !(B b))\nWHERE a.x  =  b.y = 5 minutes"
    query = parse(text, "file.neel")
    chain = query.where[0]
    assert isinstance(query.pattern, Seq)
    assert isinstance(chain, AllOf)
    shown = [text[n.span.start : n.span.end] for n in (query.pattern, query.pattern.parts[1], chain, *chain.quals)]
    assert shown == [
        "SEQ(A a, !(B b))",
        "!(B b)",
        "a.x  =  b.y = 5 minutes",
        "a.x  =  b.y",
        "b.y = 5 minutes",
    ]
    assert (query.text, query.source) == (text, "file.neel")


def test_the_source_is_named_in_errors_and_errors_survive_pickling() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse("PATTERN", "fraud.neel")
    assert " --> fraud.neel:1:1" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "deep",
    [
        "PATTERN " + "SEQ(" * 100 + "A" + ")" * 100,
        "PATTERN A WHERE " + "NOT " * 90 + "A.x",
        "PATTERN A WHERE A.x = " + "1 + " * 290 + "1",
        "PATTERN A WHERE " + "(" * 300 + "A.x = 1" + ")" * 300,
        "PATTERN A WHERE " + "A.x = 1 AND " * 2000 + "A.x = 1",
    ],
    ids=["patterns", "NOT", "sums", "parentheses", "a long list"],
)
def test_deep_queries_are_read_and_printed(deep: str) -> None:
    query = parse(deep)
    assert parse(print_query(query)) == query


@pytest.mark.parametrize(
    "deep",
    [
        "PATTERN " + "SEQ(" * 4_000 + "A" + ")" * 4_000,
        "PATTERN SEQ(A, !" + "AND(" * 200 + "A" + ")" * 200 + ")",
        "PATTERN A WHERE " + "NOT " * 4_000 + "A.x",
        "PATTERN " + "SEQ(" * 101 + "A" + ")" * 101,
        "PATTERN A WHERE A.x = " + "(1 + " * 200 + "1" + ")" * 200,
        "PATTERN A WHERE A.x = " + "- " * 4_000 + "A.x",
        "PATTERN A WHERE " + "(A.y OR A.z AND " * 200 + "A.x" + ")" * 200,
    ],
    ids=["patterns", "negated", "NOT", "one too many", "sums", "signs", "conditions"],
)
def test_queries_too_deep_are_refused_in_words(deep: str) -> None:
    with pytest.raises(QuerySyntaxError, match="nested more than 100 levels deep"):
        parse(deep)


def test_a_sum_without_end_is_refused_in_words() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse("PATTERN A WHERE A.x = " + "1 + " * 4_000 + "1")
    assert caught.value.message == "more than 300 terms in one computation"


def test_depth_costs_little_of_the_callers_stack() -> None:
    """A query of the greatest depth is read and printed where the caller has used up half the stack."""
    text = "PATTERN " + "SEQ(" * 95 + "A" + ")" * 95
    results: list[str] = []

    def fall(levels: int) -> None:
        if levels:
            fall(levels - 1)
        else:
            results.append(print_query(parse(text)))

    thread = threading.Thread(target=fall, args=(sys.getrecursionlimit() // 2,))
    thread.start()
    thread.join()
    assert results
