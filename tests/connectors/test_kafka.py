"""Topics of a real broker as sources and sinks."""

from __future__ import annotations

import base64
import csv
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.catalog import Connector, StreamEntry
from millpond.connectors import kafka, kafka_sink, kafka_source, open_source
from millpond.connectors.bad_rows import BAD_ROW
from millpond.connectors.changes import open_changes
from millpond.connectors.sinks import Results
from millpond.connectors.sources import Declaration, OpenPages, Taken
from millpond.errors import InputError, MillpondError, OutputError
from millpond.settings import Settings
from millpond.testing import check_sink, check_source
from tests.connectors.declarations import schema, tuples
from tests.crashing import die
from tests.maven import UnreachableError
from tests.patience import PATIENCE_SECONDS, wait_until

pytest.importorskip("confluent_kafka", reason="pip install 'millpond[kafka]' brings it")
pytest.importorskip("psycopg", reason="pip install 'millpond[postgres]' brings it")
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic

from tests.connectors.joined import kills_of_a_join
from tests.kafka_broker import Broker
from tests.postgres_server import PostgresServer

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


def offsets(page) -> dict[str, int]:
    return page.position["offsets"]


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
    kinds.append(b'{"id": 1, "other": "a\nb"}')
    topic, wrong = broker.topic(2), [kinds[n % len(kinds)] for n in range(300)]
    lines = [line for n, each in enumerate(wrong) for line in (b'{"id": %d}' % n, each)]
    broker.send(topic, lines)
    rows, bad = read(opened(broker, "id BIGINT", topic, skips=True, page_rows=100))
    assert sorted(rows) == [(n,) for n in range(300)]
    assert Counter(each.raw for each in bad) == Counter(wrong)


def test_300_raw_messages_that_are_no_text_are_all_put_aside(broker: Broker) -> None:
    rng, topic = random.Random(1), broker.topic(2)
    wrong = [rng.randbytes(rng.randrange(20)) + b"\xff" + rng.randbytes(3) for _ in range(300)]
    broker.send(topic, [line for n, each in enumerate(wrong) for line in (b"%d" % n, each)])
    declared = {"skips": True, "format": "raw", "page_rows": 100}
    rows, bad = read(opened(broker, "line STRING", topic, **declared))
    assert Counter(rows) == Counter((str(n),) for n in range(300))
    assert Counter(each.raw for each in bad) == Counter(wrong)


def test_messages_without_a_value_that_come_first_are_read(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [b"", b"", {"key": b"k", "value": None}, {"key": b"k", "value": None}])
    columns = "id BIGINT, kafka_key STRING"
    rows, bad = read(opened(broker, columns, topic, skips=True, page_rows=1))
    assert (rows, [each.raw for each in bad]) == ([(None, "k")] * 2, [b"", b""])


def test_a_bad_message_stops_with_its_offset_and_is_read_again(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [b'{"id": 1}', b'{"id": "x"}'])
    pages = OpenPages.of(opened(broker, "id BIGINT", topic, page_rows=1), Taken())
    assert offsets(pages.behind(0)) == {"0": 0}
    assert offsets(pages.behind(0)) == {"0": 1}
    for _ in range(2):
        with pytest.raises(InputError, match="offset 1, column id: 'x' is not a BIGINT"):
            pages.behind(1)


def test_messages_that_are_gone_are_an_error(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [b"{}"])
    source = opened(broker, "id BIGINT", topic)
    with pytest.raises(InputError, match="offset 7 is to come next, and is not there any more"):
        list(source.pages_from({"topic": "", "offsets": {"0": 7}}))


def test_what_comes_after_latest_is_not_passed_over_by_a_run_that_fails(broker: Broker) -> None:
    topic = broker.topic()
    broker.send(topic, [b'{"id": 0}'])
    pages = OpenPages.of(opened(broker, "id BIGINT", topic, start="latest", until="never"), Taken())
    assert offsets(pages.behind(0)) == {"0": 1}
    broker.send(topic, [b'{"id": "x"}', b'{"id": 2}'])
    for _ in range(2):
        with pytest.raises(InputError, match="offset 1, column id: 'x' is not a BIGINT"):
            pages.behind(0)


