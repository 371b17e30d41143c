"""The language's page is true: its examples check, and it lists every function."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millpond.catalog import Catalog
from millpond.cql import functions
from millpond.cql.aggregates import AGGREGATE_ALIASES, AGGREGATES
from millpond.cql.check.statements import check_script
from millpond.cql.functions import FUNCTIONS, Function
from millpond.cql.text.tokens import CqlTokenizer
from millpond.cql.type_names import TYPE_NAMES
from millpond.schema import Type
from tests.cql.validation import validate

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "cql.md").read_text(encoding="utf-8")
FROM_SQL = (DOCS / "from_sql.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("text", "least"), [(TEXT, 40), (FROM_SQL, 5)], ids=["cql", "from_sql"])
def test_the_examples_are_one_script(text: str, least: int) -> None:
    statements = list(check_script("\n".join(blocks("cql", text)), Catalog()))
    assert len(statements) > least
    for statement in statements:
        entry = getattr(statement.action, "entry", None)
        if hasattr(entry, "plan"):
            validate(entry.plan)


def test_the_examples_with_files_check_too() -> None:
    for block in blocks("sql"):
        assert list(check_script(block, Catalog()))


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda f: f.name)
def test_every_function_is_documented(function: Function) -> None:
    result = function.result or "as its arguments"
    assert f"| `{function.signature}` | {result} | {function.doc} |" in TEXT


@pytest.mark.parametrize("name", [*functions.ALIASES, *functions.REWRITTEN, *AGGREGATE_ALIASES])
def test_every_other_name_is_documented(name: str) -> None:
    assert re.search(rf"`{name}\b", TEXT)


def test_every_aggregate_is_documented() -> None:
    for aggregate in AGGREGATES.values():
        assert f"| `{aggregate.name}` | {aggregate.doc} |" in TEXT


def test_every_type_and_reserved_word_is_documented() -> None:
    for name in TYPE_NAMES:
        assert re.search(rf"\b{name}\b", TEXT)
    reserved = TEXT.split("Reserved: ")[1].split("\n\n")[0].replace("before FINAL", "")
    words = set(re.findall(r"[A-Z]+", reserved))
    phrases = {word.split()[0] for word in CqlTokenizer.KEYWORDS if word[0].isalpha()}
    assert words - {"BY"} == phrases


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda f: f.name)
def test_every_function_can_be_called(function: Function) -> None:
    samples = {
        Type.STRING: "s",
        Type.INT: "a",
        Type.BIGINT: "a",
        Type.DOUBLE: "a",
        Type.DATE: "d",
        Type.TIMESTAMP: "t",
        functions.Kind.NUMBER: "a",
        functions.Kind.VALUE: "s",
        functions.Kind.BYTES: "s",
        functions.Kind.ARRAY: "ARRAY[a]",
        functions.Kind.MAP: "MAP['x', a]",
        functions.Kind.MANY: "MAP['x', a]",
        functions.Kind.ELEMENT: "a",
        functions.Kind.MOMENT: "t",
        functions.Kind.DIGITS: "2",
        functions.Kind.UNIT: "'hour'",
        functions.Kind.PATTERN: "'(a)b'",
        functions.Kind.TEXT: "'x'",
        functions.Kind.GROUP: "1",
        functions.Kind.PATH: "'$.a[0]'",
    }
    arguments = ", ".join(samples[p] for p in function.parameters)
    nulls = ", ".join(samples[p] if p in CONSTANT else "NULL" for p in function.parameters)
    script = f"""CREATE STREAM S (t TIMESTAMP, a INT, s STRING, d DATE);
                 SELECT {function.name}({arguments}), {function.name}({nulls}) FROM S"""
    *_, statement = check_script(script, Catalog())
    plan = statement.action.entry.plan
    validate(plan)
    if function.result is not None:
        assert plan.schema.types == (function.result, function.result)


CONSTANT = functions.CONSTANT
