"""Secrets are looked up when a connector is opened, and shown nowhere."""

from __future__ import annotations

import inspect
import pickle
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond import Engine
from millpond.connectors import kafka_sink, kafka_source
from millpond.connectors.registry import BUILT_IN
from millpond.connectors.secrets import Secret, hiding, resolved, revealed
from millpond.errors import CqlError, InputError, MillpondError, Position
from millpond.server import plan_xml

NAME = "MILLPOND_SECRET_X"
VALUES = (
    "hush-hush-value",
    "/hush/hush/value.csv",
    "~hush/value",
    "1234567",
    "hu\\sh'v\n√",
    "x" * 500,
)


def test_a_secret_is_used_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden.csv").write_text("t,a\n1,7\n")
    monkeypatch.setenv("MILLPOND_SECRET_FILE", str(tmp_path / "hidden.csv"))
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM csv('env:MILLPOND_SECRET_FILE');"
            "CREATE QUERY q AS SELECT a FROM S"
        )
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == [7]
        shown = str(engine.show("all").to_pylist()) + engine.explain("q").text
        shown += plan_xml.written(engine) + str(engine.statistics())
        assert "hidden" not in shown
        assert "env:MILLPOND_SECRET_FILE" in shown


def test_other_variables_are_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("env:PATH", "env:MILLPOND_SECRET_NONE", "env:"):
        with pytest.raises(InputError):
            resolved(name)
    with Engine() as engine, pytest.raises(MillpondError, match="begins with"):
        engine.execute("CREATE STREAM S (a INT) FROM csv('env:HOME')")


def test_a_secret_prints_as_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "hush")
    secret = resolved(f"env:{NAME}")
    assert {str(secret), repr(secret), f"{secret}", f"{secret!r}", format(secret)} == {
        f"env:{NAME}"
    }
    assert b"hush" not in pickle.dumps(secret)
    assert revealed(pickle.loads(pickle.dumps(secret))) == "hush"


@pytest.mark.parametrize("value", VALUES)
def test_what_is_raised_within_names_no_value(value: str) -> None:
    secret = Secret("env:X", value)
    for fault in (
        InputError(f"a, {value!r} and {value}", value),
        CqlError(f"{value[:50]}…", Position(3, 4)),
        OSError(2, "no such file", value),
        ValueError(value),
    ):
        with pytest.raises(MillpondError) as raised, hiding([secret]):
            raise fault
        assert "env:X" in str(raised.value)
        assert_silent(raised.value, value)
        assert getattr(raised.value, "position", None) == getattr(fault, "position", None)


def test_what_says_nothing_of_a_secret_stays_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError), hiding([Secret("env:X", "hush")]):
        _ = 1 / 0


def assert_silent(error: BaseException, value: str) -> None:
    """Neither an error nor its traceback has a value, or what one sees of it escaped or cut."""
    said = str(error) + repr(error) + "".join(traceback.format_exception(error))
    assert value not in said
    assert repr(value)[1:-1][:40] not in said


# -- every argument of every connector --------------------------------------------------------


def parameters() -> Iterator[tuple[str, str, str]]:
    """Each connector, its role and the name of a parameter."""
    for name, module in BUILT_IN.items():
        for role in ("source", "sink"):
            function: Callable[..., Any] | None = getattr(import_module(module), role, None)
            listed = list(inspect.signature(function).parameters)[1:] if function else []
            yield from (
                (name, role, parameter) for parameter in listed if parameter != "parameters"
            )
    yield from (
        ("burst", "source", parameter) for parameter in ("file", "rate", "arrivals_per_second")
    )


