"""Finds the files of an input and their format."""

from __future__ import annotations

import difflib
import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eventcube.errors import InputError

FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz"),
    "jsonl": (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz"),
}


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files of one format. `paths` are as the user gave them (folders stay folders); Spark reads remote ones."""

    paths: tuple[str, ...]
    files: tuple[str, ...]
    format: str
    remote: bool = False

    @property
    def shown(self) -> str:
        """The input as named in messages."""
        return self.paths[0] if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"


def find_inputs(arguments: Sequence[str], format_: str | None = None) -> Inputs:
    """The input from paths, folders, globs and URLs; all must be of one format."""
    paths: list[str] = []
    files: list[str] = []
    for name in arguments:
        if "://" in name:
            paths.append(name)
            continue
        expanded = _expand(name, format_)
        paths += [name] if Path(name).is_dir() else expanded
        files += expanded
    remote = [p for p in paths if "://" in p]
    formats = {format_} if format_ else {_format_of(name) for name in (*files, *remote)}
    if len(formats) > 1:
        raise InputError(
            f"the input mixes formats: {', '.join(sorted(map(str, formats)))}",
            code="EC323",
            hint="give files of one format, or say --input-format",
        )
    (format_,) = formats
    assert format_ is not None
    return Inputs(tuple(paths), tuple(files), format_, bool(remote))


def format_by_name(name: str) -> str | None:
    """The format by a file's ending; None if it is unknown."""
    return next((f for f, endings in FORMATS.items() if name.lower().rstrip("/").endswith(endings)), None)


def _format_of(name: str) -> str:
    format_ = format_by_name(name)
    if format_ is None:
        raise InputError(
            f"cannot tell the format of {name} from its name",
            code="EC324",
            hint=f"say --input-format {'|'.join(FORMATS)}",
        )
    return format_


def _expand(name: str, format_: str | None) -> list[str]:
    path = Path(name)
    if path.is_dir():
        inside = sorted(str(p) for p in path.rglob("*") if p.is_file() and not _hidden(p.relative_to(path)))
        files = inside if format_ else [p for p in inside if format_by_name(p)]
        if not files:
            raise InputError(
                f"no events in the folder {name}",
                code="EC322",
                hint="its files end in none of the known ways; say --input-format" if inside else "it has no files",
            )
        return files
    if path.exists():
        return [name]
    if glob.has_magic(name):
        files = sorted(p for p in glob.glob(name, recursive=True) if Path(p).is_file())  # noqa: PTH207 (absolute too)
        if files:
            return files
        raise InputError(f"no file matches {name}", code="EC320")
    raise InputError(f"no such file or folder: {name}", code="EC320", hint=_near(path))


def _hidden(path: Path) -> bool:
    """Whether Spark ignores the file: names with `_` or `.` at the beginning are not data."""
    return any(part[0] in "_." and "=" not in part for part in path.parts)


def _near(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    close = difflib.get_close_matches(path.name, _names(path.parent.iterdir()), n=1)
    return f"did you mean {path.parent / close[0]}?" if close else None


def _names(paths: Iterable[Path]) -> list[str]:
    return [p.name for p in paths]