def test_where_latest_was_is_in_the_store_before_the_first_message(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic()
    broker.send(topic, [b'{"id": 0}'])
    with Engine(store=tmp_path / "store") as engine:
        options = f"brokers='{broker.address}', start='latest'"
        engine.execute(f"CREATE STREAM S (id BIGINT) FROM kafka('{topic}', {options})")
        engine.execute("CREATE QUERY q AS SELECT id FROM S")
        engine.start()
        wait_until(lambda: b'"offsets"' in (tmp_path / "store" / "commits.log").read_bytes())
        engine.stop()
    broker.send(topic, [b'{"id": 1}'])
    with Engine(store=tmp_path / "store") as again:
        again.start()
        wait_until(lambda: again.results("q").num_rows == 1)
        again.stop()
        assert again.results("q").column("id").to_pylist() == [1]


def test_changes_after_latest_are_read_whatever_their_times_are(broker: Broker) -> None:
    topic = broker.topic()
    declared = Declaration("R", schema("id BIGINT"))
    pages = open_changes(
        declared, lambda each: kafka.source(each, topic, brokers=broker.address, start="latest")
    ).pages()
    next(pages)
    broker.send(topic, [b'{"ts": "2026-01-01 00:00:00", "op": "+", "id": 1}'])
    assert next(page for page in pages if page.rows.num_rows).rows["id"].to_pylist() == [1]


def test_a_position_is_behind_the_markers_of_transactions(broker: Broker) -> None:
    topic = broker.topic()
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": topic})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b'{"id": 1}')
    producer.commit_transaction(PATIENCE_SECONDS)

    def last_page():
        *_, last = opened(broker, "id BIGINT", topic).pages()
        return last

    wait_until(lambda: offsets(last_page()) == {"0": 2})  # brokers write the marker later
    last, admin = last_page(), broker.admin()
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 2)]).values()
    deleted.result(PATIENCE_SECONDS)
    assert list(opened(broker, "id BIGINT", topic).pages_from(last.position)) == []


def test_until_now_is_until_the_ends_that_were_when_reading_began(broker: Broker) -> None:
    topic = broker.topic(2)
    old = [{"value": b'{"id": 1}', "partition": 0}, {"value": b'{"id": 2}', "partition": 1}]
    broker.send(topic, old)
    pages = opened(broker, "id BIGINT", topic).pages()
    next(pages)
    broker.send(topic, [each | {"value": b'{"id": 3}'} for each in old])
    rest = list(pages)
    assert sorted(row for page in rest for row in tuples(page.rows)) == [(1,), (2,)]
    assert offsets(rest[-1]) == {"0": 1, "1": 1}


def test_partitions_that_are_added_are_read_while_others_are_busy(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_source, "LOOK_SECONDS", 0.1)
    topic, is_over = broker.topic(), threading.Event()
    source = opened(broker, "kafka_partition INT", topic, page_rows=50, until="never")
    pages = source.pages()
    next(pages)

    def be_busy() -> None:
        producer = Producer({"bootstrap.servers": broker.address})
        while not is_over.wait(0.01):
            producer.produce(topic, b"{}", partition=0)
            producer.flush()

    with ThreadPoolExecutor(1) as busy:
        busy.submit(be_busy)
        admin, began = broker.admin(), time.monotonic()
        (added,) = admin.create_partitions([NewPartitions(topic, 2)]).values()
        added.result(PATIENCE_SECONDS)
        broker.send(topic, [{"value": b"{}", "partition": 1}])
        for page in pages:
            is_found = (1,) in tuples(page.rows)
            if is_found or time.monotonic() > began + PATIENCE_SECONDS:
                break
        is_over.set()
    source.close()
    assert is_found


