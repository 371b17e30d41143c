"""Lines from sockets of TCP and Unix and from WebSockets; the other side is of this process."""

from __future__ import annotations

import json
import random
import socket
import struct
import sys
import threading
from contextlib import contextmanager

import pytest

from millpond import Engine
from millpond.catalog import Connector, StreamEntry
from millpond.connectors import lines, open_source
from millpond.connectors.sources import Taken
from millpond.errors import MillpondError
from millpond.settings import Settings
from tests.connectors.declarations import schema
from tests.connectors.reading import Reading
from tests.connectors.test_bad_rows import COLUMNS, MALFORMED, bad_csv, bad_json, mixed
from tests.crashing import die
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import free_port


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(lines, "AGAIN_SECONDS", 0.001)
    monkeypatch.setattr("millpond.connectors.sockets.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("millpond.connectors.websocket.LOOK_SECONDS", 0.01)


def opened(address: str, columns: str = "a INT", skips=False, time=None, page_rows=10, **options):
    name = "websocket" if address.startswith("ws") else "socket"
    call = Connector(name, (address,), tuple(options.items()))
    entry = StreamEntry("S", schema(columns), time, 0, call, skips_bad_rows=skips)
    return open_source(entry, Settings(page_rows=page_rows))


@contextmanager
def answering(*answers: bytes | None):
    """A server that says one answer to each who calls; None breaks the one before off."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for each in answers:
                connection, _ = server.accept()
                if each is not None:
                    connection.sendall(each)
                if each is None or not each.endswith(b"\n"):
                    broken = struct.pack("ii", 1, 0)  # a reset
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, broken)
                    is_read.wait(PATIENCE_SECONDS if each else 0)
                connection.close()

        is_read = threading.Event()
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}", is_read
        thread.join(PATIENCE_SECONDS)


def test_lines_of_whom_we_call_come_until_the_end() -> None:
    with answering(b'{"a": 1}\n{"a": 2}\n') as (address, _):
        assert Reading(opened(address)).until_there(2).rows == [(1,), (2,)]
    with answering(b"b;a\nx;\n\xc3\xa9;7\n") as (address, _):
        source = opened(address, "a INT, b STRING", format="csv", delimiter=";")
        reading = Reading(source)
        reading.thread.join(PATIENCE_SECONDS)
        assert (reading.rows, source.ends) == ([(None, "x"), (7, "é")], True)


def test_who_breaks_off_is_an_error_or_a_gap(caplog) -> None:
    with answering(b'{"a": 1}\n{"a"') as (address, is_read):
        reading = Reading(opened(address)).until_there(1)
        is_read.set()
        assert "it has broken off" in reading.until_error()
    assert "nobody answers there" in Reading(opened(address)).until_error()
    with answering(b'{"a": 1}\n{"a"', b'{"a": 2}\n', b'{"a": 3}\n') as (address, is_read):
        reading = Reading(opened(address, gaps=True)).until_there(1)
        is_read.set()
        reading.until(lambda each: (3,) in each.rows).end()
    assert "broke off in a line, which is left out" in caplog.text


def test_going_on_is_refused_without_gaps(tmp_path) -> None:
    address = f"unix:{tmp_path / 's'}"
    reading = Reading(opened(address, listen=True)).until(lambda each: each.taken.position)
    taken = reading.end()
    assert (
        "rows may be lost; DROP it and declare it"
        in Reading(opened(address, listen=True), taken).until_error()
    )


@pytest.mark.parametrize("is_file", [False, True])
def test_all_who_call_are_heard_in_whole_lines(tmp_path, is_file) -> None:
    path, port = tmp_path / "s", free_port()
    address = f"unix:{path}" if is_file else f"tcp://127.0.0.1:{port}"
    reading = Reading(opened(address, "a INT, b INT", listen=True, format="csv"))

    def called() -> socket.socket:
        if is_file:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(path))
            return connection
        return socket.create_connection(("127.0.0.1", port))

    def is_there() -> bool:
        try:
            called().close()
        except OSError:
            return False
        return True

    wait_until(is_there)
    some = [called() for _ in range(3)]
    for number, each in enumerate(some):
        each.sendall([b"a,b\n1,", b"b,a\n3", b"5,6\n7,8"][number])
    reading.until_there(1)
    for each, rest in zip(some, (b"2\n", b",4\n", b""), strict=True):
        each.sendall(rest)
        each.close()
    reading.until_there(4)
    assert sorted(reading.rows) == [(1, 2), (4, 3), (5, 6), (7, 8)]
    reading.end()
    assert not path.exists()


def test_a_stale_file_is_taken_over_and_one_in_use_is_not(tmp_path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    address = f"unix:{path}"
    reading = Reading(opened(address, listen=True, gaps=True), Taken(position={"has_begun": True}))

    def is_heard() -> bool:
        with socket.socket(socket.AF_UNIX) as sender:
            try:
                sender.connect(str(path))
            except OSError:
                return False
            sender.sendall(b'{"a": 5}')
        return True

    wait_until(is_heard)
    reading.until_there(1)
    assert "nobody can listen there" in Reading(opened(address, listen=True)).until_error()
    reading.end()
    path.write_text("a file of somebody's")
    assert "nobody can listen there" in Reading(opened(address, listen=True)).until_error()
    assert path.read_text() == "a file of somebody's"


@pytest.mark.parametrize(
    ("format_", "bad", "good"),
    [
        ("json", bad_json, '{{"id": {}, "v": 1, "at": "2026-01-01"}}'),
        ("csv", bad_csv, "{},1,2026-01-01"),
    ],
)
def test_300_malformed_lines_are_all_put_aside(format_, bad, good) -> None:
    rng = random.Random(5)
    sent, ids, wrong = mixed(rng, bad, good.format)
    with answering(("\n".join(sent) + "\n").encode()) as (address, _):
        reading = Reading(opened(address, COLUMNS, True, 0, format=format_))
        reading.until_there(len(ids), MALFORMED)
    assert [row[0] for row in reading.rows] == ids
    assert [each.raw.decode() for each in reading.bad] == wrong
    assert all(each.offset.startswith("tcp://127.0.0.1:") for each in reading.bad)


def test_a_header_that_fits_nothing_is_put_aside_and_others_are_heard() -> None:
    port = free_port()
    source = opened(
        f"tcp://127.0.0.1:{port}", "a INT, b INT", True, listen=True, format="csv", header=True
    )
    reading = Reading(source)

    def sent(text: bytes) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(text)
        except OSError:
            return False
        return True

    wait_until(lambda: sent(b"x,y\n1,2\n"))
    assert sent(b"a,b\n3,4\n")
    reading.until_there(1, 1).end()
    assert (reading.rows, reading.bad[0].raw) == ([(3, 4)], b"x,y\n1,2\n")


def test_after_a_kill_no_line_comes_twice(tmp_path) -> None:
    port, out = free_port(), tmp_path / "out.csv"
    script = (
        "CREATE STREAM S (a INT) "
        f"FROM socket('tcp://127.0.0.1:{port}', listen = true, gaps = true);"
        f"CREATE QUERY q AS SELECT a FROM S INTO csv('{out}')"
    )

    def called() -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            return None

    def written() -> list[int]:
        return [int(line.rpartition(",")[2]) for line in out.read_text().splitlines()[1:]]

    for life in range(3):
        engine = Engine(Settings(page_rows=7), store=tmp_path / "store")
        engine.execute(script)
        engine.start()
        with wait_until(called) as connection:
            connection.sendall(b"".join(b'{"a": %d}\n' % n for n in range(9 * life, 9 * life + 9)))
        wait_until(lambda life=life: 9 * life + 8 in written())
        engine.stop(drain=False)
        engine.inputs.close()  # as the end of the process does
        die(engine)
    assert written() == list(range(27))


@pytest.mark.parametrize(
    ("address", "options", "complaint"),
    [
        ("127.0.0.1:80", {}, "an address is 'tcp://host:port' or 'unix:/a/path', not '127.0"),
        ("tcp://host", {}, "an address is"),
        ("unix:", {}, "an address is"),
        ("tcp://h:1", {"listen": "x"}, "listen is true or false, not 'x'"),
        ("tcp://h:1", {"gaps": "x"}, "gaps is true or false, not 'x'"),
        ("tcp://h:1", {"format": "xml"}, "format is 'json' or 'csv', not 'xml'"),
        ("tcp://h:1", {"delimiter": ";"}, "header, delimiter and null are for format = 'csv'"),
        ("tcp://h:1", {"format": "csv", "delimiter": ";;"}, "one character"),
        ("ws://h:0", {}, r"this is no URL of a WebSocket \(ws://host/path\): 'ws://h:0'"),
        ("ws://h/", {"token": "x"}, "token = 'env:MILLPOND_SECRET_NAME'"),
    ],
)
def test_wrong_declarations_are_refused(address, options, complaint) -> None:
    pytest.importorskip("websockets", reason="pip install 'millpond[websocket]' brings it")
    with pytest.raises(MillpondError, match=complaint):
        opened(address, **options)


# -- WebSockets ----------------------------------------------------------------------------


@contextmanager
def speaking(speak):
    """A server of WebSockets that does the same with all who call."""
    server = pytest.importorskip("websockets.sync.server")
    with server.serve(speak, "127.0.0.1", 0) as serving:
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{serving.socket.getsockname()[1]}/feed"
        serving.shutdown()
    thread.join(PATIENCE_SECONDS)


def test_messages_of_a_websocket_come_until_it_is_closed(monkeypatch) -> None:
    monkeypatch.setenv("MILLPOND_SECRET_TOKEN", "hush")
    asked = []

    def speak(connection) -> None:
        request = connection.request
        asked.append((request.path, request.headers["Authorization"], connection.recv()))
        for message in ('{"a": 1}', b'{"a": 2}\n{"a": 3}\n', "", '{"a": "x"}'):
            connection.send(message)

    options = {"token": "env:MILLPOND_SECRET_TOKEN", "subscribe": '{"op": "subscribe"}'}
    with speaking(speak) as url:
        reading = Reading(opened(url, skips=True, **options)).until_there(3, 1)
        reading.thread.join(PATIENCE_SECONDS)
    assert (reading.error, reading.rows) == (None, [(1,), (2,), (3,)])
    assert asked == [("/feed", "Bearer hush", '{"op": "subscribe"}')]
    assert reading.bad[0].raw == b'{"a": "x"}'


def test_a_websocket_that_breaks_off_is_an_error_or_a_gap() -> None:
    count = [0]

    def speak(connection) -> None:
        count[0] += 1
        connection.send(json.dumps({"a": count[0]}))
        connection.close(1011, "tired")

    with speaking(speak) as url:
        assert "it has broken off" in Reading(opened(url)).until_error()
        assert "tired" in Reading(opened(url)).until_error()
        Reading(opened(url, gaps=True)).until_there(3).end()
    assert "nobody answers there" in Reading(opened(url)).until_error()


def test_without_the_package_the_error_names_the_command(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets.sync.client", None)
    with pytest.raises(MillpondError, match=r"pip install 'millpond\[websocket\]'"):
        opened("ws://h/")
