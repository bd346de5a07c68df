"""The output of a run: its format, and checks that it overwrites nothing by mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from eventcube.cli.inputs import format_by_name
from eventcube.errors import OptionError


def is_file_name(out: str) -> bool:
    """Whether --out names a file: it has an ending, and is not a folder."""
    return bool(Path(out).suffix) and not out.endswith("/") and not Path(out).is_dir()


def refuse_unknown_ending(path: str | None, option: str) -> None:
    """Refuse a file whose ending is no format that can be written."""
    if path is None or not is_file_name(path):
        return
    if format_by_name(path) is None or path.endswith(".gz"):
        raise OptionError(
            f"{option} {path} ends in none of the formats that are written",
            code="EC420",
            hint=".parquet, .csv and .jsonl are one file; a name without an ending, or with / at its end, is a folder",
        )


def result_format(out: str | None, format_: str | None, as_json: bool) -> str:
    """The format of the matches, or "screen": from --format, or from the ending of --out."""
    if out is None:
        if as_json:
            raise OptionError(
                "--json prints the summary, so matches need --out", code="EC420", hint="--out matches.parquet"
            )
        if format_ == "parquet":
            raise OptionError("Parquet cannot go to the screen", code="EC420", hint="say where: --out matches.parquet")
        return format_ or "screen"
    if format_ == "screen":
        raise OptionError("matches go to --out or to the screen, not both", code="EC420", hint="leave out one of them")
    if format_ is None:
        refuse_unknown_ending(out, "--out")
    return format_ or format_by_name(out) or "parquet"


def refuse_overlap(inputs: Iterable[str], arguments: Mapping[str, str | None]) -> None:
    """Refuse an output that is, contains or lies in the input, or equals another output."""
    outputs = {o: Path(path).resolve() for o, path in arguments.items() if path is not None and "://" not in path}
    sources = [Path(path).resolve() for path in inputs if "://" not in path]
    for option, path in outputs.items():
        for source in sources:
            if path == source or path in source.parents or source in path.parents:
                raise OptionError(f"{option} {arguments[option]} would write over the input", code="EC422")
    for first, second in combinations(outputs, 2):
        if outputs[first] == outputs[second]:
            raise OptionError(f"{first} and {second} are the same", code="EC422")


def refuse_existing(path: str | None, overwrite: bool) -> None:
    """Refuse to replace an existing output without --overwrite, and a folder with other files than results."""
    if path is None or not Path(path).exists():
        return
    if not (Path(path).is_file() or Path(path).is_dir()):
        raise OptionError(
            f"{path} is neither a file nor a folder",
            code="EC421",
            hint="--format csv or jsonl without --out writes to standard output",
        )
    if not overwrite:
        raise OptionError(f"{path} exists", code="EC421", hint="--overwrite replaces it")
    inside = Path(path).iterdir() if Path(path).is_dir() else ()
    other = sorted(f.name for f in inside if not f.name.startswith((".", "_", "part-")))
    if other:
        raise OptionError(
            f"{path} holds more than results ({other[0]}), and is not replaced", code="EC421", hint="remove it by hand"
        )
