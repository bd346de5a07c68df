"""Ctrl-C while Spark starts: the JVM must not be left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from eventcube.spark import session


def test_ctrl_c_while_the_jvm_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # It ends when nobody can write to it any more, as the JVM does.
    jvm = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    steps: list[str] = []

    def launch(**_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("launched all the same")
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=jvm))

    monkeypatch.setattr(session, "ensure_java", lambda: None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", launch)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        session.start_session("local[1]")
    assert steps == ["launched all the same"]
    assert jvm.returncode == 0, "it was left time to remove its files"
    assert SparkContext._gateway is None
    assert signal.getsignal(signal.SIGINT) is before