def call(connector: str, role: str, parameter: str) -> str:
    """A call of a connector with a secret, and whatever else it needs."""
    nobody = {"topic": "'t'", "brokers": "'127.0.0.1:1'"}
    database = {"dsn": "'host=127.0.0.1 port=1'", "table": "'t'"}
    known = {
        "csv": {"file": "'a.csv'"},
        "json": {"file": "'a.json'"},
        "kafka": nobody,
        "postgres": database,
    }
    others = known.get(connector, {})
    others = {"parquet": {"file" if role == "source" else "directory": "'a.parquet'"}}.get(
        connector, others
    )
    if connector == "burst":
        others = {"process": "'trace'" if parameter == "file" else "'poisson'"}
    given = others | {parameter: f"'env:{NAME}'"}
    return f"{connector}({', '.join(f'{key} = {value}' for key, value in given.items())})"


@pytest.mark.parametrize("value", VALUES[:3])
@pytest.mark.parametrize(("connector", "role", "parameter"), list(parameters()))
def test_no_argument_of_a_connector_is_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    connector: str,
    role: str,
    parameter: str,
    value: str,
) -> None:
    for module in (kafka_source, kafka_sink):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)  # no broker is there
    (tmp_path / "a.csv").write_text("t,a\n1,7\n")
    (tmp_path / "a.json").write_text('{"t": 1, "a": 7}\n')
    pq.write_table(pa.table({"t": [1], "a": [7]}), tmp_path / "a.parquet")
    if role == "sink":
        (tmp_path / "a.parquet").unlink()
        monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(NAME, str(tmp_path / "sink" / "hush-x") if role == "sink" else value)
    text = call(connector, role, parameter)
    source = text if role == "source" else "push()"
    sink = f" INTO {text}" if role == "sink" else ""
    with Engine(directory=tmp_path) as engine:
        try:
            engine.execute(f"CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM {source}")
            engine.execute(f"CREATE QUERY q AS SELECT a FROM S{sink}")
            engine.finish(rows=1)
        except MillpondError as error:
            assert_silent(error, value)
            assert_silent(error, "hush")
        shown = f"{engine.show('all').to_pylist()}{engine.show('queries').to_pylist()}"
        assert value not in shown
        assert "hush" not in shown + plan_xml.written(engine)


CONTENTS = {
    "csv": ["t,a\n1,x\n", "t,b\n1,2\n", "t,a\n1\n", "t,a\n1,\xff\n", "t,a\n,1\n", '"'],
    "json": ['{"t": 1, "a": "x"}', "[1]", "{", '{"t": 1, "t": 2}', '{"a": 1}', "\xff", "null"],
    "parquet": ["", "PAR1", "no Parquet at all", "PAR1" * 100],
}


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize(
    ("connector", "content"), [(c, content) for c, each in CONTENTS.items() for content in each]
)
def test_no_path_is_shown_where_a_file_is_at_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connector: str, content: str, changes: bool
) -> None:
    file = tmp_path / "hush-hush" / f"a.{connector}"
    file.parent.mkdir()
    file.write_bytes(content.encode("latin-1"))
    monkeypatch.setenv(NAME, str(file))
    kind = "RELATION S (a INT)" if changes else "STREAM S (t BIGINT, a INT) TIMESTAMP BY t"
    options = " WITH (changes = true)" if changes else ""

    def read() -> None:
        with Engine() as engine:
            engine.execute(f"CREATE {kind} FROM {connector}('env:{NAME}'){options};")
            engine.execute("CREATE QUERY q AS SELECT a FROM S")
            engine.finish()

    with pytest.raises(MillpondError) as raised:
        read()
    assert_silent(raised.value, str(file))
    assert "hush-hush" not in str(raised.value)
    assert f"env:{NAME}" in str(raised.value)


@pytest.mark.parametrize("connector", ["csv", "json", "parquet"])
def test_no_path_is_shown_where_a_sink_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connector: str
) -> None:
    (tmp_path / "hush-hush").write_text("a file, so that nothing can be in it")
    monkeypatch.setenv(NAME, str(tmp_path / "hush-hush" / "x" / "y"))
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t")
        with pytest.raises(MillpondError) as raised:
            engine.execute(f"CREATE QUERY q AS SELECT a FROM S INTO {connector}('env:{NAME}')")
    assert_silent(raised.value, "hush-hush")
    assert f"env:{NAME}" in str(raised.value)
