"""Readers that are slow, that hold back, that come back after a restart."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from millpond import Engine
from millpond.server.feeds import Event, Feeds, Offset
from millpond.server.formats import Heading, ServerSentEvents
from millpond.server.limits import Limits
from millpond.server.streaming import ResultStream, Wish
from millpond.settings import Settings
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import SCRIPT, Running, free_port, is_ready, plain_client, running


def ids_and_values(text: str) -> list[tuple[str, list[int]]]:
    found, mark = [], ""
    for line in text.splitlines():
        if line.startswith("id: "):
            mark = line[4:]
        elif line.startswith("data: ["):
            found.append((mark, [each["row"]["a"] for each in json.loads(line[6:])]))
    return found


def test_who_comes_too_late_is_told_how_much_is_gone() -> None:
    with running(limits=Limits(kept_rows=100)) as server:
        engine = server.service.engine
        for start in range(0, 1_000, 50):
            server.push(*((start + i, 2 + i) for i in range(50)))
            server.wait(lambda at=start: engine.result_count("big") >= at + 49)
        server.service.feeds.tidy()
        lines = server.lines("/api/queries/big/results?from=id:0&follow=false")
        first = json.loads(lines[0])
        assert first["gap"] + len(lines) - 1 == engine.result_count("big")
        assert 50 <= len(lines) - 1 <= 200
        counts = server.http.get("/api/queries/counts/present").json()["rows"]
        assert sum(row["row"]["n"] for row in counts) == 999  # folded, not lost


def test_readers_of_one_query_share_the_work_of_writing(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, results, gone = [], ServerSentEvents.results, threading.Event()

    def counted(form: ServerSentEvents, heading: Heading, table: pa.Table, mark: str) -> bytes:
        written.append(mark)
        assert gone.wait(PATIENCE_SECONDS)
        return results(form, heading, table, mark)

    monkeypatch.setattr(ServerSentEvents, "results", counted)
    columns = {"ts": range(1_000), "weight": [1] * 1_000, "a": range(1_000)}
    event = Event(Offset(1_000), pa.table({name: list(each) for name, each in columns.items()}))
    log, feeds = server.service.log("big"), server.service.feeds

    async def all_of_them() -> list[bytes]:
        streams = [ResultStream(feeds, log, Wish("sse")) for _ in range(5)]
        tasks = [asyncio.create_task(stream._written(event)) for stream in streams]
        while not written:
            await asyncio.sleep(0.001)
        tasks[0].cancel()  # who has begun it goes
        gone.set()
        return await asyncio.gather(*tasks[1:])

    assert len(set(asyncio.run(all_of_them()))) == 1
    assert written == ["1000"]


@pytest.mark.slow
@pytest.mark.parametrize("query", ["big", "g1"])
def test_who_is_behind_misses_nothing_that_is_not_told_while_results_are_let_go(query: str) -> None:
    group = "".join(f"CREATE QUERY g{n} AS SELECT a FROM S WHERE a > {n};" for n in range(3))
    with Engine() as engine:
        engine.execute(SCRIPT + group)
        feeds = Feeds(engine, Limits(kept_rows=100))
        log, offset, missed_rows, values = engine.deliveries.of(query), Offset(0), 0, []
        is_over = threading.Event()

        def let_go() -> None:
            while not is_over.wait(0.0005):
                feeds.tidy()

        thread = threading.Thread(target=let_go)
        thread.start()
        for first in range(0, 3_000, 50):
            engine.push("S", [(first + i, 5) for i in range(50)])
            engine.run_until_idle()
            if first % 200:
                continue
            missed, events = feeds.after(log, offset, None)
            missed_rows += missed
            at = offset.rows + missed
            for event in events[:1]:
                values += event.table["a"].to_pylist()[max(0, at - event.before) :]
                at = event.offset.rows
            offset = Offset(at)
        is_over.set()
        thread.join()
        assert 0 < missed_rows < 3_000
        assert missed_rows + len(values) == offset.rows


def test_queries_that_share_a_plan_are_each_folded() -> None:
    shape = (
        "CREATE QUERY c%d AS SELECT a, COUNT(*) AS n FROM S [RANGE 1000000] WHERE a > %d GROUP BY a"
    )
    script = SCRIPT + ";".join(shape % (n, n) for n in range(3))
    with running(script, limits=Limits(kept_rows=60)) as server:
        engine = server.service.engine
        for first in range(0, 600, 50):
            server.push(*((first + i, i % 5) for i in range(50)))
            seen = first + 48
            server.wait(lambda: engine.deliveries.of("c0").complete_until >= seen)  # noqa: B023
        server.push((10_000, 0))
        server.wait(lambda: engine.deliveries.of("c0").complete_until >= 9_999)
        server.service.feeds.tidy()
        for n in range(3):
            rows = server.http.get(f"/api/queries/c{n}/present").json()["rows"]
            assert {row["row"]["a"]: row["row"]["n"] for row in rows} == dict.fromkeys(
                range(n + 1, 5), 120
            )
            lines = server.lines(f"/api/queries/c{n}/results?from=id:0&follow=false")
            assert "gap" in json.loads(lines[0])


@pytest.mark.parametrize("kept", ["5 rows", "none"])
def test_a_content_is_told_though_few_results_are_kept(kept: str) -> None:
    with running(
        settings=Settings(spark_master="local[2]").with_option("keep_results", kept)
    ) as server:
        for first in range(0, 60, 20):
            server.push(*((first + i, i) for i in range(20)))
            seen = first + 18
            engine = server.service.engine
            server.wait(lambda: engine.deliveries.of("counts").complete_until >= seen)  # noqa: B023
        rows = server.http.get("/api/queries/counts/present").json()["rows"]
        assert sum(row["row"]["n"] for row in rows) == 59


def test_an_event_id_goes_on_where_it_was(server: Running) -> None:
    server.push((1, 5), (2, 6), (3, 0))
    path = "/api/queries/big/results?format=sse&from=oldest&follow=false"
    first = server.wait(lambda: ids_and_values(server.http.get(path).text))
    server.push((4, 7), (5, 0))
    headers = {"last-event-id": first[-1][0]}
    rest = server.wait(lambda: ids_and_values(server.http.get(path, headers=headers).text))
    seen = [value for _, values in first + rest for value in values]
    assert seen == [5, 6, 7]
    bad = server.http.get(path, headers={"last-event-id": "x"})
    assert bad.status_code == 400


def test_a_reader_may_have_the_engine_wait_for_it(server: Running) -> None:
    async def read() -> list[int]:
        values: list[int] = []
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_SECONDS, verify=False) as http,
            http.stream("GET", "/api/queries/big/results?hold=true") as response,
        ):
            lines = response.aiter_lines()
            for start in range(0, 400, 20):
                await asyncio.to_thread(
                    server.push, *((start + i, 2 + start + i) for i in range(20))
                )
            async for line in lines:
                values.append(json.loads(line)["row"]["a"])
                if len(values) == 399:
                    break
        return values

    assert asyncio.run(read()) == [2 + i for i in range(399)]


def test_too_many_readers_are_refused() -> None:
    with running(limits=Limits(readers=1)) as server:
        with server.http.stream("GET", "/api/queries/big/results") as response:
            server.wait(lambda: server.service.feeds.readers == 1)
            assert response.status_code == 200
            with plain_client(server.url) as other:
                assert other.get("/api/queries/big/results").status_code == 429
        server.wait(lambda: server.service.feeds.readers == 0)


def test_offsets_are_written_and_read() -> None:
    assert Offset.read(str(Offset(17))) == Offset(17)


def start(store: Path, script: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "millpond", "serve", str(script), "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--store", str(store)], env=os.environ | {"PYTHONUTF8": "1"}
    )
    with plain_client(f"http://127.0.0.1:{port}") as http:
        wait_until(lambda: is_ready(http))
    return process


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_event_ids_and_keys_survive_a_restart(tmp_path: Path, ending: signal.Signals) -> None:
    script, port = tmp_path / "s.cql", free_port()
    script.write_text(SCRIPT)
    path = "/api/queries/big/results?format=sse&from=oldest&follow=false"
    tuples = "/api/streams/S/tuples"
    http = plain_client(f"http://127.0.0.1:{port}")
    process = start(tmp_path / "store", script, port)
    try:
        push = {"content": '{"t":1,"a":5}\n{"t":2,"a":6}\n{"t":3,"a":0}'}
        keyed = {"headers": {"idempotency-key": "first"}}
        http.post(tuples, **push, **keyed)
        wait_until(lambda: values_of(http.get(path)) == [5, 6])
        first = ids_and_values(http.get(path).text)
        process.send_signal(ending)
        process.wait(PATIENCE_SECONDS)
        process = start(tmp_path / "store", script, port)
        assert ids_and_values(http.get(path).text) == first
        assert http.post(tuples, **push, **keyed).json()["repeated"] is True
        http.post(tuples, content='{"t":4,"a":7}\n{"t":5,"a":0}')
        behind = {"last-event-id": first[-1][0]}
        assert wait_until(lambda: values_of(http.get(path, headers=behind))) == [7]
        if ending == signal.SIGTERM:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.wait()
        http.close()


def values_of(response: httpx.Response) -> list[int]:
    return [value for _, values in ids_and_values(response.text) for value in values]
