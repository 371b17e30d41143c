"""Kafka joined with PostgreSQL, into Kafka and PostgreSQL: each result once, through any kill."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.kafka_broker import Broker
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres_server import PostgresServer

ITEMS = 5
SLACK_MILLISECONDS = 5_000
"""So much later at most a version may be seen than it was committed, on the time of PostgreSQL."""


@dataclass
class Ledger:
    """What was sent and changed, by whom nobody kills."""

    broker: Broker
    server: PostgresServer
    rng: random.Random
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:12]}")
    items: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each message its item and its time."""
    bad: int = 0
    versions: list[list[tuple[int, int]]] = field(
        default_factory=lambda: [[] for _ in range(ITEMS)]
    )
    """Of each item when the transaction of each version began and was over."""
    is_over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        topics = [NewTopic(f"{self.name}_{each}", 1, 1) for each in ("in", "out", "dead")]
        admin = self.broker.admin()
        for made in admin.create_topics(topics).values():
            made.result(PATIENCE_SECONDS)
        self.server.run(
            f"CREATE TABLE {self.name}_items (item bigint PRIMARY KEY, version bigint)",
            f"ALTER TABLE {self.name}_items REPLICA IDENTITY FULL",
            f"INSERT INTO {self.name}_items SELECT n, 0 FROM generate_series(0, {ITEMS - 1}) n",
            f"CREATE TABLE {self.name}_out (id bigint, version bigint)",
            f"CREATE TABLE {self.name}_counts (item bigint PRIMARY KEY, n bigint)",
        )
        at_once = {"bootstrap.servers": self.broker.address}
        self._producer = Producer(at_once)
        self._aborting = Producer(at_once | {"transactional.id": self.name})
        self._aborting.init_transactions(PATIENCE_SECONDS)

    def keep(self) -> None:
        """Sends and changes until it is over."""
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            while not self.is_over.wait(0.05):
                self._send(self.rng.randint(1, 5))
                if self.rng.random() < 0.1:
                    self._abort()
                if self.rng.random() < 0.5 and self._has_begun(connection):
                    self._change(connection)
        self._send(1)
        self._sent({"id": -1, "item": ITEMS}, _now() + 1)  # all before it is over, and joins none

    def _has_begun(self, connection: psycopg.Connection) -> bool:
        """Whether the table has been read: what it holds then counts from the beginning on."""
        (there,) = connection.execute(f"SELECT count(*) FROM {self.name}_out").fetchone()
        return bool(there)

    def _send(self, count: int) -> None:
        for _ in range(count):
            number, at = len(self.items), _now()
            item = self.rng.randrange(ITEMS)
            self._sent({"id": number, "item": item}, at)
            self.items[number] = item, at
        if self.rng.random() < 0.2:
            self._producer.produce(f"{self.name}_in", value=b"{no json", timestamp=_now())
            self.bad += 1
        assert self._producer.flush(PATIENCE_SECONDS) == 0

    def _sent(self, value: dict[str, int], at: int) -> None:
        self._producer.produce(f"{self.name}_in", json.dumps(value).encode(), timestamp=at)
        assert self._producer.flush(PATIENCE_SECONDS) == 0

    def _abort(self) -> None:
        self._aborting.begin_transaction()
        self._aborting.produce(f"{self.name}_in", b'{"id": -2, "item": 0}', timestamp=_now())
        assert self._aborting.flush(PATIENCE_SECONDS) == 0
        self._aborting.abort_transaction(PATIENCE_SECONDS)

    def _change(self, connection: psycopg.Connection) -> None:
        item, began = self.rng.randrange(ITEMS), _now()
        change = f"UPDATE {self.name}_items SET version = version + 1 WHERE item = {item}"
        connection.execute(change)
        self.versions[item].append((began, _now()))

    def check(self) -> None:
        """Each result once, with a version that its item had at its time, and the same in both."""
        sent = [json.loads(each.value()) for each in self.broker.received(f"{self.name}_out")]
        found = [(each["row"]["id"], each["row"]["version"]) for each in sent]
        told = self.server.rows(f"SELECT id, version FROM {self.name}_out")
        ids, wanted = Counter(each for each, _ in found), Counter(list(self.items))
        assert (wanted - ids, ids - wanted) == (Counter(), Counter())
        assert sorted(told) == sorted(found)
        wrong = [each for each in found if not self._could_be(*each)]
        assert wrong == []
        counts = Counter(item for item, _ in self.items.values())
        assert dict(self.server.rows(f"SELECT * FROM {self.name}_counts")) == dict(counts)
        assert len(self.broker.received(f"{self.name}_dead")) == self.bad

    def _could_be(self, number: int, version: int) -> bool:
        item, at = self.items[number]
        known = self.versions[item]
        least = sum(over < at - SLACK_MILLISECONDS for _, over in known)
        return least <= version <= sum(began <= at for began, _ in known)


def _now() -> int:
    return time.time_ns() // 1_000_000


def kills_of_a_join(
    broker: Broker, server: PostgresServer, folder: Path, seed: int, kills: int
) -> int:
    """Kills an engine so many times; says how many messages there were."""
    ledger = Ledger(broker, server, random.Random(seed))
    keeping = threading.Thread(target=ledger.keep, daemon=True)
    keeping.start()
    command = [sys.executable, "-m", "tests.connectors.joined_lives", broker.address, server.dsn]
    process = subprocess.Popen(
        [*command, ledger.name, str(folder), str(seed), str(kills)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: (folder / "last").exists() or process.poll() is not None)
    ledger.is_over.set()
    keeping.join()
    (folder / "sent.new").write_text(str(len(ledger.items)))
    (folder / "sent.new").rename(folder / "sent")
    said, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, said) == (0, f"{kills}\n"), errors[-4_000:]
    ledger.check()
    return len(ledger.items)
