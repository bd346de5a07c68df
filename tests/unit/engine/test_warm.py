"""`warm` compiles all that the engine ever uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eventcube.engine import compiled, warm
from eventcube.engine.candidates import stacked
from eventcube.errors import OptionError

# What is loaded or compiled after `warm`: random queries of every mode, under every strategy.
_RUN = """
from random import Random
from tests.contracts.test_strategies import EVERY, NESTED, STREAM, trades, run
from tests.differential.modes import MODES
from tests.oracle.generate import PLAIN, Case
from tests.oracle.shorthand import stream
from tests.contracts.test_strategies import agrees
from eventcube.engine.compiled import LOOPS
from eventcube.engine.warm import warm
from eventcube.language.parse import parse

warm()
before = {name: set(loop.signatures) for name, loop in LOOPS.items()}
for strategy in EVERY:
    for query in NESTED:
        for cut in ([], [1] * 20):
            agrees(strategy, Case(parse(f"PATTERN {query}"), stream(STREAM), PLAIN), cut)
    if strategy != "rewrite":
        run("SEQ(A a, SEQ(B b, C c), D d, E e) WITHIN 60 ms", trades(1500), strategy, 40)
for name, mode in MODES.items():
    for seed in range(12):
        rng = Random(seed)
        mode.check(mode.draw(rng), rng)
for name, loop in LOOPS.items():
    for signature in set(loop.signatures) - before[name]:
        print(name, signature)
"""


def test_every_loop_is_listed() -> None:
    assert {loop.py_func.__name__ for loop in warm.SIGNATURES} == set(compiled.LOOPS)


@pytest.mark.slow
def test_nothing_is_left_to_compile() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", _RUN], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_test_of_one_partial_match_is_of_the_kind_that_is_compiled() -> None:
    constant = np.broadcast_to(np.ones(1, np.int64), 1)
    tests = stacked([(np.arange(3), constant, 0)], np.int64)
    assert all(values.flags.writeable for values in tests)


def test_what_is_not_kept_yet_is_known_without_compiling(tmp_path: Path) -> None:
    code = """
from eventcube.engine import kernels, warm
print(sorted(warm.uncompiled()) == sorted(loop.py_func.__name__ for loop in warm.SIGNATURES), warm.misses())
kernels.seek.compile(warm.SIGNATURES[kernels.seek][0])
print("seek" in warm.uncompiled(), "expand" in warm.uncompiled())
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines() == ["True {}", "False True"]


def test_without_a_folder_there_is_nothing_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "cache_folder", lambda: None)
    assert warm.uncompiled() == []


def test_without_a_folder_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "cache_folder", lambda: None)
    with pytest.raises(OptionError, match="EC445"):
        warm.warm()
