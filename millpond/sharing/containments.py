"""Which selections of queries that stand alone run, and which of them others read from.

A query whose selection is implied by one that runs reads what that one lets through. Where the
other one is fused into whatever reads it there is nothing to read yet: it becomes an operator if it
was seen to let few rows of large steps through, or with ``SET sharing = 'on'``. What is chosen when
a query begins stays; the log says what it was.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from millpond.cql.algebra import Filter, StreamScan
from millpond.cql.expressions import Expression
from millpond.cql.node import Node
from millpond.identities import QueryId, StreamId
from millpond.planning.containment import contain, selections
from millpond.planning.graph import Graph
from millpond.planning.implication import implies
from millpond.planning.physical import LinearOperator, Operator, OutputOperator, QueueRead
from millpond.planning.predicates import columns_used, conjuncts
from millpond.sharing.planned import QueryPlans
from millpond.sharing.sketch import Chosen, Sketch

MOST_TRIED = 50
"""So many selections are compared with one of a new query."""

MOST_WEIGHED = 8
"""Of so many that are implied it is found out how much they let through."""

MOST_ASKED = 3
"""Of so many queries it is looked up what was measured of a selection."""

MOST_SHARE = 0.5
"""What lets more rows through is not read: whoever is left alone with it does its work too."""

SMALL_SHARE = 1 / 8
"""What is fused and lets more rows through stays fused."""

LARGE_STEP = 20_000
"""So are selections from steps with fewer rows: the step of one operator more takes longer."""

LEAST_ROWS = 1_000
"""What was seen of fewer rows is not known."""

SELECTIONS = "selections"
"""Under which name it is kept what was chosen: by which predicates the operators select that
selections of a plan read, by the digests of the selections."""


class Seen(NamedTuple):
    """What was measured of a selection."""

    share: float
    """Which part of the rows it lets through."""
    rows_a_step: float


@dataclass(frozen=True)
class Finding:
    """A selection of a query that is implied by one that runs."""

    selection: Filter
    by: Filter
    runs: bool
    """Whether the other one is an operator already."""
    seen: Seen | None
    is_read: bool

    @property
    def told(self) -> str:
        """The finding in words, for EXPLAIN."""
        few = "not measured" if self.seen is None else f"{self.seen.share:.1%} of the rows pass"
        known = f"{self.selection.predicate} implies {self.by.predicate} ({few})"
        if not self.is_read:
            where = "what that lets through" if self.runs else "a queue behind that"
            return f"{known}: reading {where} would save little"
        where = "runs already" if self.runs else "becomes an operator"
        return f"{known}: reads what that selection lets through, which {where}"


@dataclass(frozen=True)
class _Use:
    """The selections of a query's plan, what reads them, and what was chosen."""

    readers: Mapping[Filter, tuple[Node, ...]]
    chosen: Mapping[Filter, Filter]


