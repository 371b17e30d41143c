import pytest

from millpond.catalog import Connector, StreamEntry
from millpond.connectors import registry
from millpond.errors import InputError
from tests.connectors.declarations import opened, rows, schema


def test_the_built_in_connectors_are_there() -> None:
    assert registry.names("source") == [
        "burst",
        "csv",
        "delta",
        "http",
        "iceberg",
        "json",
        "kafka",
        "mqtt",
        "parquet",
        "postgres",
        "push",
        "rate",
        "socket",
        "spark",
        "stdin",
        "websocket",
    ]
    assert registry.names("sink") == [
        *("csv", "delta", "iceberg", "json", "kafka", "mqtt", "parquet", "postgres", "spark"),
        "webhook",
    ]


def test_push_delivers_nothing_and_has_no_end() -> None:
    source = opened("a INT", "push")
    assert rows(source) == []
    assert not source.ends
    assert source.progress().total is None


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("cvs", (), 'no source cvs; did you mean "csv"? known: burst, csv'),
        ("csv", (), "csv(): missing a required argument: 'file'; use: csv(file, header = 'auto'"),
        ("push", ("x",), "push('x'): too many positional arguments; use: push()"),
        ("csv", (5,), "S: 5 is not a file name"),
    ],
)
def test_faulty_calls_say_what_is_known(
    name: str, arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        opened("a INT", name, *arguments)
    assert str(raised.value).startswith(message)


def test_a_connector_is_one_small_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "answer", "tests.connectors.answer_connector")
    registry._installed.cache_clear()
    try:
        entry = StreamEntry("S", schema("a INT"), None, 0, Connector("answer", (), (("plus", 1),)))
        assert rows(registry.open_source(entry)) == [(43,)]
    finally:
        monkeypatch.undo()
        registry._installed.cache_clear()
