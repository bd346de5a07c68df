"""Jars that tests of streams need beside Spark, brought by Maven once on a machine; without them, tests are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

# Only what is in all of these is tested together; users name the connector alone, and Spark brings the rest.
BROKER = ("org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-nop:1.7.36")
TOOLS = ("org.apache.kafka:kafka-tools:4.1.0",)
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)
# Formats of records and of tables.
FORMATS = (
    "org.apache.spark:spark-avro_2.13:4.1.1",
    "io.delta:delta-spark_4.1_2.13:4.1.0",
    "io.delta:delta-storage:4.1.0",
)
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def connector_jars() -> list[Path]:
    """Spark's connector and what it needs, for `spark.jars`."""
    return sorted(_fetched("connector", CONNECTOR, alone=CONNECTOR).glob("*.jar"))


def format_jars() -> list[Path]:
    """Avro and Delta for Spark."""
    return sorted(_fetched("formats", FORMATS, alone=FORMATS).glob("*.jar"))


def broker_jars() -> Path:
    """The folder with the jars of the broker and its tools."""
    return _fetched("broker", BROKER + TOOLS, alone=TOOLS)


def _fetched(name: str, artifacts: Sequence[str], alone: Sequence[str]) -> Path:
    """A folder with artifacts and what they depend on, except for those to be had `alone`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eventcube" / "jars"
    folder = cache / "-".join([name, *(a.rsplit(":", 1)[1] for a in artifacts)])
    if folder.exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("Maven (mvn) is not installed, which brings the jars of Kafka")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        Path(work, "pom.xml").write_text(_pom(artifacts, alone))
        command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={work}/jars"]
        # Maven remembers a failed look-up, unless it is told to ask again.
        for again in ((), ("-U",)):
            done = subprocess.run([*command, *again], cwd=work, capture_output=True, text=True, timeout=300)
            if done.returncode == 0:
                break
        else:
            said = [line for line in done.stdout.splitlines() if "ERROR" in line]
            pytest.skip(f"Maven did not bring the jars: {said[0][:300] if said else done.stderr[-300:]}")
        try:
            Path(work, "jars").rename(folder)
        except OSError:
            # Another process was faster.
            if not folder.exists():
                raise
    return folder


def _pom(artifacts: Sequence[str], alone: Sequence[str]) -> str:
    dependencies = []
    for artifact in artifacts:
        group, name, version = artifact.split(":")
        place = f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        dependencies.append(f"<dependency>{place}{_ALONE if artifact in alone else ''}</dependency>")
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>eventcube</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><dependencies>{''.join(dependencies)}</dependencies></project>"
    )
