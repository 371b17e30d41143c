"""The syntax of a statement prints as a tree that people can read."""

from __future__ import annotations

import pytest

from millpond.cql.text.parse import syntax_tree
from millpond.errors import CqlError
from tests.cql.check.test_queries import THEMES
from tests.cql.fixtures_format import load

QUERY = """CreateQueryStatement weight=2.0
  name: shop
  query: Select
    hint: ToStream kind=ISTREAM
    expressions: Alias
      this: Column
        this: Identifier this=a
      alias: Identifier this=n
    from: From
      this: FromItem
        this: Identifier this=S
        window: Window kind=RANGE
          length: Length
            this: Literal this=5
            unit: Identifier this=MINUTES
    where: Where
      this: GT
        this: Column
          this: Identifier this=a
        expression: Literal this=1
  sink: ConnectorCall
    name: csv
    arguments: 'x'
    options: Option key=header value=True"""


def test_tree_of_a_query() -> None:
    text = """CREATE QUERY shop WEIGHT 2 INACTIVE AS SELECT ISTREAM a AS n FROM S [RANGE 5 MINUTES]
              WHERE a > 1 INTO csv('x', header = true)"""
    assert syntax_tree(text) == QUERY


def test_tree_of_a_change() -> None:
    assert syntax_tree("UPDATE R SET k = 1, n = 'x'").split("\n") == [
        "UpdateStatement",
        "  relation: R",
        "  assignments: Assignment",
        "    column: k",
        "    value: Literal this=1",
        "  assignments: Assignment",
        "    column: n",
        "    value: Literal this=x is_string=True",
    ]


def test_every_query_of_the_fixtures_has_a_tree() -> None:
    for fixture in load(*THEMES):
        assert syntax_tree(fixture.text).startswith("CreateQueryStatement")


def test_faults_have_their_place() -> None:
    with pytest.raises(CqlError, match="line 1, column 17: SORT BY is not supported"):
        syntax_tree("SELECT a FROM S SORT BY a")


def test_deep_trees_are_refused() -> None:
    with pytest.raises(CqlError):
        syntax_tree("SELECT a" + " + 1" * 5_000 + " FROM S")
