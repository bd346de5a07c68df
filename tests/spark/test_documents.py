"""Every Python block and every command of these pages runs, and prints what is shown."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from eventcube.cli import main
from eventcube.cli.on_spark import Spark
from tests.documents.pages import ROOT, Block, blocks

PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/flights.md",
    "docs/aggregates.md",
    "docs/cube.md",
    "docs/streaming.md",
    "docs/stream_command.md",
    "docs/sinks.md",
    "docs/upgrades.md",
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs(name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Commands leave the session of these tests running.
    monkeypatch.setattr(Spark, "close", Spark._close_log)
    names: dict[str, Any] = {}
    shown = blocks(ROOT / name)
    for block, after in zip(shown, [*shown[1:], None], strict=True):
        match block.language:
            case "python":
                # As many lines before it as in the page, so that a traceback names the right one.
                code = compile("\n" * block.line + block.text, name, "exec")
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(code, names)
                if after is not None and after.language in ("text", "mermaid"):
                    assert printed.getvalue() == after.text, f"{name}:{block.line}"
            case "console":
                _run(block, f"{name}:{block.line}")


def _run(block: Block, place: str) -> None:
    """Run the block's command; each line shown below it must be printed, in order."""
    command, *expected = block.text.splitlines()
    prompt, program, *arguments = shlex.split(command)
    assert (prompt, program) == ("$", "eventcube"), place
    result = CliRunner().invoke(main, arguments)
    told_first = expected[0] if expected else ""
    wrong = told_first.startswith("error")
    assert result.exit_code == (2 if wrong else 0), f"{place}: {result.output}"
    told = result.output if told_first.startswith("warning") else result.stdout
    printed = (result.stderr if wrong else told).splitlines()
    assert [line for line in printed if line in expected] == expected, f"{place}: {result.output}"
