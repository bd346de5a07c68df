"""Every sentence of the meaning of a query that concerns matches, as a small case done by hand."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from eventcube.language.parse import parse
from tests.oracle.shorthand import matches, stream

TREE = {"Laptop": "Computer", "Gaming": "Laptop", "Server": "Computer"}


@dataclass(frozen=True)
class Example:
    """A titled question with its answer; matches are compared as sets unless `ordered`."""

    title: str
    query: str
    events: str
    expected: tuple[str, ...] = ()
    key: str | None = None
    typed: bool = True
    concepts: Mapping[str, str] | None = None
    ordered: bool = False


def none(title: str, query: str, events: str, *, key: str | None = None) -> Example:
    return Example(title, query, events, (), key)


def some(title: str, query: str, events: str, *expected: str, key: str | None = None) -> Example:
    return Example(title, query, events, expected, key)


EVENTS = [
    none("events with one time come neither before nor after one another", "SEQ(A, B)", "A1 B1"),
    some("an order column breaks ties in time", "SEQ(A, B)", "B1/2 A1/1", "A1/1 B1/2"),
    none("ties in the order column too stay ties", "SEQ(A, B)", "A1/1 B1/1"),
    some("time comes before the order column", "SEQ(A, B)", "A1/9 B2/1", "A1/9 B2/1"),
    some("arrival does not order events", "SEQ(A, B)", "B2 A1", "A1 B2"),
    some("a count window counts events of all types", "SEQ(A, B) WITHIN 3 events", "A1 C2 A3 C4 B5", "A3 B5"),
    some("ties are counted in the order of arrival", "SEQ(A, B) WITHIN 2 events", "A1a C1 A1b B2", "A1b B2"),
    some(
        "positions count within the partition",
        "SEQ(A, B) WITHIN 2 events",
        "A1:k=1 C2:k=2 C3:k=2 B4:k=1",
        "A1 B4",
        key="k",
    ),
    none("a match lies within one partition", "SEQ(A, B)", "A1:k=1 B2:k=2", key="k"),
    some("what is negated lies within the partition too", "SEQ(A, !C, B)", "A1:k=1 C2:k=2 B3:k=1", "A1 B3", key="k"),
    Example(
        "without a type column every event can be every component",
        "SEQ(A, B) WHERE A.x = 1 AND B.x != 1",
        "E1:x=1 E2:x=1 E3:x=2",
        ("E1 E3", "E2 E3"),
        typed=False,
    ),
    Example(
        "a component takes events of its type and of all its descendants",
        "Computer c",
        "Computer1 Laptop2 Gaming3 Server4 Phone5",
        ("Computer1", "Laptop2", "Gaming3", "Server4"),
        concepts=TREE,
    ),
    Example("but none of its ancestors", "Laptop c", "Computer1 Gaming2", ("Gaming2",), concepts=TREE),
]

OPERATORS = [
    some("a primitive matches each event of its type", "A", "A1 B2 A3", "A1", "A3"),
    some("the same event takes part in many matches", "SEQ(A, B)", "A1 A2 B3 B4", "A1 B3", "A2 B3", "A1 B4", "A2 B4"),
    some("an event is bound at most once in a sequence", "SEQ(A a, A b)", "A1 A2", "A1 A2"),
    some("an event is bound at most once in an AND", "AND(A a, A b)", "A1 A2", "A1 A2", "A2 A1"),
    none("one event does not fill two components", "AND(A a, A b)", "A1"),
    some("an event is bound at most once across nested parts", "AND(SEQ(A a, B b), A c)", "A1 B2 A3", "A1 B2 A3"),
    none("parts of a sequence end strictly before the next begin", "SEQ(AND(A, B), C)", "A1 B3 C3"),
    some("the parts of an AND come in any order", "AND(A, B)", "B1 A2", "A2 B1"),
    some("the parts of an AND may be at one time", "AND(A, B)", "A1 B1", "A1 B1"),
    some("nested parts of an AND may overlap", "AND(SEQ(A, B), SEQ(C, D))", "A1 C2 B3 D4", "A1 B3 C2 D4"),
    some("a nested part of an AND may lie outside the others", "AND(A, B, SEQ(C, D))", "C1 A2 B3 D4", "A2 B3 C1 D4"),
    some("OR is the union, with null for what was not taken", "OR(A, SEQ(B, C))", "A1 B2 C3", "A1 - -", "- B2 C3"),
    some("an event that fits two alternatives gives two matches", "OR(A a, A b)", "A1", "A1 -", "- A1"),
    some("nested parts are flattened", "SEQ(A, AND(B, C), D)", "A1 C2 B3 D4", "A1 B3 C2 D4"),
    none("a nested part lies between its neighbours", "SEQ(A, AND(B, C), D)", "B1 A2 C3 D4"),
    none("neighbouring nested parts do not overlap", "SEQ(SEQ(A, B), SEQ(C, D))", "A1 C2 B3 D4"),
    some("they are joined on last before first", "SEQ(SEQ(A, B), SEQ(C, D))", "A1 B2 C3 D4", "A1 B2 C3 D4"),
    some(
        "an OR in a sequence is taken where it stands", "SEQ(A, OR(B, C), D)", "A1 B2 C3 D4", "A1 B2 - D4", "A1 - C3 D4"
    ),
]

NEGATION_IN_SEQ = [
    none("a negated event between its neighbours removes the match", "SEQ(A, !B, C)", "A1 B2 C3"),
    some("the interval is open at both ends", "SEQ(A, !B, C)", "A1 B1 B3 C3", "A1 C3"),
    some("an order column decides whether it lies inside", "SEQ(A, !B, C)", "A1/1 B1/0 C2/0", "A1/1 C2/0"),
    some("quals of the negated part count", "SEQ(A, !(B, B.x = A.x), C)", "A1:x=1 B2:x=2 C3", "A1 C3"),
    none("and remove it if they hold", "SEQ(A, !(B, B.x = A.x), C)", "A1:x=2 B2:x=2 C3"),
    some("a negated sequence needs its order", "SEQ(A, !SEQ(B, C), D)", "A1 C2 B3 D4", "A1 D4"),
    none("and removes the match in that order", "SEQ(A, !SEQ(B, C), D)", "A1 B2 C3 D4"),
    none("neighbouring negations are independent: the first", "SEQ(A, !B, !C, D)", "A1 B2 D4"),
    none("neighbouring negations are independent: the second", "SEQ(A, !B, !C, D)", "A1 C3 D4"),
    none("neighbouring negations are independent: order means nothing", "SEQ(A, !B, !C, D)", "A1 C2 B3 D4"),
    some("a negation in a negation brings the match back", "SEQ(A, !SEQ(B, !C, D), E)", "A1 B2 C3 D4 E5", "A1 E5"),
    none("its interval is set within the negated part", "SEQ(A, !SEQ(B, !C, D), E)", "A1 C2 B3 D4 E5"),
    none("a leading negation in a negated part opens at the neighbour", "SEQ(A, !SEQ(!C, D), E)", "C1 A2 D3 E4"),
    some("and sees what lies after it", "SEQ(A, !SEQ(!C, D), E)", "A1 C2 D3 E4", "A1 E4"),
    none(
        "a negated match may use an event that is bound outside its sequence", "AND(SEQ(A, !B n, C), B b)", "A1 B2 C3"
    ),
    none("a negated AND needs two events for two parts: given", "SEQ(A, !AND(B b, B c), D)", "A1 B2 B3 D4"),
    some("a negated AND needs two events for two parts: not given", "SEQ(A, !AND(B b, B c), D)", "A1 B2 D4", "A1 D4"),
    none("a negated OR removes it by either alternative", "SEQ(A, !OR(B, C), D)", "A1 C2 D3"),
]

BORDERS = [
    none("a leading negation looks back to the start of the window", "SEQ(!N, A, B) WITHIN 10 ms", "N2 A10 B12"),
    some("and no further", "SEQ(!N, A, B) WITHIN 10 ms", "N1 A10 B12", "A10 B12"),
    none("a trailing negation looks ahead to the end of the window", "SEQ(A, B, !N) WITHIN 10 ms", "A1 B3 N11"),
    some("and no further ahead", "SEQ(A, B, !N) WITHIN 10 ms", "A1 B3 N12", "A1 B3"),
    none("without a window it looks back without end", "SEQ(!N, A)", "N1 A99"),
    none("without a window it looks ahead without end", "SEQ(A, !N)", "A1 N99"),
    some("a leading negation ends strictly before the first part", "SEQ(!N, A) WITHIN 5 ms", "N3 A3", "A3"),
    some("a trailing one begins strictly after the last", "SEQ(A, !N) WITHIN 5 ms", "A3 N3", "A3"),
    none("count windows look back alike", "SEQ(!N, A, B) WITHIN 3 events", "N1 A2 B3"),
    some("count windows look back no further", "SEQ(!N, A, B) WITHIN 3 events", "N1 A2 C3 B4", "A2 B4"),
    none("count windows look ahead alike", "SEQ(A, B, !N) WITHIN 3 events", "A1 B2 N3"),
    some("count windows look ahead no further", "SEQ(A, B, !N) WITHIN 3 events", "A1 B2 C3 N4", "A1 B2"),
    some(
        "a negated composite at the border lies in the window whole", "SEQ(!SEQ(M, N), A) WITHIN 5 ms", "M1 N6 A7", "A7"
    ),
    none("inside it, it removes the match", "SEQ(!SEQ(M, N), A) WITHIN 5 ms", "M2 N6 A7"),
    none("a nested leading negation opens at the previous part", "SEQ(A, SEQ(!N, B), C)", "A1 N2 B3 C4"),
    some("a nested leading negation looks no further back", "SEQ(A, SEQ(!N, B), C)", "N1 A2 B3 C4", "A2 B3 C4"),
    none("a nested trailing negation closes at the next part", "SEQ(A, SEQ(B, !N), C)", "A1 B2 N3 C4"),
    some("a nested trailing negation looks no further ahead", "SEQ(A, SEQ(B, !N), C)", "A1 B2 C3 N4", "A1 B2 C3"),
    none("even if the next part is nested too", "SEQ(SEQ(A, !N), AND(B, C))", "A1 N2 C3 B4"),
    some("where the next part begins, not where it ends", "SEQ(SEQ(A, !N), AND(B, C))", "A1 C2 N3 B4", "A1 B4 C2"),
    none("nested first, it looks back to the window", "SEQ(SEQ(!N, A), B) WITHIN 5 ms", "N2 A5 B7"),
    some("that of the whole match", "SEQ(SEQ(!N, A), B) WITHIN 5 ms", "N1 A5 B7", "A5 B7"),
    none("a part of an AND has the interval of the AND", "AND(SEQ(A, !N), B)", "B1 A2 N3"),
    none("an AND in a sequence hands its interval on", "SEQ(AND(SEQ(A, !N), B), C)", "A1 B2 N3 C4"),
    some("up to the next part", "SEQ(AND(SEQ(A, !N), B), C)", "A1 B2 C3 N4", "A1 B2 C3"),
    none("an alternative of an OR has the interval of the OR", "OR(SEQ(A, !N), B) WITHIN 5 ms", "A1 N6"),
    some("the alternative not taken forbids nothing", "OR(SEQ(A, !N), B)", "B1 N2", "- B1"),
]

NEGATION_BESIDE = [
    some("a qual beside a negated part belongs to it", "SEQ(A, !C, B, C.x = A.x)", "A1:x=1 C2:x=2 B3", "A1 B3"),
    none("a qual beside a negated part that holds", "SEQ(A, !C, B, C.x = A.x)", "A1:x=1 C2:x=1 B3"),
    none("a qual on the negated event alone", "SEQ(A, !C, B) WHERE C.x > 1", "A1 C2:x=1 C3:x=2 B4"),
    some("a qual in WHERE, of an AND", "AND(A, !C, B) WHERE C.x = A.x", "A1:x=1 C2:x=2 B3", "A1 B3"),
    some("each link of a chain", "SEQ(A, !C, B) WHERE A.x = C.x = B.x", "A1:x=1 C2:x=1 B3:x=2", "A1 B3"),
    none("links of a chain that both hold", "SEQ(A, !C, B) WHERE A.x = C.x = B.x", "A1:x=1 C2:x=1 B3:x=1"),
    some(
        "what AND joins belongs where its variables are",
        "SEQ(A, !C, B) WHERE A.x = C.x AND A.x = B.x",
        "A1:x=1 C2:x=2 B3:x=1 B4:x=2",
        "A1 B3",
    ),
    some("a composite negated part", "SEQ(A, !SEQ(C, D), B, D.x > A.x)", "A1:x=1 C2 D3:x=1 B4", "A1 B4"),
    none("a composite negated part that is met", "SEQ(A, !SEQ(C, D), B, D.x > A.x)", "A1:x=1 C2 D3:x=2 B4"),
    none(
        "a part negated in a negated part: without its qual it would save the match",
        "SEQ(A, !SEQ(C, !D, E), B) WHERE D.x = A.x",
        "A1:x=1 C2 D3:x=2 E4 B5",
    ),
    some(
        "a part negated in a negated part whose qual holds",
        "SEQ(A, !SEQ(C, !D, E), B) WHERE D.x = A.x",
        "A1:x=1 C2 D3:x=1 E4 B5",
        "A1 B5",
    ),
    some(
        "a qual that speaks of an alternative that is not taken is left out",
        "SEQ(OR(A, D), !C, B, C.x = A.x)",
        "A1:x=1 C2:x=2 B3 D4 C5 B6 D7 B8",
        "A1 - B3",
        "A1 - B6",
        "A1 - B8",
        "- D7 B8",
    ),
]
NEGATION_IN_AND = [
    none("a negated part strictly inside the span removes the match", "AND(A, !N, B)", "B1 N2 A3"),
    some("outside the span it does not", "AND(A, !N, B)", "N1 A2 B3 N4", "A2 B3"),
    some("nor at its ends", "AND(A, !N, B)", "A2 N2 N3 B3", "A2 B3"),
    some("nor if it needs an event bound there", "AND(A a, B b, A c, !A n)", "A1 A2 B3", "A1 B3 A2", "A2 B3 A1"),
    some(
        "but another event of the type removes it",
        "AND(A a, B b, A c, !(A n, n.x = 1))",
        "A1 A2:x=1 A3 B4",
        *("A1 B4 A2", "A2 B4 A1", "A2 B4 A3", "A3 B4 A2"),
    ),
    some("bound anywhere in the positive parts", "AND(SEQ(A, C, D), !C n, B)", "A1 C2 D3 B4", "A1 C2 D3 B4"),
    some("a span of one event holds nothing", "AND(A, !N)", "N1 A2 N3", "A2"),
    none("a negated composite lies in the span whole", "AND(A, B, !SEQ(M, N))", "A1 M2 N3 B4"),
    some("if part of it lies outside, the match stands", "AND(A, B, !SEQ(M, N))", "M1 A2 N3 B4", "A2 B4"),
]

WINDOWS = [
    some("end minus start may be the window", "SEQ(A, B) WITHIN 5 ms", "A1 B6", "A1 B6"),
    none("but not more", "SEQ(A, B) WITHIN 5 ms", "A1 B7"),
    some("n events span n positions", "SEQ(A, B) WITHIN 3 events", "A1 C2 B3", "A1 B3"),
    none("and no more", "SEQ(A, B) WITHIN 2 events", "A1 C2 B3"),
    some("without WITHIN the window is unbounded", "SEQ(A, B)", "A1 B9999", "A1 B9999"),
    none("the window bounds what is nested", "SEQ(A, AND(B, C)) WITHIN 5 ms", "A1 B2 C7"),
]

QUALS = [
    some("a qual may use any variable of its operator", "SEQ(A, B, A.x < B.x)", "A1:x=1 A2:x=5 B3:x=3", "A1 B3"),
    some("WHERE belongs to the outermost operator", "SEQ(A, B) WHERE A.x < B.x", "A1:x=1 A2:x=5 B3:x=3", "A1 B3"),
    some(
        "a nested qual may use variables around it",
        "SEQ(A, AND(B, C, B.x = A.x), D)",
        "A1:x=1 B2:x=1 B3:x=2 C4 D5",
        "A1 B2 C4 D5",
    ),
    some("and variables nested beside it", "SEQ(SEQ(A, B), SEQ(C, C.x = A.x))", "A1:x=1 B2 C3:x=2 C4:x=1", "A1 B2 C4"),
    some(
        "a negated part may use variables that come later",
        "SEQ(A, !(N, N.x = B.x), B)",
        "A1 N2:x=1 B3:x=1 B4:x=2",
        "A1 B4",
    ),
    some("and those around its operator", "SEQ(Z, SEQ(A, !(N, N.x = Z.x), B))", "Z0:x=1 A1 N2:x=2 B3", "Z0 A1 B3"),
    none("quals inside the negated operator count alike", "SEQ(A, !SEQ(M, N, M.x = N.x), B)", "A1 M2:x=1 N3:x=1 B4"),
    none("a comparison with null does not hold", "A WHERE A.x = 1", "A1:x=None"),
    none("nor does its negation", "A WHERE NOT (A.x = 1)", "A1:x=None"),
    none("nor the opposite comparison", "A WHERE A.x != 1", "A1:x=None"),
    none("null is not equal to null", "AND(A, B) WHERE A.x = B.x", "A1:x=None B2:x=None"),
    none("a comparison with a missing attribute does not hold", "A WHERE NOT (A.x = 1)", "A1"),
    none("a comparison with NaN does not hold", "A WHERE A.y = A.y", "A1:y=nan"),
    none("nor is NaN unequal", "A WHERE A.y != 1", "A1:y=nan"),
    some("null, NaN and missing are null", "A WHERE A.y IS NULL", "A1:y=None A2:y=nan A3 A4:y=1.0", "A1", "A2", "A3"),
    some("IS NOT NULL is never unknown", "A WHERE A.y IS NOT NULL", "A1:y=None A2:y=nan A3 A4:y=1.0", "A4"),
    some("unknown or true is true", "A WHERE A.x = 1 OR A.k = 1", "A1:k=1", "A1"),
    none("unknown or false is unknown", "A WHERE NOT (A.x = 1 OR A.k = 1)", "A1:k=2"),
    some("unknown and false is false", "A WHERE NOT (A.x = 1 AND A.k = 1)", "A1:k=2", "A1"),
    none("unknown and true is unknown", "A WHERE NOT (A.x = 1 AND A.k = 1)", "A1:k=1"),
    none("a null option leaves NOT IN unknown", "A WHERE A.x NOT IN (1, NULL)", "A1:x=2"),
    some("but IN is true if another is equal", "A WHERE A.x IN (1, NULL)", "A1:x=1", "A1"),
    some("BETWEEN has both its ends", "A WHERE A.x BETWEEN 1 AND 2", "A1:x=0 A2:x=1 A3:x=2 A4:x=3", "A2", "A3"),
    some("one end may settle NOT BETWEEN", "A WHERE A.x NOT BETWEEN 5 AND A.k", "A1:x=1 A2:x=7", "A1"),
    some("a boolean stands by itself", "A WHERE A.b", "A1:b=True A2:b=False A3:b=None", "A1"),
    some("and so does its negation", "A WHERE NOT A.b", "A1:b=True A2:b=False A3:b=None", "A2"),
    some(
        "a chain is all of its comparisons",
        "AND(A, B, C) WHERE A.x = B.x = C.x",
        "A1:x=1 B2:x=1 C3:x=1 C4:x=2",
        "A1 B2 C3",
    ),
    some("whole numbers compare with others", "A WHERE A.x = A.y", "A1:x=1,y=1.0 A2:x=1,y=1.5", "A1"),
    some("text compares by code points", "A WHERE A.s < 'b'", "A1:s='B' A2:s='a' A3:s='é' A4:s='b'", "A1", "A2"),
    some("times minus times are durations", "AND(A, B) WHERE B.ts - A.ts < 5 ms", "A1 B5 B6", "A1 B5"),
    some("division gives fractions", "A WHERE A.x / 2 = 0.5", "A1:x=1", "A1"),
    some("division by zero is null", "A WHERE A.x / 0 IS NULL AND A.x % 0 IS NULL", "A1:x=1", "A1"),
    some("a remainder has the sign of what is divided", "A WHERE A.x % 3 = -1", "A1:x=-4 A2:x=4 A3:x=2", "A1"),
]

QUALS_AND_OR = [
    some(
        "above an OR, a qual of the alternative not taken is not applied",
        "OR(A, B) WHERE A.x = 1",
        "A1:x=2 A2:x=1 B3:x=2",
        "A2 -",
        "- B3",
    ),
    some("inside an OR too", "OR(A, B, A.x = 1)", "A1:x=2 A2:x=1 B3:x=2", "A2 -", "- B3"),
    some("each conjunct by itself", "OR(A, B) WHERE A.x = 1 AND B.x = 1", "A1:x=1 B2:x=2", "A1 -"),
    some(
        "a qual that mentions both is never applied",
        "OR(A, B) WHERE A.x = 1 OR B.x = 1",
        "A1:x=2 B2:x=1",
        "A1 -",
        "- B2",
    ),
    some("not even IS NULL", "OR(A, B) WHERE A.x IS NOT NULL", "B1", "- B1"),
    some(
        "a link to what was not taken is not applied", "SEQ(OR(A, B), C) WHERE A.x = C.x", "A1:x=1 B2 C3:x=2", "- B2 C3"
    ),
    none("nor in a negated part, which then forbids more", "SEQ(OR(A, B), !(N, N.x = A.x), C)", "B1 N2:x=7 C3"),
    some("there it is applied if it was taken", "SEQ(OR(A, B), !(N, N.x = A.x), C)", "A1:x=1 N2:x=7 C3", "A1 - C3"),
    some("quals inside an alternative concern it alone", "OR(SEQ(A, B, A.x = 1), C)", "A1:x=2 B2 C3", "- - C3"),
]

LIMITS = [
    Example("LIMIT takes the earliest by last", "SEQ(A, B) LIMIT 1", "B3 A1 B2", ("A1 B2",), ordered=True),
    Example("then by first", "SEQ(A, B) LIMIT 2", "A2 A1 B3 B4", ("A1 B3", "A2 B3"), ordered=True),
    Example(
        "then by the events bound",
        "AND(A, B) LIMIT 3",
        "A2 A1 B1 B2",
        ("A1 B1", "A1 B2", "A2 B1"),
        ordered=True,
    ),
    Example("twins by their arrival", "SEQ(A, B) LIMIT 2", "A1b A1a B3 A0 B4", ("A0 B3", "A1b B3"), ordered=True),
    Example("what is not bound comes first", "OR(A, B)", "A1 B1", ("- B1", "A1 -"), ordered=True),
    Example("a limit beyond the matches takes all", "A LIMIT 9", "A1 A2", ("A1", "A2"), ordered=True),
    Example(
        "the order is one over all partitions", "A LIMIT 2", "A3:k=1 A1:k=2 A2:k=2", ("A1", "A2"), key="k", ordered=True
    ),
]

EXAMPLES = [
    *(EVENTS + OPERATORS + NEGATION_IN_SEQ + BORDERS + NEGATION_BESIDE + NEGATION_IN_AND + WINDOWS),
    *(QUALS + QUALS_AND_OR + LIMITS),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_meaning(example: Example) -> None:
    events = stream(example.events, key=example.key)
    found = matches(parse(f"PATTERN {example.query}"), events, typed=example.typed, concepts=example.concepts)
    if example.ordered:
        assert found == list(example.expected)
    else:
        assert sorted(found) == sorted(example.expected)
