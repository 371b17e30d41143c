"""The queries that run: their operators in the graph and on Spark, and why some stand still.

Whoever calls holds the engine's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from millpond.catalog import QueryEntry, StreamEntry
from millpond.cql.algebra import StreamScan
from millpond.cql.node import Node
from millpond.delivery.group_results import GroupLog
from millpond.delivery.results import BadRowLog, ResultLog
from millpond.errors import StateError
from millpond.failures import Failure, Failures
from millpond.functions.user_function import UserFunction
from millpond.identities import GroupId, OperatorId, QueryId, QueueId
from millpond.intake.budget import state_bytes, step_bytes
from millpond.intake.inputs import give_up
from millpond.intake.relation_copies import forget_copy, forget_epochs, provide
from millpond.planning.convergence import Merge, settle
from millpond.planning.graph import Addition, Graph
from millpond.planning.physical import LinearOperator, OutputOperator
from millpond.scheduling.strategy_text import DIRECT
from millpond.schema import BEGINNING, Type
from millpond.settings import AUTO, Settings
from millpond.sharing.arrangement import Begun, Failed, GraphKept, GroupFounded, Membership
from millpond.sharing.attachments import bad_rows_entry
from millpond.sharing.closings import Closings
from millpond.sharing.containments import LEAST_ROWS, Containments, Seen, is_seen_through
from millpond.sharing.ground import Ground
from millpond.sharing.groups import Group, Groups
from millpond.sharing.leaving import Leaving
from millpond.sharing.partitioning import Partitioning
from millpond.sharing.planned import QueryPlans, left_aside, planned
from millpond.sharing.relying import Relying
from millpond.sharing.shapes import Shapes
from millpond.sharing.shared_joins import SharedJoins
from millpond.sharing.shared_totals import SharedTotals
from millpond.sharing.sketch import Pass
from millpond.sharing.statement import Saying
from millpond.sharing.templates import Templates
from millpond.sharing.watching import Watching
from millpond.storage.state_cache import StateCache
from millpond.storage.transitions import Transition

if TYPE_CHECKING:
    from millpond.execution.listener import Listener
    from millpond.execution.runtime import EngineRuntime
    from millpond.execution.statistics import Tally
    from millpond.execution.surroundings import Limits


class Queries:
    """Adds queries to the graph and takes them out; starts and stops their operators."""

    def __init__(self, ground: Ground, keeps_results: bool) -> None:
        self.ground = ground
        self.graph = Graph(linear=ground.settings.linear)
        self.outputs: dict[QueryId, OperatorId] = {}
        """The operator that puts each running query out, by the query's name in lower case."""
        self.begins: dict[QueryId, int] = {}
        """When the changes of queries begin that had others before."""
        self.failures = Failures()
        self.groups = Groups()
        """Queries of one shape that run as one."""
        self.relying = Relying(ground, self.graph, self.groups)
        """What constraints of streams free, and for whom."""
        self.closings = Closings(ground, self.graph, self.groups)
        """And punctuations."""
        self.leaving = Leaving(ground, self.graph, self.relying, lambda: self.started)
        """What constraints forbid still that were dropped."""
        self.partitioning = Partitioning(ground, self.graph, self.groups, lambda: self.started)
        """Which threads do the work of whom."""
        self.watching = Watching(ground, self.graph)
        """Of which columns of streams it is seen what could free rows."""
        self.containments = Containments(self.graph, self._seen)
        """Selections of queries that stand alone, of which one may imply another."""
        self.shared_joins = SharedJoins(self.graph, self._tally)
        """Which joins queries share that stand alone."""
        self.shared_totals = SharedTotals(self.graph, self._tally)
        """Which of their counts and sums read totals."""
        self.passes: tuple[Pass, ...] = (self.containments, self.shared_totals, self.shared_joins)
        """What is decided about queries that stand alone, in this order."""
        self._left: list[Group] = []
        """The groups that queries have left just now."""
        self.templates = Templates()
        """What is known of plans like those that were registered."""
        self.keeps_results = keeps_results
        """Whether results are kept once sinks and subscribers have them."""
        ground.deliveries.keeper.keeping = ground.settings.keep_results
        self.started: EngineRuntime | None = None
        """The running operators, once there was anything to run."""
        self.listener: Listener
        """Told what the running operators do."""
        self.statements: Saying
        """Does what statements say."""

    # -- what happens ----------------------------------------------------------------------

    def change(self, decided: list[Transition]) -> None:
        """What was decided is in the log, and then happens; or nothing does."""
        try:
            with self.ground.journal.ahead():
                for each in decided:
                    self.ground.journal.note(each)
        except BaseException:
            give_up(decided)
            raise
        self.apply(decided)
        self.ground.inputs.tell(decided)
        self.purge()

    def apply(self, transitions: Iterable[Transition]) -> None:
        """What is in the log happens, to whatever part of the engine it concerns."""
        for each in transitions:
            each.apply(self._part(each.to))

    def declare(self, entry: QueryEntry) -> None:
        """A query is new in the catalog; it does not run yet."""
        self._add_aside(entry)
        self.ground.deliveries.add(self._log_of(entry))

    def remove(self, key: QueryId) -> None:
        """A query was dropped."""
        self.ground.deliveries.of(key).is_kept = False
        self.stop(key)
        self.failures.forget(key)
        self.ground.deliveries.remove(key)

    def alter(self, changed: QueryEntry) -> None:
        """ALTER has made this of a query."""
        log = self.ground.deliveries.of(changed.name)
        before, log.entry = log.entry, changed
        self._weigh(changed.name, changed.weight)
        has_others = changed.plan is not before.plan and changed.identity in self.outputs
        if has_others or changed.on_error != before.on_error:
            self.ground.deliveries.remove_aside(changed.identity)
            self._add_aside(changed)

    def _weigh(self, name: str, weight: float) -> None:
        group = self.groups.weigh(name, weight)
        if self.started is not None:
            if group is not None:
                name, weight = group.name, group.weight
            self.started.set_weight(name, weight)

    def begin(self, begun: Begun) -> None:
        """A query runs from now on, with other operators if it did already."""
        key, entry = begun.query, self.ground.query_entry(begun.query)
        self.failures.forget(key)
        log = self.ground.deliveries.of(key)
        log.sink_failed = False
        before = self._leave(key, None if begun.member is None else begun.member.group)
        if begun.taken_back is not None:
            self.ground.deliveries.put_out(key, begun.taken_back, begun.taken_at)
        if begun.member is None:
            self._stand_alone(begun, begun.plans or planned(entry, self.templates))
        else:
            self._join(entry, begun.member)
        self.outputs[key] = begun.output
        if begun.aside is not None:
            self.outputs[key.aside] = begun.aside
        if begun.begins is not None:
            self.begins[key] = begun.begins
        self._add(begun.adds)
        group = self.groups.of(key)
        self._weigh_started(entry if group is None else group)
        self._take_out([each for each in before if each not in (begun.output, begun.aside)])

    def _weigh_started(self, each: QueryEntry | Group) -> None:
        if self.started is not None:
            self.started.set_weight(each.name, each.weight)

    def _stand_alone(self, begun: Begun, plans: QueryPlans) -> None:
        for each in self.passes:
            each.begun(begun.query, plans, begun.chosen)
        known = None if begun.is_late is None else plans
        self.groups.stands_alone(begun.query, Shapes(known, begun.epoch, bool(begun.is_late)))

    def chosen(self, key: QueryId) -> dict[str, Any]:
        """What passes have chosen for a query that stands alone."""
        found = {each.name: each.chosen(key) for each in self.passes}
        return {name: choice for name, choice in found.items() if choice}

    @contextmanager
    def without(self, key: QueryId) -> Iterator[None]:
        """Has passes and groups decide as if a query did not stand alone, which is to begin
        anew."""
        if key not in self.outputs or self.groups.of(key) is not None:
            yield
            return
        plans, shapes = planned(self.ground.query_entry(key)), self.groups.how_alone(key)
        chosen = self.chosen(key)
        self._forget(key)
        try:
            yield
        finally:
            for each in self.passes:
                each.begun(key, plans, chosen)
            if shapes is not None:
                self.groups.stands_alone(key, shapes)

    def _forget(self, key: QueryId) -> None:
        """Forgets what is known of a query that stood alone."""
        self.groups.leave(key)
        for each in self.passes:
            each.leave(key)

    def _join(self, entry: QueryEntry, member: Membership) -> None:
        group = self.groups.get(member.group)
        if (
            self.started is not None
            and group is not None
            and group.queries
            and not group.name.is_late
        ):
            self.started.renew(self.graph.upstream(group.output))
        self.ground.deliveries.of(entry.name).join(self.groups.join(entry, member))

    def found(self, founded: GroupFounded) -> None:
        """A group is there from now on."""
        entry = QueryEntry(founded.name, founded.plan)
        log = GroupLog(**vars(self._log_of(entry)))
        self.ground.deliveries.add(log)
        self.groups.found(founded, log)
        self._add(founded.adds)

    def restore(self, kept: GraphKept) -> None:
        """All operators are there again."""
        graph = self.graph
        self._add(kept.whole)
        graph.next_number = kept.next_number
        graph.settled, graph.counting = dict(kept.settled), dict(kept.counting)
        graph.copied = dict(kept.copied)

    def functions(self) -> dict[str, UserFunction]:
        """The functions of the user that are registered."""
        return self.ground.catalog.functions

    def fail(self, failures: list[Failure], error: Exception) -> None:
        """Has queries stand still, for one reason."""
        failed = Failed(tuple(asdict(failure) for failure in failures), error)
        self.ground.journal.note(failed)
        self.apply([failed])
        self.purge()

    def has_failed(self, failures: list[Failure], error: Exception) -> None:
        """Queries have failed, and stand still."""
        self.failures.add(failures, error)
        for failure in failures:
            self.stop(QueryId(failure.query))

    def keep_results(self, keeps: bool) -> None:
        """Whether results are kept from now on, of these queries and of others."""
        self.keeps_results = keeps
        for log in self.ground.deliveries:
            log.is_kept = keeps or isinstance(log, BadRowLog)

    def declare_bad_rows(self, stream: StreamEntry) -> None:
        """A stream is declared: what its source cannot read has a log, if it is put aside."""
        entry = bad_rows_entry(stream)
        if entry is not None:
            tick = self.ground.catalog.tick_microseconds
            self.ground.deliveries.add(BadRowLog(entry, tick, in_timestamps=True))

    def _add_aside(self, entry: QueryEntry) -> None:
        aside = left_aside(entry)
        if aside is not None:
            self.ground.deliveries.add(replace(self._log_of(aside), counts_coming=True))

    def _log_of(self, entry: QueryEntry) -> ResultLog:
        tick = self.ground.catalog.tick_microseconds
        in_timestamps = self._in_timestamps(entry.plan)
        return ResultLog(entry, tick, in_timestamps, is_kept=self.keeps_results)

    def _in_timestamps(self, plan: Node) -> bool:
        """Whether the times of a query's inputs are moments rather than counts."""
        for node in plan.walk():
            if isinstance(node, StreamScan):
                entry = self.ground.catalog.get(node.name)
                if isinstance(entry, StreamEntry) and (
                    entry.timestamp_column is None
                    or entry.schema[entry.timestamp_column].type is Type.TIMESTAMP
                ):
                    return True
        return False

    # -- operators -------------------------------------------------------------------------

    def _seen(self, query: QueryId, selection: LinearOperator) -> Seen | None:
        """What was measured of a selection where a query's operators have it."""
        if self.started is None or query not in self.outputs:
            return None
        for identity in self.graph.upstream(self.outputs[query]):
            if is_seen_through(self.graph.operators[identity], selection):
                tally = self.started.statistics[identity].tally
                if tally.rows_taken >= LEAST_ROWS:
                    return Seen(tally.rows_out / tally.rows_taken, tally.rows_in / tally.steps)
        return None

    def _tally(self, identity: OperatorId) -> Tally | None:
        """What was measured of an operator."""
        if self.started is None or identity not in self.started.statistics:
            return None
        return self.started.statistics[identity].tally

    def has_moved(self, key: QueryId) -> bool:
        """Whether a query that stands alone, or an operator of it, has come to any time."""
        if self.started is None:
            return False
        running = self.started.running
        return any(
            running[each].cursor >= BEGINNING for each in self.graph.upstream(self.outputs[key])
        )

    def _add(self, added: Addition) -> None:
        """Operators come to the graph, and start."""
        self.graph.add(added)
        inputs, converges = self.ground.inputs, self.ground.settings.sharing != "off"
        identities = [each.identity for each in added.operators]
        self.watching.added(identities)
        for each in added.operators:
            provide(inputs, each.operator.queues())
            if converges:
                settle(self.graph, each.identity, inputs.epochs.since_of(each.epoch))
        if self.started is not None:
            self._start_operators(self.started, identities)

    def stop(self, key: QueryId) -> None:
        """A query stands still."""
        self._take_out(self._leave(key))

    def _leave(self, key: QueryId, comes_to: GroupId | None = None) -> list[OperatorId]:
        """Forgets how a query runs; the operators that nobody else needs to be put out.

        The group that it ``comes_to`` stays, if it is the one that is left.
        """
        outputs = [self.outputs.pop(key, None), self.outputs.pop(key.aside, None)]
        self.begins.pop(key, None)
        group = self.groups.of(key)
        if group is None:
            self._forget(key)
        else:
            self.ground.deliveries.of(key).leave()
            left = self.groups.leave(key, comes_to)
            if left is None:
                self._weigh_started(group)
                self._left.append(group)
                return []
            self.ground.deliveries.remove(left.name)
            left.members.close(self.ground.store)
        return [output for output in outputs if output is not None]

    def _take_out(self, outputs: list[OperatorId]) -> None:
        """Removes operators that put queries out, with all that nobody else reads."""
        removed = [each for output in outputs for each in self.graph.remove(output)]
        if not removed:
            return
        self.watching.removed(removed)
        if self.started is not None:
            self.started.stop([each for each in removed if each in self.started.running])
        inputs, in_use = self.ground.inputs, set(self.graph.epochs.values())
        self.forget_queues(forget_epochs(inputs, in_use))
        copies = [queue.name for each in inputs.relations.values() for queue in each.queues[1:]]
        for copy in [name for name in copies if not self.graph.readers(name)]:
            forget_copy(inputs, copy)  # who reads it next has it filled
            self.forget_queues([copy])

    def merged(self, merge: Merge) -> None:
        """Lets a copy of a relation go when its readers read another queue."""
        if merge.queue.is_copy:
            forget_copy(self.ground.inputs, merge.queue)
            self.forget_queues([merge.queue])

    def purge(self) -> None:
        """Frees what is kept for queries of groups that are gone, where that is enough."""
        left, self._left = self._left, []
        for group in left:
            if self.started is not None and group.is_to_purge and group.queries:
                group.left = 0
                self.started.purge(group.output, group.living)

    def purge_again(self) -> None:
        """After a restart rows of queries that are gone may come whose state is gone already."""
        self._left = []
        for group in self.groups:
            group.left = group.next_number - len(group.queries)
            if group.left and self.started is not None:
                group.left = 0
                self.started.purge(group.output, group.living)

    def forget_queues(self, names: Iterable[QueueId]) -> None:
        """Queues of inputs are gone."""
        if self.started is not None:
            for name in names:
                self.started.backlog.forget(name)

    @property
    def has_runtime(self) -> bool:
        """Whether operators run already, or were taken up from a store."""
        return self.started is not None

    @property
    def runtime(self) -> EngineRuntime:
        """The running operators, started now if they were not yet."""
        if self.started is not None:
            return self.started
        with self.ground.lock:
            if self.started is None:  # else another thread was quicker
                runtime = self._start()
                runtime.picture.told = self.groups.told
                self._start_operators(runtime, self.graph.operators)
                for entry in self.ground.catalog.of_kind(QueryEntry):
                    runtime.set_weight(entry.name, entry.weight)
                for group in self.groups:
                    runtime.set_weight(group.name, group.weight)
                self.started = runtime
                self.partitioning.tell()
            return self.started

    def _start(self) -> EngineRuntime:
        from millpond.execution.driver import DriverExecutor
        from millpond.execution.executor import Executors
        from millpond.execution.runtime import EngineRuntime
        from millpond.execution.surroundings import Limits, Surroundings
        from millpond.spark.executor import SparkExecutor

        ground = self.ground
        cores = ground.lazy_spark.cores(ground.settings, ground.store)
        limits = Limits(seed=ground.settings.seed, cores=cores)
        _set(limits, ground.settings)
        spark = SparkExecutor(
            lambda: ground.spark, ground.store, limits, lambda: ground.lazy_spark.is_started
        )
        states = StateCache(state_bytes(ground.settings.budget_bytes))
        around = Surroundings(
            ground.inputs.queues,
            ground.store,
            limits,
            states,
            spark,
            self.groups.members,
            freeing=self.relying.freeings,
            closing=self.closings.closings,
        )
        executors = Executors(DriverExecutor(limits, spark), spark)
        runtime = EngineRuntime(self.graph, around, executors, self.listener, ground.lock)
        runtime.hold_states(state_bytes(ground.settings.budget_bytes))
        ground.store.worker_state_bytes = state_bytes(ground.settings.budget_bytes, limits.buckets)
        return runtime

    def _start_operators(self, runtime: EngineRuntime, identities: Iterable[OperatorId]) -> None:
        runtime.start(identities, self.ground.inputs.epochs.since, BEGINNING - 1)

    def _part(self, name: str) -> object:
        """The part of the engine that transitions change which name it."""
        ground = self.ground
        match name:
            case "inputs":
                return ground.inputs
            case "deliveries":
                return ground.deliveries
            case "logs":
                return ground
            case "store":
                return ground.store
            case "statements":
                return self.statements
            case _:
                return self

    def use(self, settings: Settings) -> None:
        """Tells operators that run or will run the settings that may change at any time."""
        self.graph.linear = settings.linear
        self.watching.watch()
        self.ground.deliveries.keeper.keeping = settings.keep_results
        if self.started is not None:
            _set(self.started.limits, settings)

    def place_queue(self, operator: str, has_queue: bool) -> None:
        """Has a queue stand behind an operator, or none, whatever a strategy wants."""
        self.runtime.placement = self.runtime.placement.say(OperatorId(operator), has_queue)

    def refuse_placing(self, operator: str) -> None:
        """Refuses to place a queue behind an operator that is not there."""
        found, is_part = OperatorId.written(operator), self.runtime.cutting.cuts.is_part
        if found is None or (found not in self.graph.operators and not is_part(found)):
            known = ", ".join(self.graph.operators) or "none"
            raise StateError(f'no operator "{operator}"; EXPLAIN PHYSICAL names them: {known}')

    # -- which there are -------------------------------------------------------------------

    def epoch_of(self, query: str) -> int | None:
        """The epoch of the operators that a query runs with: of a late group's queries not their
        own, whose times the group knows."""
        output = self.outputs.get(QueryId(query))
        return None if output is None else self.graph.epochs[output]

    def log_of_output(self, identity: OperatorId) -> ResultLog | None:
        """The log of what an operator puts out, if that is what it does."""
        operator = self.graph.operators[identity]
        if not isinstance(operator, OutputOperator):
            return None
        return self.ground.deliveries.of(operator.query)

    def output_of(self, query: str) -> OperatorId:
        """The operator that puts a query out; raises if none runs."""
        output = self.outputs.get(QueryId(query))
        if output is None or self.started is None or output not in self.started.running:
            raise StateError(
                f'query "{query}" does not run, so nothing was measured of it; register it with '
                "CREATE QUERY, feed it, and ask again"
            )
        return output


def _set(limits: Limits, settings: Settings) -> None:
    limits.step_rows = settings.step_rows
    limits.driver_rows = settings.driver_rows
    limits.by_cost = settings.place_by == "cost"
    limits.asks_spark = settings.small_steps == "spark"
    limits.buckets, limits.divides_few = settings.tasks or limits.cores, settings.tasks > 0
    limits.residents = None if settings.residents == AUTO else int(settings.residents)
    limits.processors = settings.processors or limits.cores
    limits.at_once = settings.mode == DIRECT
    limits.slice_seconds = settings.slice_seconds
    limits.step_bytes = step_bytes(settings.budget_bytes, limits.processors)
