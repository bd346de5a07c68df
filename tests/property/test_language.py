"""Printing and parsing undo each other, and no text whatever makes the parser fail but in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st
from tests.golden.titled import read_titled

from eventcube.errors import QuerySyntaxError
from eventcube.language import syntax as s
from eventcube.language.build_clauses import LONGEST_BUCKET
from eventcube.language.functions import FUNCTIONS
from eventcube.language.identifiers import KEYWORDS
from eventcube.language.like import wrong_escape
from eventcube.language.parse import parse
from eventcube.language.printer import column_name, print_query

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGE = 2**63 - 1

words = [
    *KEYWORDS,
    "any",
    "like",
    "distinct",
    "escape",
    "at",
    "level",
    "partition",
    "abs",
    "hour",
    "group",
    "by",
    "Seq",
    "s",
    "m",
    "h",
    "min",
    "events",
    "count",
    "sum",
    "timestamp",
    "interval",
    "x1",
    "every",
    "per",
    "followed",
    "select",
    "define",
    "match_recognize",
    "order",
    "on",
]
names = st.one_of(
    st.sampled_from([*words, "ins-type", "a.b", "`", "ſeq", "İn", "größe", "1st", " ", "--", "'", "é"]),
    st.from_regex(r"[A-Za-z_]\w{0,4}", fullmatch=True),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
)
moments = st.datetimes(timezones=st.just(UTC)).map(lambda m: (m - _EPOCH) // timedelta(microseconds=1))
literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-_LARGE - 1, _LARGE),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.sampled_from(["it's", '"', "--", "''"]),
)
attributes = st.builds(s.Attribute, names, names)


def _calls(inner: st.SearchStrategy[s.Value]) -> st.SearchStrategy[s.Call]:
    """A function of as many values as it takes."""

    def call(function: str) -> st.SearchStrategy[s.Call]:
        least, most = FUNCTIONS[function]
        arguments = st.lists(inner, min_size=least, max_size=most or 3).map(tuple)
        return st.builds(s.Call, st.just(function), arguments)

    return st.sampled_from(sorted(FUNCTIONS)).flatmap(call)


values: st.SearchStrategy[s.Value] = st.recursive(
    st.one_of(
        attributes,
        st.builds(s.Literal, literals),
        st.builds(s.Duration, st.integers(-_LARGE, _LARGE)),
        st.builds(s.Timestamp, moments, st.booleans()),
    ),
    lambda inner: (
        st.builds(s.Arithmetic, st.sampled_from("+-*/%"), inner, inner) | st.builds(s.Minus, inner) | _calls(inner)
    ),
    max_leaves=5,
)
comparisons = st.builds(s.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), values, values)


@st.composite
def chains(draw: st.DrawFn) -> s.AllOf:
    operands = draw(st.lists(values, min_size=3, max_size=4))
    ops = draw(st.lists(st.sampled_from(["=", "<", "<="]), min_size=3, max_size=3))
    pairs = zip(ops, operands, operands[1:], strict=False)
    return s.AllOf(tuple(s.Comparison(op, left, right) for op, left, right in pairs))


def _lists(of: st.SearchStrategy[s.Qual]) -> st.SearchStrategy[tuple[s.Qual, ...]]:
    return st.lists(of, min_size=2, max_size=3).map(tuple)


quals: st.SearchStrategy[s.Qual] = st.recursive(
    st.one_of(
        comparisons,
        chains(),
        st.builds(s.In, values, st.lists(values, min_size=1, max_size=3).map(tuple)),
        st.builds(s.Between, values, values, values),
        st.builds(s.IsNull, values),
        st.builds(
            s.Like, values, st.sampled_from(["", "a%", "_'", "%%"]), st.sampled_from(["\\", "#", "'", "%"])
        ).filter(lambda like: wrong_escape(like.pattern, like.escape) is None),
        st.builds(s.Truth, attributes | st.builds(s.Literal, st.booleans())),
    ),
    lambda inner: st.one_of(
        st.builds(s.AllOf, _lists(inner)), st.builds(s.AnyOf, _lists(inner)), st.builds(s.NotQual, inner)
    ),
    max_leaves=4,
)
qual_lists = st.lists(quals, max_size=2).map(tuple)


@st.composite
def patterns(draw: st.DrawFn, taken: set[str], depth: int = 3) -> s.Pattern:
    """A pattern whose components have names of their own, none of them `taken`."""
    kind = draw(st.sampled_from(["component"] if depth == 0 else ["component", "seq", "and", "or"]))
    if kind == "component":
        name = draw(names)
        while name in taken:
            name += "_"
        taken.add(name)
        return s.Component(name) if draw(st.booleans()) else s.Component(draw(st.none() | names), name)
    parts = tuple(draw(patterns(taken, depth - 1)) for _ in range(draw(st.integers(1, 2))))
    own = draw(qual_lists)
    if kind == "or":
        return s.Or(parts, own)
    negated = [s.Not(draw(patterns(taken, depth - 1)), draw(qual_lists)) for _ in range(draw(st.integers(0, 1)))]
    both = tuple(draw(st.permutations([*parts, *negated])))
    return s.Seq(both, own) if kind == "seq" else s.And(both, own)


aliases = st.none() | names
levels = st.builds(s.Level, names, st.integers(1, 9))
buckets = st.builds(s.Every, values, st.integers(1, LONGEST_BUCKET))
items = st.builds(s.Item, st.builds(s.Variable, names) | levels | buckets | values, aliases)
aggregates = st.one_of(
    st.builds(s.Aggregate, st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX"]), values, aliases),
    st.builds(s.Aggregate, st.just("COUNT"), st.none(), aliases),
    st.builds(s.Aggregate, st.just("COUNT"), values, aliases, st.just(True)),
)
of_groups = st.builds(s.Column, names) | aggregates.map(lambda a: replace(a, alias=None))
having = st.lists(
    st.builds(s.Comparison, st.sampled_from(["=", "<"]), of_groups, of_groups | values)
    | st.builds(s.Truth, of_groups)
    | st.builds(s.IsNull, st.builds(s.Minus, of_groups)),
    max_size=3,
).map(tuple)
windows = st.builds(s.TimeWindow, st.integers(1, _LARGE)) | st.builds(s.CountWindow, st.integers(1, _LARGE))


@st.composite
def queries(draw: st.DrawFn) -> s.Query:
    grouped: list[s.Item] = []
    computed: list[s.Aggregate] = []
    returned: list[s.Item] = []
    per: s.Variable | None = None
    if draw(st.booleans()):
        columns = draw(st.lists(items | aggregates, max_size=4, unique_by=column_name))
        computed = [c for c in columns if isinstance(c, s.Aggregate)]
        grouped = [c for c in columns if isinstance(c, s.Item)] if computed else []
        if computed and not grouped and draw(st.booleans()):
            others = {column_name(c) for c in computed}
            per = s.Variable(draw(names.filter(lambda name: name not in others)))
    else:
        returned = draw(st.lists(items, max_size=3, unique_by=column_name))
    return s.Query(
        pattern=draw(patterns(set())),
        from_=draw(aliases),
        where=draw(qual_lists),
        partition_by=tuple(draw(st.lists(st.builds(s.Column, names), max_size=2))),
        group_by=tuple(grouped),
        agg=tuple(computed),
        per=per,
        having=draw(having) if computed else (),
        within=draw(st.none() | windows),
        returns=tuple(returned),
        limit=draw(st.none() | st.integers(1, _LARGE)),
    )


@given(queries())
@example(s.Query(s.Component("group", "by")))
@example(s.Query(s.Component("at", "level")))
@example(s.Query(s.Component("partition", "by")))
@example(s.Query(s.Component("per", "per"), agg=(s.Aggregate("COUNT", alias="per"),), per=s.Variable("every")))
@example(
    s.Query(
        s.Component("every", "every"),
        group_by=(s.Item(s.Every(s.Attribute("every", "every"), 1)),),
        agg=(s.Aggregate("COUNT"),),
    )
)
def test_a_printed_query_parses_to_itself(query: s.Query) -> None:
    # Texts of trees tell 1 from 1.0 and TRUE, which are equal in Python.
    assert repr(parse(print_query(query))) == repr(query)


signs = [
    "->",
    "=>",
    "+",
    "{3}",
    "[0]",
    "~",
    "(",
    ")",
    ",",
    "!",
    "=",
    "<",
    "-",
    "--",
    "*",
    "%",
    ".",
    ";",
    "&",
    "'",
    '"',
    "`",
    "é",
    "SEQ(",
    "AND(",
    "OR(",
]
phrases = [
    "A",
    "a",
    "* a",
    "ANY",
    "LIKE 'a%'",
    "COUNT(*)",
    "COUNT(DISTINCT",
    "ROUND(",
    "AT LEVEL 1",
    "PARTITION BY",
    "a.x",
    "b.y",
    "WITIN",
    "5",
    "2.5",
    "'t'",
    "`n`",
    "10 minutes",
    "TIMESTAMP '2024-01-31'",
    "\n",
]
soups = st.lists(st.sampled_from([*words, *signs, *phrases]), max_size=25).map(" ".join)


def _read(text: str) -> s.Query | QuerySyntaxError:
    try:
        return parse(text)
    except QuerySyntaxError as error:
        return error


@given(soups | soups.map("PATTERN SEQ(A a, ".__add__) | st.text(max_size=30))
def test_any_text_is_a_query_or_is_explained(text: str) -> None:
    match _read(text):
        case QuerySyntaxError() as error:
            assert str(error).startswith("error[EC1")
            assert all(d.span and 0 <= d.span.start <= d.span.end <= len(text) for d in error.diagnostics)
        case query:
            assert parse(print_query(query)) == query


written = st.sampled_from([case.given for file in ("papers.txt", "printed.txt") for case in read_titled(file)])


@given(written, st.data())
def test_a_query_with_a_piece_cut_out_is_a_query_or_is_explained(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 8)))
    match _read(text[:start] + text[stop:]):
        case QuerySyntaxError() as error:
            assert str(error).startswith("error[EC1")
        case query:
            assert parse(print_query(query)) == query
