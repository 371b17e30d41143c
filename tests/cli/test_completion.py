from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from millpond.catalog import Catalog, StreamEntry
from millpond.cli.completion import CqlCompleter, names_of
from tests.connectors.declarations import schema


def offered(text: str) -> list[str]:
    catalog = Catalog()
    catalog.add(StreamEntry("Requests", schema("client_id INT, url STRING")))
    completer = CqlCompleter(lambda: names_of(catalog))
    return [c.text for c in completer.get_completions(Document(text), CompleteEvent())]


def test_keywords_follow_the_case_of_the_word() -> None:
    assert offered("SEL") == ["SELECT"]
    assert offered("sel") == ["select"]


def test_declared_names_and_columns_are_offered() -> None:
    assert "Requests" in offered("SELECT * FROM req")
    assert offered("SELECT cli") == ["client_id"]


def test_connectors_are_offered() -> None:
    assert "parquet" in offered("CREATE STREAM S (a INT) FROM par")


def test_commands_are_completed_and_take_names_only() -> None:
    assert offered("\\t") == ["\\timing"]
    assert offered("\\d req") == ["Requests"]
    assert offered("\\d sel") == []


def test_an_empty_word_offers_names_only() -> None:
    assert offered("SELECT * FROM ") == ["Requests", "client_id", "url"]
