"""What Kafka's source and sink take, on a broker of its own.

Rows a second and processor seconds per million rows from a topic into a count, and from a topic to
a topic; then how long a message takes from one topic to the other, p50 and p99, at 1,000 and 10,000
messages a second (``--quick``: fewer of all). The broker and whoever sends and reads share the
machine's cores. Beside it Structured Streaming reads and writes the same topics, if the jars of its
source can be fetched. One JSON line a case.

    python -m benchmarks.connectors [--quick] [--out DIR]
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import kafka_peer
from benchmarks.reporting import Report, note, options
from millpond import Engine
from tests.kafka_broker import Broker
from tests.maven import UnreachableError

ROWS, QUICK_ROWS = 500_000, 50_000
RATES, SECONDS, QUICK_SECONDS = (1_000, 10_000), 20.0, 5.0
WARM_SECONDS = 2.0
"""What comes in the first seconds is not counted."""


def filled(broker: Broker, rows: int) -> str:
    topic = broker.topic(2)
    broker.send(topic, (b'{"id": %d, "k": %d, "v": 1.5}' % (n, n % 100) for n in range(rows)))
    return topic


def read(broker: Broker, topic: str, into: str, store: Path | None) -> dict[str, float]:
    with Engine(store=store) as engine:
        engine.execute(
            "CREATE STREAM S (id BIGINT, k INT, v DOUBLE) "
            f"FROM kafka('{topic}', brokers = '{broker.address}', until = 'now')"
        )
        engine.execute(f"CREATE QUERY q AS {into}")
        wall, processor = time.perf_counter(), time.process_time()
        engine.finish()
        return {
            "seconds": time.perf_counter() - wall,
            "processor_seconds": time.process_time() - processor,
        }


def throughput(report: Report, broker: Broker, rows: int, folder: Path) -> None:
    topic = filled(broker, rows)
    sink = f"INTO kafka('{broker.topic(2)}', brokers = '{broker.address}')"
    cases = {
        "topic to count": ("SELECT k, count(*) AS n FROM S GROUP BY k", None),
        "topic to count, with a store": ("SELECT k, count(*) AS n FROM S GROUP BY k", folder / "a"),
        "topic to topic": (f"SELECT id, v FROM S {sink}", None),
    }
    read(broker, filled(broker, 1_000), "SELECT count(*) AS n FROM S", None)  # loads what is needed
    for name, (query, store) in cases.items():
        took = read(broker, topic, query, store)
        cost = took["processor_seconds"] / rows * 1e6
        report.value(
            name,
            rows / took["seconds"],
            "rows/s",
            rows=rows,
            processor_seconds_per_million_rows=cost,
        )


def peer(report: Report, broker: Broker, rows: int) -> None:
    """The same by Structured Streaming."""
    try:
        with kafka_peer.session() as spark:
            kafka_peer.read(spark, broker, filled(broker, 1_000), None)  # loads what is needed
            for name, into in (("topic to count", None), ("topic to topic", broker.topic(2))):
                took = kafka_peer.read(spark, broker, filled(broker, rows), into)
                cost = took["processor_seconds"] / rows * 1e6
                report.value(
                    f"{name}, Structured Streaming",
                    took["rows"] / took["seconds"],
                    "rows/s",
                    rows=rows,
                    processor_seconds_per_million_rows=cost,
                )
    except UnreachableError as error:
        note(f"without Structured Streaming: {error}")


def latency(broker: Broker, per_second: int, seconds: float, folder: Path) -> dict[str, float]:
    """Sends at a rate, and looks how old messages are when they come out."""
    read_, written, address = broker.topic(2), broker.topic(1), broker.address
    found: list[float] = []
    over = threading.Event()

    def watch() -> None:
        consumer = Consumer({"bootstrap.servers": address, "group.id": "w", "fetch.wait.max.ms": 5})
        consumer.assign([TopicPartition(written, 0, 0)])
        while not over.is_set():
            for message in consumer.consume(1000, timeout=0.01):
                if not message.error():
                    sent = json.loads(message.value())["row"]["sent"]
                    found.append((time.time_ns() - sent) / 1e6)
        consumer.close()

    with Engine(store=folder / f"store-{per_second}") as engine:
        engine.execute(
            f"CREATE STREAM S (sent BIGINT) FROM kafka('{read_}', brokers = '{address}')"
        )
        engine.execute(
            f"CREATE QUERY q AS SELECT sent FROM S INTO kafka('{written}', brokers = '{address}')"
        )
        engine.start()
        watching = threading.Thread(target=watch)
        watching.start()
        count = send(address, read_, per_second, seconds)
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        over.set()
        watching.join()
        engine.stop(drain=False)
    counted = found[int(WARM_SECONDS * per_second) :]
    p50, p99 = np.percentile(counted, [50, 99])
    return {"messages": len(found), "lost": count - len(found), "p50_ms": p50, "p99_ms": p99}


def send(address: str, topic: str, per_second: int, seconds: float) -> int:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 1})
    began, sent, count = time.monotonic(), 0, int(per_second * seconds)
    while sent < count:
        due = min(count, int((time.monotonic() - began) * per_second))
        for _ in range(sent, due):
            producer.produce(topic, b'{"sent": %d}' % time.time_ns())
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(0.002)
    producer.flush(30)
    return count


def main() -> None:
    chosen = options(__doc__ or "", "how many messages are read").parse_args()
    report = Report("connectors", chosen.out)
    broker = Broker()
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = chosen.rows or (QUICK_ROWS if chosen.quick else ROWS)
            throughput(report, broker, rows, Path(folder))
            peer(report, broker, rows)
            for per_second in RATES:
                seconds = QUICK_SECONDS if chosen.quick else SECONDS
                took = latency(broker, per_second, seconds, Path(folder))
                case = f"topic to topic at {per_second:,} messages/s"
                report.value(case, took.pop("p50_ms"), "ms, p50", **took)
    finally:
        broker.close()
    report.close()
    note("the broker, its producer and its reader took their part of the same cores")


if __name__ == "__main__":
    main()