class Containments:
    """The selections of the queries that stand alone."""

    name = SELECTIONS

    def __init__(
        self, graph: Graph, measured: Callable[[QueryId, LinearOperator], Seen | None]
    ) -> None:
        self._graph = graph
        self._measured = measured
        """What was seen of the operators of a query that contain a selection."""
        self._uses: dict[QueryId, _Use] = {}
        self._holders: dict[Node, dict[frozenset[int], dict[Filter, dict[QueryId, None]]]] = {}
        """By what is selected from and the columns that are looked at, who has which selections."""
        self._read: dict[Node, dict[QueryId, dict[Filter, Filter | None]]] = {}
        """What those have chosen whose plans have a reader of selections, for each of these."""

    # -- what is chosen --------------------------------------------------------------------

    def arrange(self, sketch: Sketch) -> Sketch:
        """Decides which selections of a query read what others let through.

        What ON ERROR SKIP leaves out is told of the rows that a query reads: such a one reads all.
        """
        if sketch.group is not None:
            return sketch
        if SELECTIONS in sketch.chosen:
            return contained(sketch)
        if sketch.is_anew or sketch.entry.on_error == "skip":
            return sketch
        findings = self.find(sketch.plan, sketch.sharing)
        read = {each.selection.digest: each.by.predicate for each in findings if each.is_read}
        told = (*sketch.told, *(each.told for each in findings))
        return contained(sketch.with_choice(SELECTIONS, read, told=told))

    def find(self, plan: Node, sharing: str) -> list[Finding]:
        """What of a plan is implied by selections that run, the best one for each selection."""
        if sharing == "off" or self._graph.linear == "fused":
            return []
        found = (self._find(node, above, sharing) for node, above in selections(plan).items())
        return [finding for finding in found if finding is not None]

    def _find(self, node: Filter, above: tuple[Node, ...], sharing: str) -> Finding | None:
        """The selection to read from; where an equal reader runs, the one that reader reads."""
        for reader in above:
            for choices in self._read.get(reader, {}).values():
                if node not in choices:
                    continue
                by = choices[node]
                return None if by is None else Finding(node, by, True, self._seen(by), True)
        implied = (
            each for each in self._candidates(node) if implies(node.predicate, each.predicate)
        )
        some = (self._weighed(node, by, sharing) for by in islice(implied, MOST_WEIGHED))
        return min(some, key=_rank, default=None)

    def _candidates(self, node: Filter) -> Iterator[Filter]:
        used, tried = columns_used(node.predicate), 0
        for columns, holders in self._holders.get(node.input, {}).items():
            if columns <= used:
                for each in holders:
                    yield each
                    tried += 1
                    if tried == MOST_TRIED:
                        return

    def _weighed(self, node: Filter, by: Filter, sharing: str) -> Finding:
        runs, seen = self._runs(by), self._seen(by)
        if seen is not None and seen.share > MOST_SHARE:
            is_read = False
        elif runs or sharing == "on":
            is_read = True
        else:
            is_read = (
                seen is not None and seen.share <= SMALL_SHARE and seen.rows_a_step >= LARGE_STEP
            )
        return Finding(node, by, runs, seen, is_read)

    def _runs(self, by: Filter) -> bool:
        """Whether a selection is an operator."""
        operator = _operator(by)
        if operator is not None:
            return self._graph.has(operator)
        return any(by in self._uses[each].chosen.values() for each in self._queries(by))

    def _queries(self, by: Filter) -> dict[QueryId, None]:
        """The queries that have a selection, or read it."""
        return self._holders.get(by.input, {}).get(_columns(by), {}).get(by, {})

    def _seen(self, by: Filter) -> Seen | None:
        operator = _operator(by)
        if operator is None:
            return None
        for query in islice(self._queries(by), MOST_ASKED):
            seen = self._measured(query, operator)
            if seen is not None:
                return seen
        return None

    # -- who has what ----------------------------------------------------------------------

    def begun(self, query: QueryId, plans: QueryPlans, chosen: Chosen) -> None:
        """A query stands alone from now on."""
        read = chosen.get(SELECTIONS, {})
        readers = selections(plans.optimised)
        reading = (node for node in readers if node.digest in read)
        known = {node: Filter(node.input, read[node.digest]) for node in reading}
        use = self._uses[query] = _Use(readers, known)
        for node in _held(use):
            of_input = self._holders.setdefault(node.input, {})
            of_input.setdefault(_columns(node), {}).setdefault(node, {})[query] = None
        for node, above in use.readers.items():
            for reader in above:
                of_reader = self._read.setdefault(reader, {}).setdefault(query, {})
                of_reader[node] = known.get(node)

    def leave(self, query: QueryId) -> None:
        """A query stands alone no more, or not at all."""
        use = self._uses.pop(query, None)
        if use is None:
            return
        for node in _held(use):
            of_input = self._holders[node.input]
            of_input[_columns(node)][node].pop(query, None)
            _prune(of_input[_columns(node)], node)
            _prune(of_input, _columns(node))
            _prune(self._holders, node.input)
        for above in use.readers.values():
            for reader in above:
                self._read.get(reader, {}).pop(query, None)
                _prune(self._read, reader)

    def told(self, query: QueryId) -> list[Finding]:
        """The findings that a running query reads, for EXPLAIN."""
        use = self._uses.get(query)
        chosen = {} if use is None else use.chosen
        return [Finding(node, by, True, self._seen(by), True) for node, by in chosen.items()]

    def chosen(self, query: QueryId) -> dict[str, Expression]:
        """What was chosen for a query."""
        use = self._uses.get(query)
        chosen = {} if use is None else use.chosen
        return {node.digest: by.predicate for node, by in chosen.items()}


def contained(sketch: Sketch) -> Sketch:
    """The plan with selections that read what others let through."""
    plan, apart = unsummed(sketch.plans, sketch.chosen)
    return replace(sketch, changed=plan, apart=apart)


def unsummed(plans: QueryPlans, chosen: Chosen) -> tuple[Node, frozenset[Node]]:
    """The plan of a query with what was chosen for its selections; those that it reads."""
    read = chosen.get(SELECTIONS)
    if not read:
        return plans.optimised, frozenset()
    found = (node for node in selections(plans.optimised) if node.digest in read)
    return contain(plans.optimised, {node: read[node.digest] for node in found})


def _rank(finding: Finding) -> tuple[bool, bool, float, int, str]:
    """Ranks findings: those to be read, then those that run, then the most selective."""
    share = 1.0 if finding.seen is None else finding.seen.share
    tests = len(conjuncts(finding.by.predicate))
    return not finding.is_read, not finding.runs, share, -tests, finding.by.digest


def _columns(node: Filter) -> frozenset[int]:
    return frozenset(columns_used(node.predicate))


def _held(use: _Use) -> set[Filter]:
    """The selections of a query, and those that it reads."""
    return {*use.readers, *use.chosen.values()}


@lru_cache(1024)
def _operator(by: Filter) -> LinearOperator | None:
    """What a selection from a stream of the catalog is as an operator."""
    if not isinstance(by.input, StreamScan):
        return None
    read = QueueRead(StreamId(by.input.name).queue, by.input.schema, True, True)
    return LinearOperator(Filter(read, by.predicate))


def _prune(holders: dict[Any, Any], key: Any) -> None:
    if key in holders and not holders[key]:
        del holders[key]


def is_seen_through(operator: Operator, selection: LinearOperator) -> bool:
    """Whether what an operator puts out for what it reads tells what a selection in it does."""
    if operator == selection:
        return True
    if not isinstance(operator, OutputOperator) or operator.mode not in ("arrivals", "stream"):
        return False
    nodes = list(operator.input.walk())
    filters = [node for node in nodes if isinstance(node, Filter)]
    return filters == [selection.input] and all(len(node.inputs) < 2 for node in nodes)
