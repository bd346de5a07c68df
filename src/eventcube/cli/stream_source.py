"""The SOURCE of `eventcube stream`: a folder in which files arrive, or a topic of Kafka."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from eventcube.cli.arrow_input import check_parquet, refuse_empty, text_columns
from eventcube.cli.csv_input import value_that_does_not_fit
from eventcube.cli.inputs import FORMATS, Inputs, find_inputs, format_by_name
from eventcube.cli.stream_options import StreamOptions
from eventcube.cli.temporary import temporary_file
from eventcube.errors import InputError, OptionError
from eventcube.options import Options
from eventcube.spark import files, kafka
from eventcube.spark.columns import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Where the checkpoint has the columns; Spark's own names are others.
_COLUMNS = "eventcube-columns.json"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of files: Spark's schema as JSON, the zone of times, and the columns in nanoseconds."""

    format: str
    schema: str
    zone: str | None = None
    nanoseconds: Mapping[str, bool] = field(default_factory=dict)


class FileSource:
    """A folder, or a glob, of files of one format; the checkpoint keeps their columns, so that these stay the same."""

    def __init__(self, path: str, options: Options, how: StreamOptions) -> None:
        self.path, self.options, self.how = path, options, how
        stored = Path(how.checkpoint or "", _COLUMNS)
        # Spark alone can write to a remote checkpoint.
        self._stored = None if how.checkpoint is None or "://" in how.checkpoint else stored
        self._known: Columns | None = None
        self._schema: StructType | None = None
        self.inputs: Inputs | None = None
        if how.columns is not None:
            self.format = how.input_format or self._format_in_use()
        elif self._stored is not None and self._stored.exists():
            self._known = Columns(**json.loads(self._stored.read_text()))
            self.format = self._known.format
        else:
            self.inputs = self._find()
            refuse_empty(self.inputs)
            self.format = self.inputs.format

    @property
    def names(self) -> tuple[str, ...]:
        """The paths that are read, as they are known now."""
        return (self.path, *(self.inputs.files if self.inputs is not None else ()))

    def _find(self) -> Inputs:
        try:
            return find_inputs([self.path], self.how.input_format)
        except InputError as error:
            if error.code not in ("EC320", "EC322") or not self._may_come:
                raise
            raise InputError(
                f"there are no events in {self.path} yet, so their columns are not known",
                code=error.code,
                hint="give them: --columns 'ts timestamp, kind string' --input-format "
                f"{self.how.input_format or '|'.join(FORMATS)}",
            ) from None

    @property
    def _may_come(self) -> bool:
        """Whether files can come to where none are yet."""
        return Path(self.path).is_dir() or any(character in self.path for character in "*?[")

    def _format_in_use(self) -> str:
        """The format of files with given columns: by the name of the source, or by those that are there."""
        return format_by_name(self.path) or self._find().format

    def read(self, session: SparkSession, *, keep_zone: bool) -> DataFrame:
        """The events as a streaming DataFrame; times are in their zone, unless `keep_zone` has that of the session."""
        columns = self._columns(session)
        if columns.zone is not None and not keep_zone:
            files.use_zone(session, columns.zone)
        if self._stored is not None:
            self._stored.parent.mkdir(parents=True, exist_ok=True)
            with temporary_file(self._stored) as temporary:
                temporary.write_text(json.dumps(asdict(columns)))
        options = {} if self.how.max_files is None else {"maxFilesPerTrigger": str(self.how.max_files)}
        if self.how.input_format is None:
            # Files under other names are not ready.
            options["pathGlobFilter"] = f"*{{{','.join(FORMATS[self.format])}}}"
        path = self.path if "://" in self.path else str(Path(self.path).absolute())
        self._schema = files.read_schema(columns.schema)
        return files.stream_files(session, path, self.format, self._schema, columns.nanoseconds, options)

    def explained(self, error: InputError) -> InputError:
        """The error of a file that cannot be read, with the column where this is because of its type."""
        named = re.match(r"cannot read (/[^:]*): ", error.message)
        if error.code != "EC321" or named is None or self._schema is None:
            return error
        message, columns = error.message, {field.name: field.dataType.simpleString() for field in self._schema}
        with suppress(InputError, OSError):
            found = value_that_does_not_fit(named[1], arrow_schema(self._schema)) if self.format == "csv" else None
            if found is not None:
                name, value = found
                message = (
                    f"cannot read {named[1]}: column {name!r} is {columns[name]} in this stream, and has {value!r} here"
                )
        hint = (
            f"the columns are {', '.join(f'{name} {type_}' for name, type_ in columns.items())}. Mend the file under "
        )
        hint += f"its name, and start again; or start with a new checkpoint, and --columns. {error.hint or ''}"
        return InputError(message, code=error.code, hint=hint.strip())

    def _columns(self, session: SparkSession) -> Columns:
        if self.how.columns is not None:
            return Columns(self.format, files.read_ddl(self.how.columns).json())
        if self._known is not None:
            return self._known
        assert self.inputs is not None
        times = check_parquet(self.inputs, self.options.time)
        paths = [path if "://" in path else str(Path(path).absolute()) for path in self.inputs.paths]
        schema = files.stream_schema(session, paths, self.format, text_columns(self.inputs), times.nanoseconds)
        return Columns(self.format, schema.json(), times.zone, times.nanoseconds)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of Kafka."""

    servers: str
    name: str


class TopicSource:
    """The events of a topic, whose values are JSON."""

    def __init__(self, topic: Topic, how: StreamOptions) -> None:
        self.topic, self.how = topic, how
        if how.columns is None:
            raise OptionError(
                "the columns of events in a topic are not known",
                code="EC605",
                hint="give them: --columns 'ts timestamp, kind string'",
            )

    names: tuple[str, ...] = ()

    def explained(self, error: InputError) -> InputError:
        """The error as it is: a record that cannot be read is none."""
        return error

    def read(self, session: SparkSession, *, keep_zone: bool) -> DataFrame:
        """The events as a streaming DataFrame."""
        columns = files.read_ddl(self.how.columns or "")
        most = self.how.max_records
        return kafka.events_from_kafka(
            session, self.topic.servers, self.topic.name, columns, max_per_batch=most, record=None
        )


def find_source(source: str, options: Options, how: StreamOptions) -> FileSource | TopicSource:
    """The source, checked as far as can be without Spark."""
    topic = read_topic(source)
    return FileSource(source, options, how) if topic is None else TopicSource(topic, how)


def read_topic(place: str) -> Topic | None:
    """The servers and the topic of `kafka://host:port/topic`; None if the place is no topic."""
    scheme, sign, rest = place.partition("://")
    if not sign or scheme != "kafka":
        return None
    servers, _, topic = rest.partition("/")
    if not servers or not topic or "/" in topic:
        raise OptionError(f"{place} is not a topic", code="EC605", hint="write kafka://host:9092/topic")
    return Topic(servers, topic)