def test_a_topic_made_anew_is_an_error(broker: Broker) -> None:
    topic, admin = broker.topic(2), broker.admin()
    broker.send(topic, [{"value": b'{"id": 1}', "partition": each} for each in (0, 1)])
    *_, last = opened(broker, "id BIGINT", topic).pages()
    (gone,) = admin.delete_topics([topic]).values()
    gone.result(PATIENCE_SECONDS)
    (made,) = admin.create_topics([NewTopic(topic, 1, 1)]).values()
    made.result(PATIENCE_SECONDS)
    broker.send(topic, [b'{"id": 2}', b'{"id": 3}'])
    complaint = "made anew since it was read, and has no partition 1: .* DROP the stream"
    for position in (last.position, last.position | {"topic": ""}):
        with pytest.raises(InputError, match=complaint):
            list(opened(broker, "id BIGINT", topic).pages_from(position))
    known, source = last.position | {"offsets": {"0": 1}}, opened(broker, "id BIGINT", topic)
    with pytest.raises(InputError, match=r"made anew since it was read: .* DROP the stream"):
        list(source.pages_from(known))


def test_a_source_waits_while_no_broker_answers(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafka_source, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(kafka_source, "ANSWER_SECONDS", 2.0)
    topic = broker.topic()
    source = opened(broker, "id BIGINT", topic, until="never")
    pages = OpenPages.of(source, Taken())
    pages.behind(0)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(pages.behind, 0)
        broker.end()
        try:
            wait_until(lambda: "S: no broker of Kafka's answers; it waits for one" in caplog.text)
            with pytest.raises(InputError, match=f"no broker answers at {broker.address} .* start"):
                next(opened(broker, "id BIGINT", topic).pages())
        finally:
            broker.start()
        broker.send(topic, [b'{"id": 1}'])
        assert tuples(coming.result(PATIENCE_SECONDS).rows) == [(1,)]


def test_a_time_out_of_range_is_a_bad_row(broker: Broker) -> None:
    topic = broker.topic(**{"message.timestamp.after.max.ms": str(2**63 - 1)})
    broker.send(topic, [{"value": b'{"id": 1}', "timestamp": 2**62}, b'{"id": 2}'])
    source = opened(broker, "id BIGINT, kafka_timestamp TIMESTAMP", topic, skips=True)
    (row,), (bad,) = read(source)
    assert row[0] == 2
    assert "offset 0, column kafka_timestamp: " in bad.reason


def test_wrong_declarations_are_refused(broker: Broker) -> None:
    for columns, options, complaint in (
        ("id BIGINT", {"format": "xml"}, "format is 'json' or 'avro' or 'raw'"),
        ("id BIGINT", {"start": "now"}, "start is 'earliest' or 'latest'"),
        ("id BIGINT", {"format": "raw"}, "one column of type STRING"),
        ("kafka_offset INT", {}, "kafka_offset is BIGINT, not INT"),
        ("id BIGINT", {"brokers": 7}, "S: brokers is a text that is not empty, not 7"),
    ):
        with pytest.raises(InputError, match=complaint):
            opened(broker, columns, "t", **options)
    with pytest.raises(InputError, match="S: the topic is a text that is not empty, not ''"):
        opened(broker, "id BIGINT", "")
    with pytest.raises(InputError, match="topic nowhere: "):
        list(opened(broker, "id BIGINT", "nowhere").pages())


def test_without_the_package_the_error_names_the_command(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with Engine() as engine, pytest.raises(MillpondError, match=r"pip install 'millpond\[kafka\]'"):
        engine.execute("CREATE STREAM S (a INT) FROM kafka('t')")


# -- Avro ----------------------------------------------------------------------------------

AVRO = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "weight", "type": "long"}, {"name": "id", "type": ["null", "long"]}],
    }
)


