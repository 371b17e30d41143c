"""Topics of a real broker of MQTT as sources and sinks."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.catalog import Connector, StreamEntry
from millpond.connectors import mqtt, mqtt_sink, open_source
from millpond.connectors.mqtt_ledger import Ledger
from millpond.connectors.mqtt_messages import Message, Position
from millpond.connectors.sinks import Results
from millpond.connectors.sources import Declaration
from millpond.errors import MillpondError, OutputError
from millpond.settings import Settings
from millpond.testing import RESULTS, check_source
from tests.connectors.declarations import schema
from tests.connectors.reading import Reading
from tests.connectors.test_bad_rows import COLUMNS, MALFORMED, bad_json, mixed
from tests.debian import MissingProgramError
from tests.mosquitto import LONGEST_BYTES, Mosquitto
from tests.patience import PATIENCE_SECONDS, wait_until

paho = pytest.importorskip("paho.mqtt.client", reason="pip install 'millpond[mqtt]' brings it")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[Mosquitto]:
    try:
        started = Mosquitto()
    except MissingProgramError as error:
        pytest.skip(str(error))
    yield started
    started.close()


@pytest.fixture
def topic() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


class Client:
    """Somebody else at the broker."""

    def __init__(self, broker: Mosquitto, heard: str = "") -> None:
        self.got, self.ready = [], []
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        self._client.on_message = lambda _, __, message: self.got.append(message)
        self._client.on_subscribe = lambda *_: self.ready.append(True)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        if heard:
            self._client.subscribe(heard, 1)
            wait_until(lambda: self.ready)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def send(self, topic: str, payloads, qos: int = 1, retain: bool = False) -> None:
        sent = [self._client.publish(topic, each, qos, retain) for each in payloads]
        for each in sent:
            each.wait_for_publish(PATIENCE_SECONDS)


def opened(broker: Mosquitto, topic: str, columns="id BIGINT", skips=False, time=None, **options):
    options["broker"] = options.pop("url", broker.url)
    call = Connector("mqtt", (topic,), tuple(options.items()))
    entry = StreamEntry("S", schema(columns), time, 0, call, skips_bad_rows=skips)
    return open_source(entry, Settings(page_rows=10))


def ids(first: int, last: int) -> list[bytes]:
    return [b'{"id": %d}' % n for n in range(first, last)]


def test_messages_come_with_their_topics(broker, topic) -> None:
    columns = "id BIGINT, mqtt_topic STRING, mqtt_retained BOOLEAN"
    with Client(broker) as other:
        other.send(f"{topic}/a", ids(1, 2), retain=True)
        reading = Reading(opened(broker, f"{topic}/#", columns)).until_there(1)
        for qos in (0, 1, 2):
            other.send(f"{topic}/b", [b'{"id": %d}' % qos], qos)
        reading.until_there(4).end()
    assert reading.rows[0] == (1, f"{topic}/a", True)
    assert reading.rows[1:] == [(n, f"{topic}/b", False) for n in range(3)]


def test_it_goes_on_behind_every_page(broker, topic) -> None:
    with Client(broker) as other:
        for n in range(25):
            other.send(f"{topic}/{n}", ids(n, n + 1), retain=True)
    declared = Declaration("S", schema("id BIGINT"), settings=Settings(page_rows=10))
    rows = check_source(lambda _: opened(broker, f"{topic}/+"), declared, 25)
    assert sorted(rows) == [(n,) for n in range(25)]


def test_300_malformed_messages_are_all_put_aside(broker, topic) -> None:
    rng = random.Random(5)
    lines, good, wrong = mixed(rng, bad_json, '{{"id": {}, "v": 1, "at": "2026-01-01"}}'.format)
    reading = Reading(opened(broker, topic, COLUMNS, True, 0), commits=True)
    reading.until(lambda each: each.taken.position)
    with Client(broker) as other:
        other.send(topic, [line.encode() for line in lines])
    reading.until_there(len(good), MALFORMED).end()
    assert [row[0] for row in reading.rows] == good
    assert [each.raw.decode() for each in reading.bad] == wrong
    assert reading.bad[0].offset.startswith(f"topic {topic}, packet ")


def test_only_what_is_committed_is_acknowledged(broker, topic) -> None:
    reading = Reading(opened(broker, topic, in_flight=7))
    reading.until(lambda each: each.taken.position)
    with Client(broker) as other:
        other.send(topic, ids(0, 20))
    reading.until_there(7)
    first = reading.end()
    assert len(reading.rows) == 7  # the broker waits with more
    again = Reading(opened(broker, topic, in_flight=7), first, commits=True).until_there(13)
    assert sorted(reading.rows + again.rows) == [(n,) for n in range(20)]
    last = again.end()
    with Client(broker) as other:
        other.send(topic, ids(20, 21))
    Reading(opened(broker, topic, in_flight=7), last).until_there(1).end()


def test_a_broker_that_ends_and_comes_again_is_waited_for(broker, topic) -> None:
    reading = Reading(opened(broker, topic), commits=True)
    reading.until(lambda each: each.taken.position)
    with Client(broker) as other:
        other.send(topic, ids(0, 5))
    reading.until_there(5)
    broker.end()
    broker.start()
    with Client(broker) as other:
        other.send(topic, ids(5, 9))
    reading.until_there(9).end()
    assert reading.rows == [(n,) for n in range(9)]


def test_a_session_that_is_gone_is_an_error_or_a_gap(broker, topic) -> None:
    source = opened(broker, topic)
    taken = Reading(source, commits=True).until(lambda each: each.taken.position).end()
    source.forget().join(PATIENCE_SECONDS)
    for _ in range(2):
        said = Reading(opened(broker, topic), taken).until_error()
        assert "knows no session millpond-S-" in said
    assert "DROP it and declare it again, or say gaps = true" in said
    reading = Reading(opened(broker, topic, gaps=True), taken)
    with Client(broker) as other:
        wait_until(lambda: other.send(topic, ids(7, 8)) or reading.rows)
    reading.end()


def packet(number: int, payload: bytes = b"", is_again: bool = False) -> Message:
    return Message("t", payload, number, False, is_again)


def test_packets_are_known_until_the_broker_has_heard_of_them() -> None:
    one, two = packet(1), packet(2)
    ledger = Ledger()
    assert ledger.take(one)
    assert ledger.take(two)
    assert not ledger.take(packet(1, is_again=True))
    assert not ledger.acknowledge_again(one.known)  # it is in no commit
    assert ledger.commit([one.known]) == [one.known]
    assert ledger.ask()
    assert ledger.commit([one.known, two.known]) == [two.known]
    ledger.has_answered()
    assert ledger.taken == (two.known,)
    ledger.break_off()
    assert not ledger.ask()
    assert not ledger.take(packet(2, is_again=True))
    assert ledger.acknowledge_again(two.known)
    assert ledger.take(packet(2, b"other", is_again=True))
    assert ledger.taken == (packet(2, b"other").known,)
    after = Ledger([one.known, two.known])
    assert not after.take(packet(1, is_again=True))
    assert after.take(packet(3))  # no more come again
    assert after.taken == (packet(3).known,)
    assert after.take(packet(0))
    place = Position("s", (one.known,)).behind([packet(1, b"x"), packet(0), two])
    assert place.taken == (packet(1, b"x").known, two.known)
    assert Position.of(json.loads(json.dumps(place.as_json()))) == place


def test_wrong_declarations_are_refused(broker, monkeypatch) -> None:
    for options, complaint in (
        ({"url": "tcp://h:1"}, "S: tcp://h:1: a broker is 'mqtt://host:port' or 'mqtts://"),
        ({"url": "mqtt://u:p@h"}, "names and passwords do not stand in a URL"),
        ({"password": "x"}, "password = 'env:MILLPOND_SECRET_NAME'"),
        ({"format": "xml"}, "format is 'json' or 'avro' or 'raw', not 'xml'"),
        ({"in_flight": 0}, "in_flight is a number from 1 to 10000, not 0"),
        ({"gaps": "x"}, "gaps is true or false, not 'x'"),
    ):
        with pytest.raises(MillpondError, match=complaint):
            opened(broker, "t", **options)
    for topic, columns, complaint in (
        ("", "id BIGINT", "a topic is a text that is not empty, not ''"),
        ("a/#/b", "id BIGINT", "# and [+] stand for whole levels, and # for the last ones"),
        ("a/b+", "id BIGINT", "stand for whole levels"),
        ("$share/g/t", "id BIGINT", "a shared subscription"),
        ("t", "mqtt_topic INT", "mqtt_topic is STRING, not INT"),
    ):
        with pytest.raises(MillpondError, match=complaint):
            opened(broker, topic, columns)
    said = Reading(opened(broker, "t", url="mqtt://127.0.0.1:9")).until_error()
    assert "no broker answers there" in said
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    with pytest.raises(MillpondError, match=r"pip install 'millpond\[mqtt\]'"):
        opened(broker, "t")


# -- the sink ------------------------------------------------------------------------------


def test_results_are_published_and_known_again(broker, topic) -> None:
    with Client(broker, topic) as other, Engine() as engine:
        engine.execute(
            "CREATE STREAM S (id BIGINT); CREATE QUERY q AS SELECT id FROM S "
            f"INTO mqtt('{topic}', broker = '{broker.url}')"
        )
        engine.push("S", [(n,) for n in range(3)])
        engine.finish()
        wait_until(lambda: len(other.got) == 3)
    assert [json.loads(each.payload)["row"]["id"] for each in other.got] == [0, 1, 2]
    keys = [dict(each.properties.UserProperty)["idempotency-key"] for each in other.got]
    assert len(set(keys)) == 3


def test_a_page_that_is_written_again_has_the_same_keys(broker, topic) -> None:
    types = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), ("id", pa.int64())])
    page = pa.table([[1], [1], [7]], schema=types)
    results = Results("q", RESULTS)
    with Client(broker, topic) as other:
        sink = mqtt.sink(results, topic, broker=broker.url)
        mark = sink.mark()
        sink.write_numbered(page, 0)
        sink.write_numbered(page, 0)
        sink.close()
        again = mqtt.sink(Results("q", RESULTS, resume=mark), topic, broker=broker.url)
        again.write_numbered(page, 0)
        again.close()
        wait_until(lambda: len(other.got) == 2)
    assert len({(str(each.properties.UserProperty), each.payload) for each in other.got}) == 1


def test_what_cannot_be_published_is_said(broker, monkeypatch) -> None:
    monkeypatch.setattr(mqtt_sink, "ANSWER_SECONDS", 0.5)
    types = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), ("s", pa.string())])
    page = pa.table([[1], [1], ["x" * LONGEST_BYTES]], schema=types)
    for url, said in (
        ("mqtt://127.0.0.1:9", "no broker answers there .* ALTER QUERY q ACTIVATE"),
        (broker.url, "no answer within 0.5 seconds; see that a broker answers there"),
    ):
        with pytest.raises(OutputError, match=said):
            mqtt.sink(Results("q", RESULTS), "t", broker=url).write_numbered(page, 0)
    with pytest.raises(MillpondError, match="results go to one topic, not to 'a/#'"):
        mqtt.sink(Results("q", RESULTS), "a/#")


# -- kills ---------------------------------------------------------------------------------


def test_kills_lose_no_message_and_double_none(broker, tmp_path) -> None:
    kills_behind_a_topic(broker, tmp_path, seed=1, kills=4)


def kills_behind_a_topic(broker: Mosquitto, folder: Path, seed: int, kills: int) -> None:
    """Kills an engine that reads a topic while others write it, and compares the ids."""
    topic, count = f"t{uuid.uuid4().hex[:12]}", 40 * kills
    command = [sys.executable, "-m", "tests.connectors.mqtt_lives", broker.url, topic]
    process = subprocess.Popen(
        [*command, str(folder), str(seed), str(kills), str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = folder / "store" / "commits.log"
    wait_until(lambda: log.exists() and b'"session"' in log.read_bytes())
    with Client(broker) as other:
        for n in range(0, count, 20):
            other.send(topic, ids(n, n + 20))
    said, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, said) == (0, f"{kills}\n"), errors[-4_000:]
    lines = (folder / "out.csv").read_text().splitlines()[1:]
    found = Counter(int(line.rpartition(",")[2]) for line in lines)
    wanted = Counter(range(count))
    assert (wanted - found, found - wanted) == (Counter(), Counter())
