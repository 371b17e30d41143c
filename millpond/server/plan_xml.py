"""Plans as XML: what runs, mirrored; and what a file says, as statements.

The form is in `docs/plan.xsd`. What is measured is written for people and passed over when read.
Nothing outside of the text is ever loaded, and no entity of its own is taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element, ParseError, SubElement, TreeBuilder, indent, tostring

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from millpond.catalog import Catalog, PartitionEntry, QueryEntry, StreamEntry, promised
from millpond.cql.text.split import split_statements
from millpond.entities.catalogued import quoted
from millpond.errors import CqlError
from millpond.facade.engine import Engine
from millpond.server.faults import RequestError
from millpond.server.formats import xml_text
from millpond.server.plan_tree import TreeError, as_cql
from millpond.server.service import Service

MEASURED = ("operator", "queue", "synopsis", "unit", "thread", "partition")
DEEPEST = 60
MOST_ELEMENTS = 50_000


# -- writing -------------------------------------------------------------------------------


def written(engine: Engine) -> str:
    """The running plan."""
    root = Element("plan", version="1")
    with engine.held():
        _write_settings(engine, root)
        for declared in engine.memory.living():
            entry = engine.catalog.get(declared.name)
            if isinstance(entry, QueryEntry):
                _write_query(root, entry)
            elif isinstance(entry, PartitionEntry):
                _write_partition(root, entry)
            elif declared.kind in ("stream", "relation", "view"):
                element = SubElement(root, declared.kind, name=declared.name)
                if isinstance(entry, StreamEntry):
                    _write_lengths(engine, element, entry)
                SubElement(element, "cql").text = xml_text(declared.text)
                if isinstance(entry, StreamEntry):
                    if entry.kept_percent != 100:
                        element.set("kept", f"{entry.kept_percent:g}")
                    for text in _altered_constraints(entry, engine.catalog):
                        SubElement(element, "alter").text = xml_text(text)
        if engine.has_runtime:
            for operator, present in engine.runtime.placement.by_hand.items():
                SubElement(root, "queue", after=operator, present=_word(present))
        _write_measured(engine, root)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _write_lengths(engine: Engine, element: Element, entry: StreamEntry) -> None:
    """Writes the lengths of a stream that ALTER STREAM has changed."""
    stream = engine.entities().get("stream", entry.name)
    if entry.has_other_delay:
        element.set("delay", stream.get("delay"))
    if entry.has_other_ahead:
        element.set("ahead", stream.get("ahead"))
    if entry.has_other_idle:
        element.set("idle_after", stream.get("idle_after"))


def _altered_constraints(entry: StreamEntry, catalog: Catalog) -> Iterator[str]:
    """What ALTER STREAM has changed of the constraints of a stream since its CREATE."""
    before = entry.constraints if entry.created_with is None else entry.created_with
    for each in before:
        if each not in entry.constraints:
            yield f"DROP CONSTRAINT {quoted(each.name)}"
    for each in entry.constraints:
        if each not in before:
            unit = " ROWS" * each.is_of_rows
            yield (
                f"ADD CONSTRAINT {quoted(each.name)} {promised(each, entry, catalog, quoted)} "
                f"WITHIN {each.within}{unit} ON VIOLATION {each.on_violation.upper()}"
            )


def _write_settings(engine: Engine, root: Element) -> None:
    for kind in ("engine", "scheduler"):
        entity = engine.entities().get(kind, kind)
        for attribute in entity.kind.attributes:
            if attribute.is_knob:
                value = xml_text(entity.get(attribute.name))
                SubElement(root, "set", name=attribute.name, value=value)


def _write_query(root: Element, entry: QueryEntry) -> None:
    element = SubElement(root, "query", name=entry.name, weight=f"{entry.weight:g}")
    element.set("active", _word(entry.active))
    element.set("on_error", entry.on_error)
    if entry.tolerates is not None:
        element.set("tolerates", str(entry.tolerates))
    if entry.partition:
        element.set("partition", entry.partition)
    SubElement(element, "cql").text = xml_text(entry.text)
    if entry.sink is not None:
        element.set("into", xml_text(entry.sink))


def _write_partition(root: Element, entry: PartitionEntry) -> None:
    element = SubElement(root, "partition", name=entry.name, threads=f"{entry.threads}")
    element.set("priority", f"{entry.priority:g}")
    element.set("strategy", xml_text(entry.strategy))
    for operator in entry.operators:
        SubElement(element, "operator", name=operator)


def _write_measured(engine: Engine, root: Element) -> None:
    measured = SubElement(root, "measured")
    for kind in MEASURED:
        for entity in engine.entities().of_kind(kind):
            table = SubElement(measured, kind, name=entity.name)
            for name, value in entity.values().items():
                if value is not None:
                    SubElement(table, "attribute", name=name).text = xml_text(value)


def _word(value: bool) -> str:
    return "true" if value else "false"


# -- reading -------------------------------------------------------------------------------


class Document:
    """A plan that was read, with the lines of its elements."""

    def __init__(self, text: bytes) -> None:
        self._lines: dict[int, int] = {}
        self.root = self._parsed(text)
        if self.root.tag != "plan":
            raise self.fault(self.root, f"<{self.root.tag}> is no plan: begin with <plan>")

    def _parsed(self, text: bytes) -> Element:
        watched = _Watched(self._lines)
        parser = watched.parser = DefusedXMLParser(target=watched, forbid_dtd=True)
        try:
            for first in range(0, len(text), 65_536):
                parser.feed(text[first : first + 65_536])
            root: Element = parser.close()
        except DefusedXmlException as error:
            raise RequestError(
                400, f"refused: {type(error).__name__}: no DTD, no entities"
            ) from None
        except ParseError as error:
            line, column = error.position
            reason = str(error).split(":")[0]
            raise RequestError(400, reason, line=line, column=column + 1) from None
        except (ValueError, LookupError) as error:
            raise RequestError(400, f"this is no XML: {error}") from None
        return root

    def line(self, element: Element) -> int:
        """Where an element begins."""
        return self._lines.get(id(element), 1)

    def fault(self, element: Element, reason: str) -> RequestError:
        """A refusal that names the line."""
        return RequestError(400, reason, line=self.line(element))


class _Watched(TreeBuilder):
    """A builder that notes the lines of elements, and refuses too deep or too many of them."""

    parser: Any

    def __init__(self, lines: dict[int, int]) -> None:
        super().__init__()
        self._lines, self._depth, self._count = lines, 0, 0

    def start(self, tag: Any, attrs: Any, /) -> Element:
        self._depth, self._count = self._depth + 1, self._count + 1
        line = self.parser.parser.CurrentLineNumber
        if self._depth > DEEPEST or self._count > MOST_ELEMENTS:
            raise RequestError(413, "the plan is too deep or too large", line=line)
        element = super().start(tag, attrs)
        self._lines[id(element)] = line
        return element

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)


Placed = tuple[str, int]
"""A statement, and the line of the element it comes from."""


def statements(engine: Engine, text: bytes, replaces: bool) -> list[Placed]:
    """What makes the running plan that of a document; with ``replaces`` what it lacks goes."""
    reader = _Reader(engine, Document(text))
    return list(reader.statements(replaces))


def load(service: Service, text: bytes, replaces: bool) -> int:
    """Makes the running plan that of a document, checked as a whole; the number of statements."""
    found = statements(service.engine, text, replaces)
    try:
        service.execute(";\n".join(statement for statement, _ in found))
    except CqlError as error:
        raise _in_document(error, found) from None
    return len(found)


def _in_document(error: CqlError, found: list[Placed]) -> RequestError:
    """The error with the line of the element whose statement it is about."""
    at, first = error.position.line if error.position else 1, 1
    for statement, line in found:
        following = first + statement.count("\n") + 1
        if at < following:
            return RequestError(400, error.message, line=line)
        first = following
    return RequestError(400, error.message)


class _Reader:
    def __init__(self, engine: Engine, document: Document) -> None:
        self._engine, self._document = engine, document
        self._named: dict[str, Element] = {}
        self._additions: list[Placed] = []

    def statements(self, replaces: bool) -> Iterator[Placed]:
        """The statements, in order."""
        rules: dict[str, Callable[[Element], Iterator[str]]] = {
            "set": self._setting,
            "stream": self._declaration,
            "relation": self._declaration,
            "view": self._declaration,
            "query": self._query,
            "queue": self._queue,
            "partition": self._partition,
            "measured": lambda element: iter(()),
        }
        made: list[Placed] = []
        for element in self._document.root:
            if element.tag not in rules:
                known = ", ".join(rules)
                raise self._fault(element, f"no <{element.tag}> in a plan; known: {known}")
            line = self._document.line(element)
            for statement in rules[element.tag](element):
                self._refuse_several(element, statement)
                made.append((statement, line))
        if replaces:
            yield from ((statement, 1) for statement in self._dropped())
        yield from (*made, *self._additions)

    def _refuse_several(self, element: Element, statement: str) -> None:
        if len(split_statements(statement)) != 1:
            raise self._fault(element, f"<{element.tag}> is not one statement")

    def _fault(self, element: Element, reason: str) -> RequestError:
        return self._document.fault(element, reason)

    def _given(self, element: Element, name: str) -> str:
        value = element.get(name)
        if not value:
            raise self._fault(element, f"<{element.tag}> needs {name}=…")
        return value

    def _setting(self, element: Element) -> Iterator[str]:
        name, value = self._given(element, "name"), element.get("value", "")
        present = {key: shown for key, shown, *_ in self._engine.settings_now.listing()}
        if name not in present:
            raise self._fault(element, f"no setting {name!r}")
        if present[name] != value:
            escaped = value.replace("'", "''")
            yield f"SET {name} = '{escaped}'"

    def _name(self, element: Element) -> str:
        name = self._given(element, "name")
        if name.lower() in self._named:
            raise self._fault(element, f'"{name}" is there twice')
        self._named[name.lower()] = element
        return name

    def _declaration(self, element: Element) -> Iterator[str]:
        name = self._name(element)
        cql = element.find("cql")
        if cql is not None:
            text = (cql.text or "").strip().rstrip(";")
        elif element.tag == "view" and len(element) == 1:
            text = f"CREATE VIEW {quoted(name)} AS {self._tree(element[0])}"
        else:
            raise self._fault(element, f"<{element.tag}> needs <cql>")
        declared = {each.name.lower(): each for each in self._engine.memory.living()}
        before = declared.get(name.lower())
        if before is None:
            yield text
        elif before.text.strip() != text:
            raise self._fault(element, f'"{name}" is declared otherwise; DROP it first')
        if element.tag == "stream":
            yield from self._lengths(element, name, is_new=before is None)
            self._constraints(element, name, is_new=before is None)
            yield from self._kept(element, name)

    def _constraints(self, element: Element, name: str, is_new: bool) -> None:
        """Constraints come when all is declared: they may be about another stream."""
        wanted = [(each.text or "").strip() for each in element.findall("alter")]
        entry = self._engine.catalog.get(name)
        if is_new:
            for statement in (f"ALTER STREAM {quoted(name)} {each}" for each in wanted):
                self._refuse_several(element, statement)
                self._additions.append((statement, self._document.line(element)))
            return
        catalog = self._engine.catalog
        if isinstance(entry, StreamEntry) and wanted != list(_altered_constraints(entry, catalog)):
            raise self._fault(element, f'"{name}" has other constraints; ALTER STREAM it first')

    def _kept(self, element: Element, name: str) -> Iterator[str]:
        entry, wanted = self._engine.catalog.get(name), element.get("kept", "100")
        present = entry.kept_percent if isinstance(entry, StreamEntry) else 100.0
        if wanted != f"{present:g}":
            yield f"ALTER STREAM {quoted(name)} KEEP {wanted} PERCENT"

    def _lengths(self, element: Element, name: str, is_new: bool) -> Iterator[str]:
        for knob, clause, nothing in (
            ("delay", "DELAY", {"none": "0"}),
            ("idle_after", "IDLE AFTER", {}),
            ("ahead", "AHEAD AT MOST", {}),
        ):
            if not element.get(knob):
                continue
            length = self._given(element, knob)
            if is_new or self._engine.entities().get("stream", name).get(knob) != length:
                yield f"ALTER STREAM {quoted(name)} {clause} {nothing.get(length, length)}"

    def _tree(self, element: Element) -> str:
        try:
            return as_cql(element)
        except TreeError as error:
            raise self._fault(error.element, error.reason) from None

    def _query(self, element: Element) -> Iterator[str]:
        name = self._name(element)
        text = self._query_text(element)
        entry = self._engine.catalog.get(name)
        if isinstance(entry, QueryEntry) and entry.text.strip() == text:
            yield from self._altered(element, entry)
            return
        if entry is not None:
            yield f"DROP QUERY {quoted(name)}"
        weight = f" WEIGHT {element.get('weight')}" if element.get("weight") else ""
        active = " INACTIVE" if element.get("active") == "false" else ""
        skip = " ON ERROR SKIP" if self._policy(element, "stop") == "skip" else ""
        tolerates = f" {element.get('tolerates') or 'EXACT'}"
        where = element.get("partition", "")
        tolerates += f" PARTITION {quoted(where)}" if where else ""
        into = f" INTO {element.get('into')}" if element.get("into") else ""
        yield f"CREATE QUERY {quoted(name)}{weight}{active}{skip}{tolerates} AS {text}{into}"

    def _query_text(self, element: Element) -> str:
        children = list(element)
        if len(children) != 1:
            raise self._fault(element, "<query> has one <cql>, or one operator")
        if children[0].tag == "cql":
            return (children[0].text or "").strip().rstrip(";")
        return self._tree(children[0])

    def _altered(self, element: Element, entry: QueryEntry) -> Iterator[str]:
        weight = element.get("weight", "")
        if weight and weight != f"{entry.weight:g}":
            yield f"ALTER QUERY {quoted(entry.name)} SET WEIGHT {weight}"
        active = element.get("active", _word(entry.active))
        if active != _word(entry.active):
            word = "ACTIVE" if active == "true" else "INACTIVE"
            yield f"ALTER QUERY {quoted(entry.name)} SET {word}"
        on_error = self._policy(element, entry.on_error)
        if on_error != entry.on_error:
            yield f"ALTER QUERY {quoted(entry.name)} ON ERROR {on_error.upper()}"
        present = "" if entry.tolerates is None else str(entry.tolerates)
        tolerates = element.get("tolerates", "")
        if tolerates != present:
            yield f"ALTER QUERY {quoted(entry.name)} {tolerates or 'EXACT'}"

        where = element.get("partition", "")
        if where != entry.partition:
            to = f"PARTITION {quoted(where)}" if where else "NO PARTITION"
            yield f"ALTER QUERY {quoted(entry.name)} SET {to}"

    def _partition(self, element: Element) -> Iterator[str]:
        name = self._name(element)
        entry, there = self._engine.catalog.get(name), self._engine.graph.operators
        present = entry if isinstance(entry, PartitionEntry) else PartitionEntry(name)
        strategy = element.get("strategy", "").replace("'", "''")
        said = f"STRATEGY '{strategy}' THREADS {element.get('threads', '1')}"
        said += f" PRIORITY {element.get('priority', '1')}"
        if entry is None:
            yield f"CREATE PARTITION {quoted(name)} {said}"
        elif str(replace(present, strategy="")) not in said or present.strategy != strategy:
            yield f"ALTER PARTITION {quoted(name)} {said}"
        inside = [self._given(each, "name") for each in element.findall("operator")]
        for operator in (each for each in inside if each not in present.operators):
            if operator in there:  # else its number was that of another run
                yield f"ALTER PARTITION {quoted(name)} ADD OPERATOR {operator}"
        for operator in (each for each in present.operators if each not in inside):
            yield f"ALTER PARTITION {quoted(name)} DROP OPERATOR {operator}"

    def _policy(self, element: Element, default: str) -> str:
        policy = element.get("on_error", default)
        if policy not in ("stop", "skip"):
            raise self._fault(element, f'on_error = "{policy}" will not do; it is stop or skip')
        return policy

    def _queue(self, element: Element) -> Iterator[str]:
        operator = self._given(element, "after")
        if operator not in self._engine.graph.operators:
            return  # its number was that of another run
        word = "" if element.get("present") == "true" else "NO "
        yield f"ALTER PLAN {word}QUEUE AFTER {operator}"

    def _dropped(self) -> Iterator[str]:
        for declared in reversed(self._engine.memory.living()):
            if declared.name.lower() not in self._named:
                yield f"DROP {declared.kind.upper()} {quoted(declared.name)}"