def test_what_is_written_as_avro_is_read_as_avro(broker: Broker, tmp_path: Path) -> None:
    read_, written = broker.topic(), broker.topic()
    broker.send(read_, [b'{"id": %d}' % n for n in range(20)])
    options = f"brokers = '{broker.address}', format = 'avro', schema = '{AVRO}', registry_id = 7"
    with Engine() as engine:
        engine.execute(
            f"CREATE STREAM S (id BIGINT) FROM kafka('{read_}', brokers='{broker.address}', "
            f"until = 'now'); CREATE QUERY q AS SELECT id FROM S INTO kafka('{written}', {options})"
        )
        engine.finish()
    wrong = [b"", b"{}", b"\0\0\0\0\x07\x02\x02", b"\0\0\0\0\x08\x02\0"]
    broker.send(written, [*wrong, {"key": "k", "value": None}])
    options = {"format": "avro", "schema": AVRO, "registry_id": 7}
    columns = "id BIGINT, kafka_key STRING"
    # brokers write the marker of a transaction later
    wait_until(lambda: any(read(opened(broker, columns, written, True, **options))))
    rows, bad = read(opened(broker, columns, written, True, **options))
    assert rows == [*((n, None) for n in range(20)), (None, "k")]
    assert [each.raw for each in bad] == wrong


# -- upserts -------------------------------------------------------------------------------


def upserting(broker: Broker, topic: str, more: str = "", columns: str = "k INT") -> str:
    return (
        f"CREATE RELATION R ({columns} PRIMARY KEY ON CONFLICT REPLACE, v STRING) "
        f"FROM kafka('{topic}', brokers = '{broker.address}', upsert = true{more}) "
        "WITH (changes = true); CREATE QUERY q AS RELATION SELECT k, v FROM R;"
    )


def told(engine: Engine) -> Counter[tuple[int, str]]:
    """What the changes of a query come to."""
    found = Counter()
    for row in engine.results("q").to_pylist():
        found[row["k"], row["v"]] += row["weight"]
    return +found


def upserts(count: int, at: int = 1_767_225_600_000) -> tuple[list, Counter]:
    """Messages of 7 keys, some of which go, with times that go back; and what is there then."""
    sent, there = [], {}
    for n in range(count):
        key, value = n * n % 7, None if n % 5 == 3 else f"v{n}"
        there |= {key: value}
        content = None if value is None else json.dumps({"v": value})
        moment = at + 1000 * (n - n % 4)
        sent.append({"key": str(key), "value": content, "timestamp": moment, "partition": key % 2})
    return sent, Counter((key, value) for key, value in there.items() if value is not None)


