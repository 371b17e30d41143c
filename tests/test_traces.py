"""Traces: an arrival is followed through steps to deliveries, exactly, if it is chosen."""

from __future__ import annotations

import importlib
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from typer.testing import CliRunner

from millpond import Engine
from millpond.cli.app import app
from millpond.errors import InputError, MillpondError
from millpond.settings import Settings
from millpond.storage.origins import MOST_FOLLOWED, MOST_MOMENTS, Followed, mixed
from millpond.tracing import telling
from tests.collector import collecting
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import running

SCRIPT = """
    CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
    CREATE QUERY counts AS SELECT a, COUNT(*) AS n FROM S [RANGE 10] GROUP BY a;
"""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What a process that has set up OpenTelemetry is told."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def tree(exporter: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    """The spans of each trace, by the name of its arrival."""
    spans = exporter.get_finished_spans()
    traces: dict[int, list[ReadableSpan]] = {}
    for span in spans:
        traces.setdefault(span.context.trace_id, []).append(span)
    return {f"{n} {each[0].name}": each for n, each in enumerate(traces.values())}


def parents(spans: list[ReadableSpan]) -> list[tuple[str, str | None]]:
    names = {span.context.span_id: span.name for span in spans}
    return [(s.name, names[s.parent.span_id] if s.parent else None) for s in spans]


def test_an_arrival_is_followed_through_steps_to_the_sink(
    told: InMemorySpanExporter, tmp_path: Path
) -> None:
    script = SCRIPT + f"CREATE QUERY big AS SELECT a FROM S WHERE a > 1 INTO csv('{tmp_path}/b');"
    with Engine({"traces": "process"}) as engine:
        engine.execute(script)
        seen: list[Any] = []
        engine.subscribe("counts", seen.append)
        engine.push("S", [(1, 1), (2, 5)])
        engine.advance("S", 2)
        engine.run_until_idle()
    ((name, spans),) = tree(told).items()
    assert name == "0 arrive s"
    assert spans[0].attributes["millpond.rows"] == 2
    by_name = {span.name: span for span in spans}
    assert len(by_name) == len(spans)
    delivered = {"deliver counts", "deliver big"}
    steps = by_name.keys() - delivered - {"arrive s"}
    assert delivered < by_name.keys()
    assert all(each.startswith("step op") for each in steps)
    assert len(steps) >= 3
    behind = dict(parents(spans))
    assert behind["arrive s"] is None
    assert {behind[each] for each in delivered} <= steps
    for span in spans:  # whoever follows another begins when that one is over, and it takes time
        assert span.start_time <= span.end_time
        if span.parent is not None:
            assert span.start_time >= by_name[behind[span.name]].start_time
    assert by_name["deliver big"].attributes["millpond.sink"] == "csv"
    assert by_name["deliver big"].attributes["millpond.rows"] == 1
    assert by_name["deliver counts"].attributes["millpond.subscribers"] == 1
    counting = next(s for s in spans if "counts" in s.attributes.get("millpond.queries", ()))
    assert counting.attributes["millpond.place"] == "driver"
    assert counting.attributes["millpond.waited_seconds"] >= 0


def test_each_arrival_is_a_trace_and_a_step_is_in_those_of_all_it_reads(
    told: InMemorySpanExporter,
) -> None:
    with Engine({"traces": "process"}) as engine:
        engine.execute(SCRIPT + "CREATE STREAM Other (t BIGINT, b INT) TIMESTAMP BY t;")
        engine.push("Other", [(1, 1)])  # nobody reads it
        for number in range(1, 41):
            engine.push("S", [(number, 7)])
        engine.advance("S", 40)
        engine.run_until_idle()
        assert engine.result_count("counts") > 0
    traces = list(tree(told).values())
    assert len(traces) == 41
    assert [span.name for span in traces[0]] == ["arrive other"]
    whole = [spans for spans in traces[1:] if spans[-1].name == "deliver counts"]
    assert len(whole) == MOST_FOLLOWED
    assert whole == traces[1 : 1 + MOST_FOLLOWED]


def test_what_windows_give_up_later_belongs_to_what_came_later(told: InMemorySpanExporter) -> None:
    with Engine({"traces": "process"}) as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(1, 1)])
        engine.advance("S", 1)
        engine.run_until_idle()
        first = len(told.get_finished_spans())
        engine.push("S", [(50, 2)])
        engine.advance("S", 50)
        engine.run_until_idle()
    traces = list(tree(told).values())
    assert len(traces) == 2
    assert len(traces[0]) == first
    assert traces[1][-1].name == "deliver counts"


def test_moments_that_are_followed_stay_apart() -> None:
    trace = object()
    many = [(((float(n), 1.0),), 1.0) for n in range(100)]
    many[37] = (((Followed(37.0, trace), 1.0),), 1.0)
    found = mixed(many)
    assert len(found) <= MOST_MOMENTS + 1
    assert [moment.trace for moment, _ in found if isinstance(moment, Followed)] == [trace]
    assert sum(rows for _, rows in found) == pytest.approx(100)
    assert list(found) == sorted(found)


def test_a_step_that_fails_says_so_in_its_trace(told: InMemorySpanExporter) -> None:
    with Engine({"traces": "process"}) as engine:
        engine.execute(SCRIPT + "CREATE QUERY bad AS SELECT 9223372036854775807 + a AS x FROM S;")
        engine.push("S", [(1, 1)])
        engine.advance("S", 1)
        with pytest.raises(MillpondError):
            engine.run_until_idle()
    (spans,) = tree(told).values()
    failed = [span for span in spans if not span.status.is_ok and span.status.description]
    assert [span.status.description for span in failed] == ["failed"]
    assert failed[0].attributes["millpond.queries"] == ("bad",)
    assert {span.name for span in spans} >= {"deliver counts"}


def test_a_push_within_a_span_belongs_to_it(told: InMemorySpanExporter) -> None:
    with Engine({"traces": "process"}) as engine:
        engine.execute(SCRIPT)
        tracer = trace.get_tracer_provider().get_tracer("application")
        with tracer.start_as_current_span("order") as order:
            engine.push("S", [(1, 1)])
        engine.advance("S", 1)
        engine.run_until_idle()
    spans = {span.name: span for span in told.get_finished_spans()}
    assert spans["arrive s"].parent.span_id == order.get_span_context().span_id
    assert {span.context.trace_id for span in spans.values()} == {order.get_span_context().trace_id}


def test_only_a_share_of_the_arrivals_is_followed(
    told: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = TracerProvider(sampler=TraceIdRatioBased(0.2), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(told))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    with Engine({"traces": "process"}) as engine:
        engine.execute(SCRIPT)
        for number in range(1, 301):
            engine.push("S", [(number, 7)])
    assert 20 <= len(told.get_finished_spans()) <= 110  # 60 are expected


def test_traces_are_switched_on_and_off_while_it_runs(told: InMemorySpanExporter) -> None:
    with Engine() as engine:
        engine.execute(SCRIPT)
        for number, statement in enumerate(["", "SET traces = 'process'", "SET traces = off"]):
            engine.execute(statement)
            engine.push("S", [(number, 1)])
            engine.advance("S", number)
            engine.run_until_idle()
    assert len(tree(told)) == 1


# -- by OTLP ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_collector_gets_the_trace_of_a_request_to_a_server() -> None:
    with collecting() as collector:
        settings = Settings(spark_master="local[2]", traces=collector.url, trace_share=1.0)
        with running(SCRIPT, settings) as server:
            asked, given = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
            answer = server.http.post(
                "/api/streams/S/tuples",
                json=[{"t": 1, "a": 1}, {"t": 2, "a": 1}],
                headers={"traceparent": f"00-{asked}-{given}-01"},
            )
            assert answer.json()["rows"] == 2
            server.http.post("/api/streams/S/advance", json={"time": 2})
            server.wait(lambda: server.service.engine.result_count("counts"))
            refused = server.http.post(
                "/api/execute", json={"text": "SET traces = 'http://example.org'"}
            )
            assert refused.status_code == 400
            assert "for who starts the server" in refused.json()["error"]
            where = "/api/entities/engine/engine/traces"
            assert server.http.put(where, json={"value": "off"}).status_code >= 400
    assert collector.paths == {"/v1/traces"}
    assert collector.resource()["service.name"] == "millpond"
    spans = {span.name: span for span in collector.spans}
    assert {span.trace_id.hex() for span in spans.values()} == {asked}
    assert spans["arrive s"].parent_span_id.hex() == given
    assert "deliver counts" in spans


def test_a_collector_that_is_not_there_costs_the_traces_and_nothing_else() -> None:
    with Engine({"traces": "http://127.0.0.1:9", "trace_share": "1"}) as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(1, 1)])
        engine.advance("S", 1)
        engine.run_until_idle()
        assert engine.results("counts").num_rows == 1


def test_a_collector_that_does_not_answer_holds_nobody_up_and_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        telling, "EXPORT_SECONDS", PATIENCE_SECONDS
    )  # so long it might be waited for
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        engine = Engine({"traces": address, "trace_share": "1"})
        engine.execute(SCRIPT)
        engine.push("S", [(1, 1)])
        began = time.monotonic()
        engine.execute("SET traces = 'off'")
        engine.execute(f"SET traces = '{address}'")
        engine.push("S", [(2, 1)])
        engine.close(seconds=0.5)
        assert time.monotonic() - began < PATIENCE_SECONDS
        drawn = random.getstate()  # how long it is until they try again is drawn
    wait_until(lambda: not [each for each in set(threading.enumerate()) - before if _tells(each)])
    assert random.getstate() == drawn


def _tells(thread: threading.Thread) -> bool:
    return "Otel" in thread.name or "shutdown" in thread.name


# -- without -----------------------------------------------------------------------------------


def test_without_the_package_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = importlib.import_module

    def missing(name: str, *more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return there(name, *more)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'millpond\[traces\]'"):
        Engine({"traces": "process"})
    script = tmp_path / "script.cql"
    script.write_text(SCRIPT)
    answer = CliRunner().invoke(
        app, ["run", str(script), "--set", "traces=http://localhost:4318"], catch_exceptions=False
    )
    assert answer.exit_code == 2
    assert "pip install 'millpond[traces]'" in answer.stderr
    with Engine() as engine, pytest.raises(MillpondError, match="pip install"):
        engine.execute("SET traces = 'http://localhost:4318'")


@pytest.mark.slow
def test_who_wants_no_traces_loads_nothing_for_them() -> None:
    program = (
        "import sys\nfrom millpond import Engine\nwith Engine() as engine:\n"
        f"    engine.execute({SCRIPT!r})\n    engine.push('S', [(1, 1)])\n    engine.finish()\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize("wrong", ["localhost:4318", "yes", "ftp://x", "http://"])
def test_what_is_no_address_is_refused(wrong: str) -> None:
    with pytest.raises(MillpondError, match="http://localhost:4318"):
        Settings().with_option("traces", wrong)
    with pytest.raises(MillpondError, match="from 0 to 1"):
        Settings().with_option("trace_share", "1.5")
