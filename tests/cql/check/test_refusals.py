"""A refusal names the alternative, and the alternative works."""

import pytest

from millpond.cql.check.statements import check_statement
from millpond.errors import CqlError, Position
from tests.cql.fixtures_format import Fixture, declared, load

CATALOG = declared()


@pytest.mark.parametrize("fixture", load("refusals"), ids=str)
def test_a_refusal_names_what_works(fixture: Fixture) -> None:
    words, _, alternative = fixture.expected.partition("\n")
    with pytest.raises(CqlError) as refused:
        check_statement(fixture.text, Position(1, 1), CATALOG)
    assert words in refused.value.message
    check_statement(alternative, Position(1, 1), CATALOG)
