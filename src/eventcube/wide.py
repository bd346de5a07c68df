"""`wide`: the matches of one query from a result that several share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.errors import OptionError, did_you_mean
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.options import invalid_argument
from eventcube.plan.event_columns import event_columns, flat_columns, plain_batch, plain_schema
from eventcube.runtime.frames import from_arrow, is_spark, query_names, to_arrow
from eventcube.runtime.shared_result import VARIABLE, wide_form


def wide(matches: Any, name: str, query: str | Query | Sequence[str], *, flat: bool = False) -> Any:
    """The matches of one query of a shared result: `start`, `end` and a column for each variable, null where unbound.

    `name` is the name of the query; its variables come from the query, as text or parsed, or from a list of names.
    `flat` gives a column `a_ts` for each column of each event instead of a struct `a`.
    """
    if isinstance(query, str):
        query = parse(query)
    if not isinstance(query, Query | Sequence):
        raise invalid_argument("query", query, "a query, or a list of its variables")
    variables = event_columns(query) if isinstance(query, Query) else list(query)
    _check_names(name, variables)
    if is_spark(matches):
        from eventcube.spark.wide import flat_frame, wide_frame

        frame = wide_frame(matches, name, variables)
        return flat_frame(frame, variables) if flat else frame
    table = to_arrow(matches)
    if table.schema.names != ["query", "start", "end", "events"]:
        raise OptionError(
            "this is not the result of several queries", code="EC447", hint="match with a list or dict of queries"
        )
    names = query_names(table.schema)
    if names and name not in names:
        hint = did_you_mean(name, names, "the result")
        raise OptionError(f"the result has no query {name!r}", code="EC415", hint=hint)
    if not pa.types.is_list(table.schema.field("events").type):
        # A pandas frame without rows has lost the type of events.
        no_events = pa.table({v: pa.nulls(0) for v in variables})
        no_times = table.select(["start", "end"]).slice(0, 0)
        return from_arrow(pa.table({**_columns(no_times), **_columns(no_events)}), matches)
    _check_known(table, name, variables)
    result = wide_form(table, name, variables)
    columns = flat_columns(result.schema, variables if flat else ())
    batches = [plain_batch(batch, columns) for batch in result.to_batches()]
    return from_arrow(pa.Table.from_batches(batches, plain_schema(result.schema, columns)), matches)


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _check_names(name: Any, variables: list[Any]) -> None:
    if not isinstance(name, str):
        raise invalid_argument("the name of a query", name, "a text, as in the column `query`")
    for variable in variables:
        if not isinstance(variable, str):
            raise invalid_argument("the name of a variable", variable, "a text")


def _check_known(table: pa.Table, name: str, variables: list[str]) -> None:
    """Refuse variables if the query has matches, but none binds any of them."""
    bound = pc.list_flatten(table.filter(pc.equal(table.column("query"), name)).column("events"))
    known = pc.unique(pc.struct_field(bound, VARIABLE)).to_pylist()
    if known and not set(known) & set(variables):
        raise OptionError(
            f"no match of query {name!r} binds {' or '.join(map(repr, variables)) or 'nothing'}",
            code="EC417",
            hint=did_you_mean(variables[0] if variables else "", known, f"query {name!r}"),
        )
