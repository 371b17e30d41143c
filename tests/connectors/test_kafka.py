"""Topics of a real broker as sources and sinks."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.catalog import Connector, StreamEntry
from millpond.connectors import kafka, open_source
from millpond.connectors.sources import Declaration, OpenPages, Taken
from millpond.errors import InputError, MillpondError, OutputError
from millpond.settings import Settings
from millpond.testing import check_sink, check_source
from tests.connectors.declarations import schema, tuples
from tests.crashing import die
from tests.maven import UnreachableError
from tests.patience import PATIENCE_SECONDS, wait_until

pytest.importorskip("confluent_kafka", reason="pip install 'millpond[kafka]' brings it")
from tests.kafka_broker import Broker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    try:
        started = Broker()
    except UnreachableError as error:
        pytest.skip(f"Kafka's jars are not here: {error}")
    yield started
    started.close()


def opened(
    broker: Broker, columns: str, topic: str, skips: bool = False, page_rows: int = 7, **options
):
    options = {"brokers": broker.address, "until": "now"} | options
    call = Connector("kafka", (topic,), tuple(options.items()))
    entry = StreamEntry("S", schema(columns), None, 0, call, skips_bad_rows=skips)
    return open_source(entry, Settings(page_rows=page_rows))


def read(source) -> tuple[list, list]:
    pages = list(source.pages())
    return [r for p in pages for r in tuples(p.rows)], [b for p in pages for b in p.bad]


def values(broker: Broker, topic: str) -> list:
    return [json.loads(each.value()) for each in broker.received(topic)]


# -- the source ----------------------------------------------------------------------------


def test_a_message_is_a_row_with_its_key_place_time_and_headers(broker: Broker) -> None:
    topic = broker.topic()
    message = {"key": "k", "value": '{"a": 1,\n "b": "x"}', "timestamp": 1_767_225_600_000}
    broker.send(topic, [message | {"headers": [("h", b"1"), ("h", None)]}, {"value": None}])
    columns = "a INT, kafka_key STRING, b STRING, kafka_partition INT, kafka_offset BIGINT"
    source = opened(broker, f"{columns}, kafka_timestamp TIMESTAMP, kafka_headers STRING", topic)
    rows, _ = read(source)
    at = datetime(2026, 1, 1)
    assert rows[0] == (1, "k", "x", 0, 0, at, '[["h", "1"], ["h", null]]')
    assert rows[1][:5] == (None, None, None, 0, 1)


def test_raw_messages_are_text(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [b"plain", b"caf\xe9", b""])
    rows, (bad,) = read(opened(broker, "line STRING", topic, skips=True, format="raw"))
    assert rows == [("plain",), ("",)]
    assert (bad.offset, bad.raw) == (f"topic {topic}, partition 0, offset 1", b"caf\xe9")


def test_it_goes_on_behind_every_page_of_several_partitions(broker: Broker) -> None:
    topic = broker.topic(3)
    broker.send(topic, ({"value": json.dumps({"id": n}), "partition": n % 3} for n in range(60)))
    declared = Declaration("S", schema("id BIGINT"), settings=Settings(page_rows=13))

    def open_(declaration: Declaration):
        return kafka.source(declaration, topic, brokers=broker.address, until="now")

    rows = check_source(open_, declared, 60)
    assert sorted(rows) == [(n,) for n in range(60)]


def test_300_malformed_messages_are_all_put_aside(broker: Broker) -> None:
    kinds = [b"", b"{", b"null", b'{"id": "x"}', b"\xff\xfe", b"[1]", b'{"id": 1} {}', b"\n\n"]
    topic, wrong = broker.topic(2), [kinds[n % len(kinds)] for n in range(300)]
    lines = [line for n, each in enumerate(wrong) for line in (b'{"id": %d}' % n, each)]
    broker.send(topic, lines)
    rows, bad = read(opened(broker, "id BIGINT", topic, skips=True, page_rows=100))
    assert sorted(rows) == [(n,) for n in range(300)]
    assert Counter(each.raw for each in bad) == Counter(wrong)


def test_a_bad_message_stops_with_its_offset_and_is_read_again(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [b'{"id": 1}', b'{"id": "x"}'])
    pages = OpenPages.of(opened(broker, "id BIGINT", topic, page_rows=1), Taken())
    assert pages.behind(0).position == {"0": 1}
    for _ in range(2):
        with pytest.raises(InputError, match="offset 1, column id: 'x' is not a BIGINT"):
            pages.behind(1)


def test_messages_that_are_gone_are_an_error(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [b"{}"])
    source = opened(broker, "id BIGINT", topic)
    with pytest.raises(InputError, match="offset 7 is to come next, and is not there any more"):
        list(source.pages_from({"0": 7}))


def test_wrong_declarations_are_refused(broker: Broker) -> None:
    for columns, options, complaint in (
        ("id BIGINT", {"format": "xml"}, "format is 'json' or 'raw'"),
        ("id BIGINT", {"start": "now"}, "start is 'earliest' or 'latest'"),
        ("id BIGINT", {"format": "raw"}, "one column of type STRING"),
        ("kafka_offset INT", {}, "kafka_offset is BIGINT, not INT"),
    ):
        with pytest.raises(InputError, match=complaint):
            opened(broker, columns, "t", **options)
    with pytest.raises(InputError, match="topic nowhere: "):
        list(opened(broker, "id BIGINT", "nowhere").pages())


def test_without_the_package_the_error_names_the_command(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with Engine() as engine, pytest.raises(MillpondError, match=r"pip install 'millpond\[kafka\]'"):
        engine.execute("CREATE STREAM S (a INT) FROM kafka('t')")


# -- the sink ------------------------------------------------------------------------------


def test_what_is_written_is_there_once_wherever_it_dies(broker: Broker) -> None:
    topics: list[str] = []

    def open_(results):
        if results.resume is None:
            topics.append(broker.topic(2))
        return kafka.sink(results, topics[-1], brokers=broker.address, id="mine")

    check_sink(open_, lambda: [each["row"]["id"] for each in values(broker, topics[-1])], pages=2)


def test_nothing_of_a_page_that_cannot_be_written_is_there(broker: Broker) -> None:
    topic = broker.topic()
    with Engine() as engine:
        engine.execute("CREATE STREAM S (k STRING, n INT, ts BIGINT) TIMESTAMP BY ts")
        options = f"brokers = '{broker.address}', key = 'k', upsert = true"
        engine.execute(f"CREATE QUERY q AS SELECT k, n FROM S INTO kafka('{topic}', {options})")
        engine.push("S", [("a", 1, 1), ("a", 2, 1)])
        with pytest.raises(MillpondError, match="two rows of the key b'a' at once"):
            engine.finish()
    assert broker.received(topic) == []


def test_a_relation_is_an_upsert_topic_with_tombstones(broker: Broker) -> None:
    topic = broker.topic()
    with Engine() as engine:
        engine.execute("CREATE STREAM S (k STRING, n INT, ts BIGINT) TIMESTAMP BY ts")
        options = f"brokers = '{broker.address}', key = 'k', upsert = true"
        engine.execute(
            "CREATE QUERY q AS SELECT k, sum(n) AS s FROM S [RANGE 9] GROUP BY k "
            f"INTO kafka('{topic}', {options})"
        )
        engine.push("S", [("a", 1, 1), ("b", 5, 2), ("a", 2, 3)])
        engine.push("S", [("c", 1, 100)])
        engine.run_until_idle()
    last: dict = {}
    for each in broker.received(topic):
        last[each.key()] = each.value()
    assert last[b"a"] is None
    assert last[b"b"] is None
    found = [json.loads(e.value()) for e in broker.received(topic) if e.key() == b"a" and e.value()]
    assert found == [{"k": "a", "s": 1}, {"k": "a", "s": 3}, {"k": "a", "s": 2}]


def test_another_run_of_the_same_query_shuts_the_first_out(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()

    def sink(resume):
        results = kafka.Results("q", schema("id BIGINT"), resume=resume)
        return kafka.sink(results, topic, brokers=broker.address)

    table = pa.table({"ts": [1], "weight": [1], "id": [1]})
    first = sink(None)
    first.write_numbered(table, 0)
    second = sink(first.mark())
    with pytest.raises(OutputError, match="fenced"):
        first.write_numbered(table, 1)
    second.write_numbered(table, 0)
    second.write_numbered(table, 1)
    assert len(broker.received(topic)) == 2


# -- from topic to topic -------------------------------------------------------------------


def test_an_endless_topic_is_read_as_messages_come(broker: Broker, tmp_path: Path) -> None:
    read_, written = broker.topic(), broker.topic()
    engine = Engine(store=tmp_path / "store")
    engine.execute(f"CREATE STREAM S (id BIGINT) FROM kafka('{read_}', brokers='{broker.address}')")
    engine.execute(
        f"CREATE QUERY q AS SELECT id FROM S INTO kafka('{written}', brokers='{broker.address}')"
    )
    engine.start()
    for number in range(3):
        broker.send(read_, [b'{"id": %d}' % number])
        wait_until(lambda number=number: len(broker.received(written)) == number + 1)
    engine.stop()
    die(engine)
    broker.end()
    broker.start()
    with Engine(store=tmp_path / "store") as again:
        again.start()
        broker.send(read_, [b'{"id": 3}'])
        wait_until(lambda: len(broker.received(written)) == 4)
        again.stop()
    assert [each["row"]["id"] for each in values(broker, written)] == [0, 1, 2, 3]


def test_20_kills_lose_nothing_and_double_nothing(broker: Broker, tmp_path: Path) -> None:
    kills_between_topics(broker, tmp_path, seed=1, kills=20)


def kills_between_topics(broker: Broker, folder: Path, seed: int, kills: int) -> None:
    """Kills an engine that reads a topic and writes another, and compares the ids at both ends."""
    read_, written, count = broker.topic(3), broker.topic(2), 60 * kills
    bad = [n for n in range(count) if n % 11 == 5]
    lines = [{"value": b"%d" % n if n in bad else b'{"id": %d}' % n} for n in range(count)]
    broker.send(read_, [each | {"partition": n % 3} for n, each in enumerate(lines)])
    command = [sys.executable, "-m", "tests.connectors.kafka_lives", broker.address, read_, written]
    done = subprocess.run(
        [*command, str(folder / "store"), str(seed), str(kills)],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{kills}\n"), done.stderr[-4_000:]
    found = Counter(each["row"]["id"] for each in values(broker, written))
    wanted = Counter(n for n in range(count) if n not in bad)
    assert (wanted - found, found - wanted) == (Counter(), Counter())
    with (folder / "dead.csv").open(newline="") as dead:
        assert sorted(int(row["raw"]) for row in csv.DictReader(dead)) == bad