def test_upserts_are_a_relation_that_changes(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    (messages, _), (_, wanted) = upserts(40), upserts(80)
    more = upserts(80)[0][40:]
    broker.send(topic, messages)
    with Engine(Settings(page_rows=7, validate="on"), store=tmp_path / "store") as engine:
        engine.execute(upserting(broker, topic))
        engine.start()
        wait_until(lambda: told(engine) == upserts(40)[1])
        engine.stop()
        die(engine)
    broker.send(topic, more)
    with Engine(store=tmp_path / "store") as again:
        again.start()
        wait_until(lambda: told(again) == wanted)
        broker.send(topic, [{"key": str(key), "value": None} for key in range(9)])
        wait_until(lambda: not told(again))
        again.stop()


def test_upserts_go_on_behind_each_row_and_time_goes_on(broker: Broker) -> None:
    topic = broker.topic(2)
    (messages, _), now = upserts(30), 1_000_000 * time.time()
    messages[4] |= {"timestamp": int(now / 1000) + 3_000_000}  # who is ahead of the clock
    broker.send(topic, messages)
    columns = {"key": (0,), "replaces": True, "settings": Settings(page_rows=9)}
    declared = Declaration("R", schema("k INT, v STRING"), **columns)
    options = {"brokers": broker.address, "upsert": True}
    source = kafka.changes(declared, topic, **options)
    pages, whole, until = OpenPages.of(source, Taken()), [], None
    while until is None:
        page = pages.behind(sum(each.rows.num_rows for each in whole))
        whole, until = [*whole, page], page.until
    source.close()
    times = [time for each in whole for time in each.rows["ts"].to_pylist()]
    assert times == sorted(times)
    assert max(times) <= until <= 1_000_000 * time.time()
    offsets_ = [row for each in whole for row in tuples(each.rows.select(["k", "v"]))]
    for page in (each for each in whole if each.rows.num_rows):
        position = json.loads(json.dumps(page.position_after(3)))
        rest = kafka.changes(declared, topic, **options, until="now").pages_from(position)
        had = sum(position["offsets"].values())
        found = [(at, row) for each in rest for at, *row in tuples(each.rows)]
        assert len(found) == len(offsets_) - had
        assert all(at >= page.rows["ts"][2].as_py() for at, _ in found)


def test_wrong_upserts_are_refused(broker: Broker) -> None:
    topic, settings = broker.topic(), {"cleanup.policy": "compact", "delete.retention.ms": "1000"}
    broker.send(topic, [b"{}"])
    two = "k INT, l INT"
    call = {"upsert": True, "brokers": broker.address}
    for columns, key, replaces, options, complaint in (
        ("k INT", (0,), False, {}, "PRIMARY KEY … ON CONFLICT REPLACE"),
        (two, (0, 1), True, {}, "the PRIMARY KEY has 2; with key_format = 'json'"),
        ("k INT", (0,), True, {"key_format": "x"}, "key_format is 'text' or 'json'"),
        ("k INT", (0,), True, {"start": "latest"}, "read from the first message on"),
        ("k INT", (0,), True, {"upsert": "x"}, "upsert is true or false, not 'x'"),
        ("k INT", (0,), True, {}, "offset 0: a message without a key is no upsert"),
    ):
        declared = Declaration("R", schema(columns), key=key, replaces=replaces)
        with pytest.raises(InputError, match=complaint):
            list(kafka.changes(declared, topic, **(call | options), until="now").pages())
    declared = Declaration("R", schema("k INT"), key=(0,), replaces=True)
    long_ago = {"topic": "", "offsets": {"0": 1}, "time": 0, "whole": time.time() - 7_200}
    with pytest.raises(InputError, match=r"2\.0 hours ago, and keeps .* \(delete.retention.ms\)"):
        list(kafka.changes(declared, broker.topic(**settings), **call).pages_from(long_ago))


# -- the sink ------------------------------------------------------------------------------


def test_what_is_written_is_there_once_wherever_it_dies(broker: Broker) -> None:
    topics: list[str] = []

    def open_(results):
        if results.resume is None:
            topics.append(broker.topic(2))
        return kafka.sink(results, topics[-1], brokers=broker.address, id="mine")

    check_sink(open_, lambda: [each["row"]["id"] for each in values(broker, topics[-1])], pages=2)


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"ts": list(ids), "weight": [1] * len(ids), "id": list(ids)})


def sink_of(broker: Broker, topic: str, resume=None, **options):
    results = Results("q", schema("id BIGINT"), resume=resume)
    return kafka.sink(results, topic, brokers=broker.address, **options)


