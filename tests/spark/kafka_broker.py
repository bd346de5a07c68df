"""A Kafka broker on this machine: one process on loopback, ended by its id."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eventcube.spark.java import find_java
from tests.spark.kafka_jars import broker_jars

STARTED_WITHIN = 90
_ID = "MkU3OEVBNTcwNTJENDM2Qk"
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
# A broker that was killed comes back at once.
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
"""


class Broker:
    """A broker with its data in a folder; stopped or killed, it can be started again, at the same address."""

    def __init__(self, folder: Path) -> None:
        """Prepare a broker; `start` starts it."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port, controller = _free_ports(2)
        self._properties = folder / "server.properties"
        text = _PROPERTIES.format(port=self.port, controller=controller, data=folder / "data")
        self._properties.write_text(text)
        self._run("kafka.tools.StorageTool", "format", "-t", _ID, "-c", str(self._properties))

    @property
    def servers(self) -> str:
        """What Spark takes as kafka.bootstrap.servers."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        assert self._process is None
        with (self._folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_java("-Xmx512m"), "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )
        end = time.monotonic() + STARTED_WITHIN
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > end:
                said = (self._folder / "broker.log").read_text(errors="replace")[-2000:]
                self.kill()
                raise TimeoutError(f"the broker did not start:\n{said}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Let the process end by itself."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
                self._process = None
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End the process at once, as a machine that loses power."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic."""
        described = ["--topic", name, "--partitions", str(partitions), "--replication-factor", "1"]
        self._run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.servers, "--create", *described)

    def produce(self, topic: str, values: Iterable[str]) -> None:
        """Append records, each a line of text, in this order if the topic has one partition."""
        self._run(
            "org.apache.kafka.tools.ConsoleProducer",
            *("--bootstrap-server", self.servers, "--topic", topic),
            lines="".join(f"{value}\n" for value in values),
        )

    def _run(self, tool: str, *arguments: str, lines: str = "") -> None:
        """Run a tool of Kafka to its end."""
        command = [*_java("-Xmx128m"), tool, *arguments]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, cwd=self._folder, timeout=120)
        if done.returncode or "ERROR" in done.stderr:
            raise RuntimeError(f"{tool}: {done.stdout[-1000:]}{done.stderr[-1000:]}")


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """A running broker, gone when the block ends, however it ends; skips the test where its jars cannot be had."""
    running = Broker(folder)
    try:
        running.start()
        yield running
    finally:
        running.kill()


def _java(memory: str) -> list[str]:
    return [str(find_java().home / "bin" / "java"), memory, "-cp", f"{broker_jars()}/*"]


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_ports(count: int) -> list[int]:
    """Ports that nothing listens at, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
