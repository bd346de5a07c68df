"""What the state of a stream is of: its queries and settings, the columns of its events, and how they are spread.

Every bucket stores all of it beside its state, and checks it before it goes on from there. Each micro-batch with input
runs every bucket, so no bucket can miss a change.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow as pa

from eventcube.errors import OptionError
from eventcube.language.printer import print_query
from eventcube.language.syntax import Query
from eventcube.options import Options
from eventcube.runtime.snapshot import damaged, short_identity
from eventcube.runtime.state_difference import differences, other_columns
from eventcube.spark.settings import PARTITIONS

# Settings that say what a query means.
_SETTINGS = ("time", "type", "partition_by", "order_by", "time_unit")
_NEW_CHECKPOINT = "start it with a new checkpoint"


@dataclass(frozen=True, slots=True)
class PassOrigin:
    """Queries whose events are spread alike, by their names: the key, the number of buckets, and the columns."""

    key: tuple[str, ...]
    buckets: int
    columns: pa.Schema
    queries: Mapping[str, str]

    @property
    def spread(self) -> str:
        """How the events are spread, in words."""
        return f"by {', '.join(self.key)}" if self.key else "not at all"


@dataclass(frozen=True, slots=True)
class Origin:
    """What the state of a stream is of. `delay` is its lateness in milliseconds, the largest that it has had."""

    settings: Mapping[str, str]
    types: Mapping[str, str]
    delay: int
    passes: tuple[PassOrigin, ...]

    @classmethod
    def of(cls, options: Options, passes: tuple[PassOrigin, ...]) -> Origin:
        """The origin of a stream with these settings."""
        parents = options.concepts.parents if options.concepts is not None else {}
        settings = {name: repr(getattr(options, name)) for name in _SETTINGS}
        below = {child: f"below {parent!r}" for child, parent in sorted(parents.items())}
        return cls(settings, below, delay_of(options.lateness), passes)

    def identity(self, place: int) -> str:
        """A hash of what must be the same for a chunk of a pass to be one of this stream."""
        of = self.passes[place]
        return short_identity(json.dumps([self.settings, self.types, of.queries]), of.columns)

    @property
    def queries(self) -> dict[str, str]:
        """The texts of all queries."""
        return {name: text for of in self.passes for name, text in of.queries.items()}

    def after(self, watermark: int) -> int:
        """A time (microseconds) after all events of the stream so far, given its watermark (milliseconds)."""
        return (watermark + self.delay + 1) * 1000

    def to_bytes(self) -> bytes:
        """The origin as it is stored."""
        passes = [[of.key, of.buckets, _stored(of.columns), of.queries] for of in self.passes]
        return json.dumps([self.settings, self.types, self.delay, passes], separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Origin:
        """A stored origin."""
        try:
            settings, types, delay, passes = json.loads(data)
            read = (PassOrigin(tuple(key), n, _columns(columns), queries) for key, n, columns, queries in passes)
            return cls(settings, types, delay, tuple(read))
        except (ValueError, TypeError, pa.ArrowException, OSError) as error:
            raise damaged(f"what it is of cannot be read: {error}") from None

    def followed_by(self, now: Origin) -> Origin:
        """The origin of a stream that goes on from this one with queries added or removed; else it is refused."""
        self._check_meaning(now)
        self._check_spread(now)
        return replace(now, delay=max(self.delay, now.delay))

    def _check_meaning(self, now: Origin) -> None:
        """Refuse other settings, and other texts of queries that stay."""
        before, after = ({"setting": of.settings, "type": of.types} for of in (self, now))
        if changed := differences(before, after):
            hint = f"{_NEW_CHECKPOINT}, or with the settings of the old one"
            raise OptionError(f"the checkpoint is of other settings{changed}", code="EC412", hint=hint)
        stay = [name for name in now.queries if name in self.queries]
        texts = ({"query": {name: of.queries[name] for name in stay}} for of in (self, now))
        if changed := differences(*texts):
            raise OptionError(
                f"the checkpoint is of other queries{changed}",
                code="EC412",
                hint=f"{_NEW_CHECKPOINT}; or give the changed query a new name, as in {{'new name': 'PATTERN …'}}: it "
                "sees the events from then on, and the other queries of the stream keep their state",
            )

    def _check_spread(self, now: Origin) -> None:
        """Refuse another spread of the events over buckets, and other columns."""
        was, is_ = ({name: of.spread for of in origin.passes for name in of.queries} for origin in (self, now))
        moved = next((name for name in is_ if name in was and is_[name] != was[name]), None)
        if moved is not None:
            self._refuse_spread(f" of {moved!r}", was[moved], is_[moved])
        if [of.key for of in self.passes] != [of.key for of in now.passes]:
            self._refuse_spread("", *(" and ".join(of.spread for of in origin.passes) for origin in (self, now)))
        for before, after in zip(self.passes, now.passes, strict=True):
            if not _holds(after.columns, before.columns):
                changed = other_columns(before.columns, after.columns)
                hint = f"{_NEW_CHECKPOINT}, or with the columns of the old one: events.select(…)"
                raise OptionError(f"the checkpoint is of events with other columns{changed}", code="EC412", hint=hint)
            if before.buckets != after.buckets:
                raise OptionError(
                    f"the checkpoint has its state in {before.buckets} buckets, and now there are {after.buckets}",
                    code="EC494",
                    hint=f'spark.conf.set("{PARTITIONS}", "{before.buckets}") before ec.match',
                )

    def _refuse_spread(self, whose: str, was: str, is_: str) -> NoReturn:
        raise OptionError(
            f"with these queries the events{whose} are spread over buckets {is_}, and in the checkpoint {was}",
            code="EC495",
            hint=f"give the queries that came or changed a stream of their own, with its own checkpoint; or "
            f"{_NEW_CHECKPOINT}",
        )


def delay_of(lateness: int) -> int:
    """A lateness (microseconds) as Spark takes it, in milliseconds, rounded up."""
    return -(-lateness // 1000)


def texts_of(queries: Mapping[str, Query]) -> dict[str, str]:
    """The texts of queries, which are the same for queries that are."""
    return {name: print_query(query) for name, query in queries.items()}


def _holds(columns: pa.Schema, before: pa.Schema) -> bool:
    """Whether a state of these columns can have rows of those before: they are the same, or may be null since then."""
    same = columns.names == before.names and columns.types == before.types
    return same and all(now.nullable or not was.nullable for now, was in zip(columns, before, strict=True))


def _stored(columns: pa.Schema) -> str:
    return base64.b64encode(columns.serialize().to_pybytes()).decode()


def _columns(stored: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