@pytest.fixture
def hasty(monkeypatch) -> None:
    monkeypatch.setattr(kafka_sink, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(kafka_sink, "ABORT_SECONDS", 0.5)


@pytest.mark.usefixtures("hasty")
def test_brokers_that_do_not_answer_are_the_trouble_of_one_query(tmp_path: Path) -> None:
    def said(engine: Engine) -> str:
        with pytest.raises(MillpondError) as raised:
            engine.run_until_idle()
        return str(raised.value)

    into = "INTO kafka('t', brokers = '127.0.0.1:1')"
    with Engine(store=tmp_path / "store") as engine:
        engine.execute("CREATE STREAM S (n INT, ts BIGINT) TIMESTAMP BY ts")
        engine.execute("CREATE QUERY other AS SELECT n FROM S")
        engine.execute(f"CREATE QUERY q AS SELECT n FROM S {into}")
        engine.push("S", [(1, 1), (2, 2)])
        assert "query q: topic t at 127.0.0.1:1: no answer within 1 seconds" in said(engine)
    with Engine(store=tmp_path / "store") as engine:
        engine.push("S", [(3, 3)])
        engine.execute("ALTER QUERY q ACTIVATE")
        assert "then ALTER QUERY q ACTIVATE" in said(engine)
        assert engine.results("other")["n"].to_pylist() == [1, 2]


def test_a_sink_goes_on_when_the_broker_is_back(broker: Broker, monkeypatch) -> None:
    """Until the broker has its transactions again a page is refused, and written again."""
    topic = broker.topic()
    sink = sink_of(broker, topic)
    sink.write_numbered(rows_of(0), 0)
    wait_until(lambda: values(broker, topic))
    where = TopicPartition(topic, 0)  # a broker that dies before a transaction's marks are
    sink._connection._group.committed([where], timeout=PATIENCE_SECONDS)  # written forgets them
    broker.end()
    with monkeypatch.context() as hasty:
        hasty.setattr(kafka_sink, "ANSWER_SECONDS", 1.0)
        for _ in range(2):
            with pytest.raises(
                OutputError, match=rf"topic {topic} at {broker.address}: .*ACTIVATE"
            ):
                sink.write_numbered(rows_of(1), 1)
    broker.start()

    def is_written(number: int) -> bool:
        with suppress(OutputError):
            sink.write_numbered(rows_of(number), number)
            return True
        return False

    for number in (1, 2):
        wait_until(lambda number=number: is_written(number))
    sink.close()
    assert [each["row"]["id"] for each in values(broker, topic)] == [0, 1, 2]


def test_a_page_is_there_once_whose_commit_nobody_heard_of(broker: Broker, monkeypatch) -> None:
    topic, transact = broker.topic(), kafka_sink.Connection.transact

    def unheard(connection, messages, number):
        transact(connection, messages, number)
        raise TimeoutError

    sink = sink_of(broker, topic)
    monkeypatch.setattr(kafka_sink.Connection, "transact", unheard)
    with pytest.raises(TimeoutError):
        sink.write_numbered(rows_of(0), 0)
    monkeypatch.undo()
    sink.write_numbered(rows_of(0), 0)
    sink.write_numbered(rows_of(1), 1)
    assert [each["row"]["id"] for each in values(broker, topic)] == [0, 1]


def test_pages_of_an_earlier_query_of_the_same_name_do_not_count(broker: Broker) -> None:
    topic = broker.topic()
    earlier = sink_of(broker, topic)
    earlier.write_numbered(rows_of(0), 0)
    earlier.write_numbered(rows_of(1), 1)
    killed = sink_of(broker, topic)  # before it wrote anything
    sink_of(broker, topic, killed.mark()).write_numbered(rows_of(2), 0)
    assert [each["row"]["id"] for each in values(broker, topic)] == [0, 1, 2]


def test_nothing_of_a_page_that_cannot_be_written_is_there(broker: Broker) -> None:
    topic = broker.topic(**{"max.message.bytes": "3000000"})
    with Engine() as engine:
        engine.execute("CREATE STREAM S (s STRING, ts BIGINT) TIMESTAMP BY ts")
        into = f"INTO kafka('{topic}', brokers = '{broker.address}'"
        engine.execute(f"CREATE QUERY q AS SELECT s FROM S {into})")
        engine.push("S", [("short", 1), ("x" * 2_000_000, 1)])
        with pytest.raises(
            MillpondError, match=r"too large; max_bytes of the sink and max\.message"
        ):
            engine.finish()
    assert broker.received(topic) == []
    with Engine() as engine:
        engine.execute("CREATE STREAM S (s STRING, ts BIGINT) TIMESTAMP BY ts")
        engine.execute(f"CREATE QUERY q AS SELECT s FROM S {into}, max_bytes = 2500000)")
        engine.push("S", [("short", 1), ("x" * 2_000_000, 1)])
        engine.finish()
    assert sorted(len(each["row"]["s"]) for each in values(broker, topic)) == [5, 2_000_000]


def test_long_dead_letters_are_cut_and_say_so(broker: Broker) -> None:
    read_, dead = broker.topic(), broker.topic()
    whole = [b"\xff" * 900_000, b"\x01" * 900_000, b"\xf0\x9f\x8c\x8a" * 240_000, b"x"]
    broker.send(read_, whole)
    at = f"brokers = '{broker.address}'"
    with Engine() as engine:
        engine.execute(
            f"CREATE STREAM S (id BIGINT) FROM kafka('{read_}', {at}, until = 'now') "
            f"ON BAD ROW INTO kafka('{dead}', {at}, key = 'raw')"
        )
        engine.execute("CREATE QUERY q AS SELECT id FROM S")
        engine.finish()
        assert engine.bad_row_count("S") == 4
    found = [each["row"] for each in values(broker, dead)]
    assert base64.b64decode(found[0]["raw_base64"]) == whole[0][:46_875]
    assert found[0]["reason"].endswith("(cut: the first 46875 of its 900000 bytes are here)")
    assert found[1]["raw"] == "\x01" * 62_500
    assert found[2]["raw"] == "\N{WATER WAVE}" * 62_500
    assert found[2]["reason"].endswith("(cut: the first 250000 of its 960000 bytes are here)")
    assert (found[3]["raw"], "cut" in found[3]["reason"]) == ("x", False)


@pytest.mark.usefixtures("hasty")
def test_a_fault_of_dead_letters_names_the_stream() -> None:
    results = Results("S#bad_rows", BAD_ROW)
    sink = kafka.sink(results, "t", brokers="127.0.0.1:1")
    with pytest.raises(OutputError, match=r"^bad rows of stream S: topic t at .* then run again$"):
        sink.write_numbered(pa.table({}), 0)


def test_wrong_sinks_are_refused(broker: Broker) -> None:
    for options, complaint in (
        ({"upsert": True, "key": "id"}, "upsert = true is not there: .* sum the weights"),
        ({"key": "x"}, "no column x for the key; columns: ts, weight, id"),
        ({"format": "raw"}, "format is 'json' or 'avro', not 'raw'"),
        ({"schema": "{}"}, "schema and registry_id are for format = 'avro'"),
        ({"max_bytes": 1}, "max_bytes is a number from 20000 on, not 1"),
        ({"max_bytes": "many"}, "max_bytes is a number from 20000 on, not 'many'"),
    ):
        with pytest.raises(MillpondError, match=complaint):
            sink_of(broker, "t", **options)
    with pytest.raises(InputError, match="the topic is a text that is not empty, not ''"):
        sink_of(broker, "")


def test_another_run_of_the_same_query_shuts_the_first_out(broker: Broker) -> None:
    topic = broker.topic()
    first = sink_of(broker, topic)
    first.write_numbered(rows_of(0), 0)
    second = sink_of(broker, topic, first.mark())
    second.write_numbered(rows_of(0), 0)
    second.write_numbered(rows_of(1), 1)
    with pytest.raises(OutputError, match=f"fenced.*writes as id = 'millpond.q.{topic}': end one"):
        first.write_numbered(rows_of(1), 1)
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


def test_kills_lose_nothing_and_double_nothing(broker: Broker, tmp_path: Path) -> None:
    kills_between_topics(broker, tmp_path, seed=1, kills=8)


def test_kills_of_a_join_with_postgres(broker: Broker, tmp_path: Path) -> None:
    """Both read and written, while both change: what a ledger says is there, once, in each."""
    server = PostgresServer()
    try:
        kills_of_a_join(broker, server, tmp_path, seed=1, kills=2)
    finally:
        server.close()


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
