from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from tests.unit.cli.conftest import Call

import eventcube
from eventcube.cli import main
from eventcube.cli.command import Commands, _Terminated


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [path]
    for name, command in group.commands.items():
        found += _commands(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


@pytest.mark.parametrize("path", _commands(main), ids=" ".join)
def test_help_shows_an_example(path: tuple[str, ...], call: Call) -> None:
    result = call(*path, "--help")
    assert result.exit_code == 0
    assert f"\n    eventcube {' '.join(path)}".rstrip() in result.stdout


def test_the_version(call: Call) -> None:
    assert call("--version").stdout.strip().endswith(eventcube.__version__)


def test_interrupted() -> None:
    @click.command()
    def forever() -> None:
        raise KeyboardInterrupt

    group = Commands("eventcube", commands=[forever])
    result = CliRunner().invoke(group, ["forever"])
    assert result.exit_code == 130
    assert result.stderr.strip() == "interrupted"


def test_ctrl_c_while_the_command_is_loaded_ends_it() -> None:
    code = (
        "import sys\nclass Interrupts:\n    def find_spec(self, name, *_):\n"
        "        if name == 'eventcube.cli.cube':\n            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\nfrom eventcube.cli import main"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")


def test_a_wrong_option_is_a_mistake(call: Call) -> None:
    assert call("run", "--frob").exit_code == 2
    assert call("frob").exit_code == 2


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["check", "PATTERN A a"]], ids=" ".join)
def test_help_and_check_load_neither_spark_nor_the_engine(arguments: list[str]) -> None:
    code = (
        "import sys, atexit\nfrom eventcube.cli import main\n"
        "atexit.register(lambda: print(sorted({'pyspark', 'numba', 'pandas'} & set(sys.modules))))\n"
        f"main({arguments!r})"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_functions_stay_functions_whichever_module_is_loaded() -> None:
    code = (
        "import eventcube.match, eventcube.explain, eventcube.wide\nimport eventcube as ec\n"
        "from eventcube import match\n"
        "assert all(callable(getattr(ec, name)) for name in ec.__all__) and callable(match)\n"
        "assert set(ec.__all__) <= set(dir(ec)) and not hasattr(ec, 'frob')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt(), 130), (_Terminated(143), 143)])
def test_a_signal_while_a_compiled_loop_begins_ends_the_command(
    raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: object, **__: object) -> None:
        # As Python reports a function of C that gave a result and an exception.
        try:
            raise raised
        except BaseException as inner:
            raise SystemError("returned a result with an exception set") from inner

    monkeypatch.setattr("eventcube.cli.command.Commands.invoke", begin)
    with pytest.raises(SystemExit) as ended:
        main(["run", "PATTERN A a", "events.csv"])
    assert ended.value.code == code
