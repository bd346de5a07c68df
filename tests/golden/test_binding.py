"""What a query that does not fit the events is told, word for word, and how one that fits would run."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from tests.golden.titled import Titled, read_titled

import eventcube.language
import eventcube.plan
from eventcube.concepts.concepts import Concepts
from eventcube.errors import BindError
from eventcube.explain import explain
from eventcube.language.parse import parse
from eventcube.plan.bind import bind
from eventcube.schema import EventSchema

ERRORS = read_titled("bind_errors.txt")
PLANS = read_titled("plans.txt")
COLUMNS = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("symbol", pa.string()),
        ("price", pa.float64()),
        ("volume", pa.int64()),
        ("account", pa.int64()),
        ("open", pa.bool_()),
        ("settled", pa.date32()),
        ("held", pa.duration("s")),
        ("tags", pa.list_(pa.string())),
    ]
)
CONCEPTS = Concepts({"Stock": ["Computer", "Finance"], "Computer": ["INTC", "MSFT", "DELL"], "Finance": ["QQQ"]})


def _title(case: Titled) -> str:
    return case.title


@pytest.mark.parametrize("case", ERRORS, ids=_title)
def test_what_does_not_fit_is_explained(case: Titled) -> None:
    untyped = "no type column" in case.title
    columns = COLUMNS
    if "unknown zone" in case.title:
        columns = columns.set(columns.get_field_index("settled"), pa.field("settled", pa.timestamp("us", "Mars/Base")))
    option = ("account",) if "option" in case.title else ()
    schema = EventSchema(columns, "ts", None if untyped else "symbol", option)
    with pytest.raises(BindError) as caught:
        bind(parse(case.given, source="trades.neel"), schema, CONCEPTS if "hierarchy" in case.title else None)
    assert str(caught.value) == case.expected


def test_every_code_of_the_binder_has_a_golden_message() -> None:
    folders = [Path(module.__file__ or "").parent for module in (eventcube.language, eventcube.plan)]
    files = [file for folder in folders for file in folder.glob("*.py")]
    used = {code for file in files for code in re.findall(r'"(EC2\d\d)"', file.read_text("utf-8"))}
    shown = {code for case in ERRORS for code in re.findall(r"error\[(EC\d+)\]", case.expected)}
    # The parser refuses two components of one name (EC117); the binder does so for trees made by hand (EC204).
    # No zone is unknown here (EC227), and names of results are checked before binding (EC217).
    assert shown == used - {"EC204", "EC217", "EC227"}


@pytest.mark.parametrize("case", PLANS, ids=_title)
def test_a_plan_is_explained(case: Titled) -> None:
    settings = {"partition_by": "account"} if "partition" in case.title else {}
    concepts = CONCEPTS if "hierarchy" in case.title else None
    assert explain(case.given, COLUMNS, time="ts", type="symbol", concepts=concepts, **settings) == case.expected


def test_the_plan_of_the_readme() -> None:
    now, before = read_titled("readme_plan.txt")
    columns = pa.schema({"ts": pa.timestamp("us"), "kind": pa.string(), "id": pa.string(), "room": pa.int32()})
    assert explain(now.given, columns, type="kind") == now.expected
    assert len(now.expected) <= len(before.expected), "clearer, and no longer"
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    assert " ".join(now.given.split()) in " ".join(readme.split())
