"""A session of the user's own, whose workers lack the package."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("lacking", ["eventcube", "pyarrow"])
def test_workers_without_a_package_are_told_in_one_message_before_any_job(lacking: str, tmp_path: Path) -> None:
    python = _environment(tmp_path / "bare", {"eventcube", lacking})
    command = [sys.executable, "-W", "ignore", "-m", "tests.spark.ask_workers", str(python)]
    command += ["shipped"] if lacking == "eventcube" else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    lacks = "eventcube" if lacking == "eventcube" else "pyarrow, eventcube"
    said = (
        f"error[EC436]: Spark's workers run Python {version} ({python}), which lacks {lacks}; "
        f"you run Python {version} ({answer['executable']})\n"
        f"hint: before the session starts, set PYSPARK_PYTHON={answer['executable']} in the environment"
    )
    assert answer["refused"] == [said, said]
    assert answer["jobs"] == 0
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr, "the JVM's own trace"
    assert answer.get("found") == (1 if lacking == "eventcube" else None), "shipped, it is there"


def _environment(folder: Path, lacking: set[str]) -> Path:
    """The interpreter of an environment that has everything but these packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    there = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    for source in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for path in Path(source).iterdir():
            if not any(name in path.name for name in lacking) and path.suffix != ".pth":
                (there / path.name).symlink_to(path)
    return python
