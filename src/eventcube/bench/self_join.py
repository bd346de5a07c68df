"""Writes a sequence query as SQL, in every form that might be the fastest, for DuckDB and for Spark.

All forms turn "within the window" into an equality that a hash join can use: the number of the time bucket an event
lies in. With buckets of W/d, the next event of a match lies in the same bucket or one of the d after it, so one side of
the join is repeated d + 1 times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from eventcube.bench.workload import Sequence


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL functions and operators of one engine."""

    micros: str
    timestamp: str
    divide: str
    explode: str
    explode_distinct: str

    def bucket(self, width: int) -> str:
        return f"({self.micros} {self.divide} {width})"

    def exploded(self, bucket: str, offsets: range) -> str:
        return self.explode.format(", ".join(f"{bucket} + {o}" for o in offsets))


DUCKDB = Dialect("epoch_us(ts)", "make_timestamp({})", "//", "unnest([{}])", "unnest(list_distinct([{}]))")
SPARK = Dialect(
    "unix_micros(CAST(ts AS TIMESTAMP))",
    "timestamp_micros({})",
    "div",
    "explode(array({}))",
    "explode(array_distinct(array({})))",
)


def chained(query: Sequence, dialect: Dialect, divisions: int, *, shared: bool = False, hint: str = "") -> str:
    """Joins each event to the next by the buckets after its own; `shared` scans the table once."""
    bucket = dialect.bucket(_width(query, divisions))
    last = len(query.symbols) - 1

    def relation(i: int, source: str) -> str:
        columns = [*_columns(query, dialect)]
        columns += [f"{bucket} AS own"] if i else []
        columns += [f"{dialect.exploded(bucket, range(divisions + 1))} AS ahead"] if i < last else []
        return f"SELECT {', '.join(columns)} FROM {source} WHERE symbol = '{query.symbols[i]}'"

    return _joined(query, dialect, relation, lambda p, q: f"{q}.own = {p}.ahead", shared, hint)


def anchored(query: Sequence, dialect: Dialect, divisions: int, *, shared: bool = False, hint: str = "") -> str:
    """Joins all events by the first one's bucket: more candidates, but all joins have the same key."""
    bucket = dialect.bucket(_width(query, divisions))

    def relation(i: int, source: str) -> str:
        place = dialect.exploded(bucket, range(-divisions, 1)) if i else bucket
        columns = ", ".join([*_columns(query, dialect), f"{place} AS own"])
        return f"SELECT {columns} FROM {source} WHERE symbol = '{query.symbols[i]}'"

    return _joined(query, dialect, relation, lambda p, q: f"{q}.own = a.own", shared, hint)


def running_count(query: Sequence, dialect: Dialect, slice_windows: int | None = None, *, hint: str = "") -> str:
    """For an absent event: two events lie in the same gap if as many absent ones came before each.

    With `slice_windows`, time is cut into slices of that many windows, each with the window after it, so that Spark
    counts on all cores.
    """
    partition = [query.key] if query.key else []
    columns = f"symbol, {', '.join(_columns(query, dialect))}"
    wanted = ", ".join(f"'{s}'" for s in (*query.symbols, query.absent))
    events = f"SELECT {columns} FROM trades WHERE symbol IN ({wanted})"
    home_filter = ""
    if slice_windows is not None:
        width = slice_windows * query.window_us
        home, halo = (f"{t} {dialect.divide} {width}" for t in ("t", f"(t - {query.window_us})"))
        slices = dialect.explode_distinct.format(f"{home}, {halo}")
        events = f"SELECT *, {home} AS home, {slices} AS slice FROM ({events}) e"
        partition.append("slice")
        home_filter = " AND a.home = a.slice"
    by = f"PARTITION BY {', '.join(partition)} " if partition else ""
    count = f"sum(CASE WHEN symbol = '{query.absent}' THEN 1 ELSE 0 END) OVER ({by}ORDER BY t ROWS UNBOUNDED PRECEDING)"
    counted = f"SELECT *, {count} AS gap FROM ({events}) e"
    same = " AND ".join(f"b.{column} = a.{column}" for column in ("gap", *partition))
    return (
        f"WITH e AS ({counted}) SELECT {hint} {_output(query, dialect)} "
        f"FROM e a JOIN e b ON {same} AND {_later(query, 'a', 'b')} "
        f"WHERE a.symbol = '{query.symbols[0]}' AND b.symbol = '{query.symbols[1]}'{home_filter}"
    )


