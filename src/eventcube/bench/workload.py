"""The benchmark queries over trades."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from eventcube.bench.trades import SYMBOLS

VARIABLES = "abcdefgh"
HEADS = 8


@dataclass(frozen=True, slots=True)
class Sequence:
    """A SEQ of symbols as data, to write both the query and its SQL counterpart."""

    name: str
    symbols: tuple[str, ...]
    window_ms: int
    rising: float | None = None
    """Each price is higher than so many times the one before."""
    key: str | None = None
    """The column that all events of a match share."""
    absent: str | None = None
    """A symbol that must not occur between the first two."""
    carried: tuple[str, ...] = ()
    """More columns that SQL takes along from every event, for what it computes of the matches."""
    computed: str = ""
    """What SQL computes of the matches, instead of the times of their events."""

    @property
    def variables(self) -> str:
        return VARIABLES[: len(self.symbols)]

    @property
    def window_us(self) -> int:
        return self.window_ms * 1000

    @property
    def rises(self) -> list[str]:
        """The conditions on prices, one for each event but the first."""
        if self.rising is None:
            return []
        times = "" if self.rising == 1 else f"{self.rising:g} * "
        return [f"{b}.price > {times}{a}.price" for a, b in pairwise(self.variables)]

    @property
    def text(self) -> str:
        """The query for eventcube, which returns the times of the events."""
        returned = ", ".join(f"{v}.ts AS {v}" for v in self.variables)
        return f"{self.pattern} RETURN {returned}"

    @property
    def counting(self) -> str:
        """The query for eventcube, which counts its matches."""
        return f"{self.pattern} AGG COUNT(*)"

    @property
    def pattern(self) -> str:
        """The query without its result."""
        parts = [f"{symbol} {variable}" for symbol, variable in zip(self.symbols, self.variables, strict=True)]
        shared = list(self.variables)
        if self.absent:
            # The absent event is one of the same key.
            only = f", m.{self.key} = a.{self.key}" if self.key else ""
            parts.insert(1, f"!({self.absent} m{only})" if only else f"!{self.absent} m")
        if self.key:
            parts.append(" = ".join(f"{v}.{self.key}" for v in shared))
        parts += self.rises
        window = f"{self.window_ms // 1000} s" if self.window_ms % 1000 == 0 else f"{self.window_ms} ms"
        return f"PATTERN SEQ({', '.join(parts)}) WITHIN {window}"

    def keyed(self, key: str = "account", keys: int = 1000) -> Sequence:
        """The same sequence by key, with a window longer by the number of keys, as events of one key are rarer."""
        return replace(self, name=f"{self.name}k", key=key, window_ms=self.window_ms * keys)


Q1 = Sequence("Q1", ("INTC", "DELL", "QQQ"), 50)
Q2 = Sequence("Q2", ("INTC", "DELL", "QQQ"), 100, rising=1)
Q3 = Sequence("Q3", ("INTC", "DELL", "QQQ"), 60_000, key="account")
Q4 = Sequence("Q4", ("INTC", "FCF"), 100, absent="MSFT")
Q5 = Sequence("Q5", ("QQQ", "DELL", "INTC", "FCF", "ROM"), 60)

# No price is that much higher twice, and few pairs of prices are: nearly all candidates fail.
S1 = Sequence("S1", ("INTC", "DELL", "QQQ"), 1_000, rising=1.12)
S10 = replace(S1, name="S10", window_ms=10_000)

ENGINE_QUERIES = (Q1, Q2, Q3, Q4, Q5)
KEYED_QUERIES = (Q1.keyed(), Q2.keyed(), Q3, Q4.keyed(), Q5.keyed())
SELECTIVE_QUERIES = (S1, S10)
EVERY_QUERY = {q.name: q for q in (*ENGINE_QUERIES, *KEYED_QUERIES, *SELECTIVE_QUERIES)}


def related_queries(count: int, *, window_ms: int = 20, seed: int = 0) -> tuple[Sequence, ...]:
    """Different sequences of three and four symbols that begin with one of eight pairs; fewer are the first of more."""
    draw = Random(seed)
    heads: list[tuple[str, ...]] = []
    while len(heads) < HEADS:
        head = tuple(draw.sample(SYMBOLS, 2))
        heads += [head] if head not in heads else []
    chosen: dict[tuple[str, ...], None] = {}
    while len(chosen) < count:
        head = heads[len(chosen) % HEADS]
        others = [symbol for symbol in SYMBOLS if symbol not in head]
        chosen[(*head, *draw.sample(others, draw.choice((1, 2))))] = None
    return tuple(Sequence(f"q{i}", symbols, window_ms) for i, symbols in enumerate(chosen, 1))
