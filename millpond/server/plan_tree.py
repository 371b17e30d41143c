"""Plans written directly as trees of operators (STREAM paper, section 6.2), as CQL.

A tree becomes nested queries, and these go the way of every other text: through the checks.
"""

import itertools
from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

from millpond.entities.catalogued import quoted

SETS = ("union", "except", "intersect")
TO_STREAM = ("istream", "dstream", "rstream")
LEAVES = ("stream", "relation", "view")
JOINS = ("inner", "left", "right", "full", "cross", "semi", "anti")


class TreeError(Exception):
    """A tree that is no plan; ``element`` is what is wrong."""

    def __init__(self, element: Element, reason: str) -> None:
        super().__init__(reason)
        self.element, self.reason = element, reason


def as_cql(element: Element) -> str:
    """The query that a tree of operators stands for.

    >>> from xml.etree.ElementTree import XML
    >>> as_cql(XML('<select condition="a > 1"><stream name="S" window="NOW"/></select>'))
    'SELECT * FROM "S" [NOW] WHERE a > 1'
    """
    return _Tree().query(element)


class _Tree:
    def __init__(self) -> None:
        self._names: Iterator[str] = (f"t{number}" for number in itertools.count(1))

    def query(self, element: Element) -> str:
        """A whole query."""
        if element.tag in TO_STREAM:
            return f"{element.tag.upper()}({self.query(_only(element))})"
        if element.tag in SETS:
            left, right = _children(element, 2)
            every = " ALL" if element.get("all") == "true" else ""
            return f"({self.query(left)}) {element.tag.upper()}{every} ({self.query(right)})"
        rules: dict[str, Callable[[Element], str]] = {
            "select": self._select,
            "project": self._project,
            "aggregate": self._aggregate,
            "join": lambda e: f"SELECT * FROM {self._join(e)}",
        }
        if element.tag in LEAVES:
            return f"SELECT * FROM {self._leaf(element)}"
        if element.tag not in rules:
            known = ", ".join([*rules, *SETS, *TO_STREAM, *LEAVES])
            raise TreeError(element, f"no operator <{element.tag}>; known: {known}")
        return rules[element.tag](element)

    def _select(self, element: Element) -> str:
        condition = _given(element, "condition")
        return f"SELECT * FROM {self._item(_only(element))} WHERE {condition}"

    def _project(self, element: Element) -> str:
        distinct = "DISTINCT " if element.get("distinct") == "true" else ""
        columns = _given(element, "columns")
        return f"SELECT {distinct}{columns} FROM {self._item(_only(element))}"

    def _aggregate(self, element: Element) -> str:
        text = f"SELECT {_given(element, 'columns')} FROM {self._item(_only(element))}"
        by, having = element.get("by"), element.get("having")
        text += f" GROUP BY {by}" if by else ""
        return text + (f" HAVING {having}" if having else "")

    def _join(self, element: Element) -> str:
        left, right = _children(element, 2)
        kind = element.get("kind", "inner").lower()
        if kind not in JOINS:
            raise TreeError(element, f"no join {kind}; known: {', '.join(JOINS)}")
        on = "" if kind == "cross" else f" ON {_given(element, 'on')}"
        return f"{self._item(left)} {kind.upper()} JOIN {self._item(right)}{on}"

    def _item(self, element: Element) -> str:
        """What stands in FROM."""
        if element.tag in LEAVES:
            return self._leaf(element)
        if element.tag == "join" and element.get("as") is None:
            return self._join(element)
        name = element.get("as") or next(self._names)
        return f"({self.query(element)}) AS {quoted(name)}"

    def _leaf(self, element: Element) -> str:
        _children(element, 0)
        text = quoted(_given(element, "name"))
        if alias := element.get("as"):
            text += f" AS {quoted(alias)}"
        where = f" WHERE {element.get('where')}" if element.get("where") else ""
        if window := element.get("window"):
            text += f" [{window}{where}]"
        if sample := element.get("sample"):
            text += f" SAMPLE({sample})"
        return text


def _given(element: Element, name: str) -> str:
    value = element.get(name, "").strip()
    if not value:
        raise TreeError(element, f"<{element.tag}> needs {name}=…")
    return value


def _children(element: Element, count: int) -> list[Element]:
    children = list(element)
    if len(children) != count:
        raise TreeError(element, f"<{element.tag}> has {len(children)} inputs, and needs {count}")
    return children


def _only(element: Element) -> Element:
    return _children(element, 1)[0]