def next_absent(query: Sequence) -> str:
    """For an absent event, in DuckDB: the next one after each first event by an ASOF join, then buckets."""
    bucket = f"t // {query.window_us}"
    key = f", {query.key}" if query.key else ""
    same = f"x.{query.key} = m.{query.key} AND " if query.key else ""
    firsts = f"SELECT epoch_us(ts) AS t{key} FROM trades WHERE symbol = '{query.symbols[0]}'"
    absent = f"SELECT epoch_us(ts) AS t{key} FROM trades WHERE symbol = '{query.absent}'"
    limited = (
        f"SELECT x.*, least(coalesce(m.t, x.t + {query.window_us}), x.t + {query.window_us}) AS until "
        f"FROM ({firsts}) x ASOF LEFT JOIN ({absent}) m ON {same}m.t > x.t"
    )
    repeated = f"SELECT *, unnest([{bucket}, {bucket} + 1]) AS ahead FROM ({limited})"
    seconds = f"SELECT epoch_us(ts) AS t{key}, {DUCKDB.bucket(query.window_us)} AS own FROM trades"
    joined = (
        f"b.own = a.ahead AND b.t > a.t AND b.t <= a.until{f' AND b.{query.key} = a.{query.key}' if query.key else ''}"
    )
    return (
        f"SELECT {_output(query, DUCKDB)} FROM ({repeated}) a "
        f"JOIN ({seconds} WHERE symbol = '{query.symbols[1]}') b ON {joined}"
    )


def duckdb_forms(query: Sequence) -> Mapping[str, str]:
    """The candidate queries for DuckDB, by name."""
    if query.absent:
        return {"running count": running_count(query, DUCKDB), "next by ASOF": next_absent(query)}
    forms = {}
    for divisions in (1, 2, 3):
        forms[f"buckets W/{divisions}"] = chained(query, DUCKDB, divisions)
        forms[f"buckets W/{divisions}, one scan"] = chained(query, DUCKDB, divisions, shared=True)
    return forms


def spark_forms(query: Sequence) -> Mapping[str, str]:
    """The candidate queries for Spark SQL, by name."""
    hints = {"": "", ", hash": "/*+ SHUFFLE_HASH(b, c, d, e) */"}
    if query.absent:
        return {
            f"running count in slices of {n} W{name}": running_count(query, SPARK, n, hint=hint)
            for n in (10, 100)
            for name, hint in hints.items()
        }
    forms = {}
    for name, hint in hints.items():
        for divisions in (1, 2):
            forms[f"buckets W/{divisions}{name}"] = chained(query, SPARK, divisions, hint=hint)
        forms[f"first's bucket{name}"] = anchored(query, SPARK, 1, hint=hint)
    return forms


def _width(query: Sequence, divisions: int) -> int:
    return -(-query.window_us // divisions)


def _columns(query: Sequence, dialect: Dialect) -> list[str]:
    tested = [*(["price"] if query.rises else []), *([query.key] if query.key else [])]
    return [f"{dialect.micros} AS t", *dict.fromkeys([*tested, *query.carried])]


def _output(query: Sequence, dialect: Dialect) -> str:
    return query.computed or ", ".join(f"{dialect.timestamp.format(f'{v}.t')} AS {v}" for v in query.variables)


def _later(query: Sequence, p: str, q: str) -> str:
    return f"{q}.t > {p}.t AND {q}.t <= a.t + {query.window_us}"


def _joined(
    query: Sequence,
    dialect: Dialect,
    relation: Callable[[int, str], str],
    place: Callable[[str, str], str],
    shared: bool,
    hint: str,
) -> str:
    source = "shared" if shared else "trades"
    tables = [f"({relation(i, source)}) {v}" for i, v in enumerate(query.variables)]
    joins = [tables[0]]
    for (p, q), table in zip(pairwise(query.variables), tables[1:], strict=True):
        on = [place(p, q), _later(query, p, q)]
        on += [f"{q}.{query.key} = {p}.{query.key}"] if query.key else []
        on += [rise for rise in query.rises if rise.startswith(f"{q}.")]
        joins.append(f"JOIN {table} ON {' AND '.join(on)}")
    wanted = ", ".join(f"'{s}'" for s in query.symbols)
    scan = f"WITH shared AS MATERIALIZED (SELECT * FROM trades WHERE symbol IN ({wanted})) " if shared else ""
    return f"{scan}SELECT {hint} {_output(query, dialect)} FROM {' '.join(joins)}"
