"""The queries that run: their operators in the graph and on Spark, and why some stand still.

Whoever calls holds the engine's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

from millpond.catalog import Declaration, QueryEntry, StreamEntry
from millpond.connectors.sinks import NamedSink
from millpond.cql.algebra import Aggregate, StreamScan
from millpond.cql.node import Node
from millpond.delivery.group_results import GroupLog
from millpond.delivery.results import ResultLog
from millpond.errors import StateError
from millpond.failures import Failure, Failures
from millpond.identities import aside_of, is_copy
from millpond.intake.budget import state_bytes, step_bytes
from millpond.planning.containment import contain
from millpond.planning.convergence import Merge, settle
from millpond.planning.nodes import Totals
from millpond.planning.physical import Graph, LinearOperator, OutputOperator
from millpond.planning.shapes import Lifted
from millpond.planning.totals import sum_up
from millpond.schema import BEGINNING, Type
from millpond.settings import Settings
from millpond.sharing.arrangement import Arrangement
from millpond.sharing.beginning_anew import (
    Renewal,
    Succession,
    begins_again,
    holds_answer,
    taken_back,
)
from millpond.sharing.choices import Choices
from millpond.sharing.containments import (
    LEAST_ROWS,
    Chosen,
    Containments,
    Finding,
    Seen,
    chosen_again,
    is_seen_through,
    what_is_read,
)
from millpond.sharing.ground import Ground
from millpond.sharing.groups import Group, Groups, Membership, Shapes, is_of_late
from millpond.sharing.planned import QueryPlans, planned
from millpond.sharing.shared_joins import Choice, Numbers, SharedJoins, joins_again
from millpond.sharing.shared_totals import SharedTotals, summed_again
from millpond.sharing.templates import Templates
from millpond.storage.pages import Page
from millpond.storage.state_cache import StateCache

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
        self.outputs: dict[str, str] = {}
        """The operator that puts each running query out, by the query's name in lower case."""
        self.begins: dict[str, int] = {}
        """When the changes of queries begin that had others before."""
        self.begun: list[str] = []
        """The operators that the present statement has added."""
        self.failures = Failures()
        self.groups = Groups()
        """Queries of one shape that run as one."""
        self.containments = Containments(self.graph, self._seen)
        """Selections of queries that stand alone, of which one may imply another."""
        self.choices = Choices()
        """What was chosen for queries that the present statement has begun; while what an earlier
        run did is done again, what is to be chosen."""
        self.shared_joins = SharedJoins(self.graph, self._tally)
        """Which joins queries share that stand alone."""
        self.shared_totals = SharedTotals(self.graph, self._tally)
        """Which of their counts and sums read totals."""
        self.templates = Templates()
        """What is known of plans like those that were registered."""
        self.keeps_results = keeps_results
        """Whether results are kept once sinks and subscribers have them."""
        ground.deliveries.keeper.keeping = ground.settings.keep_results
        self.started: EngineRuntime | None = None
        """The running operators, once there was anything to run."""
        self.listener: Listener
        """Told what the running operators do."""

    # -- registering -----------------------------------------------------------------------

    def add(self, entry: QueryEntry, plans: QueryPlans, sink: NamedSink | None) -> None:
        """A query is new in the catalog: it runs from now on, unless it is not active."""
        deliveries = self.ground.deliveries
        self._add_aside(plans)
        deliveries.add(self._log_of(entry, sink))
        if entry.active and entry.begins is not None:
            epoch = self.ground.inputs.epoch_from(entry.begins)
            self._stand_alone(entry, plans, Shapes(None, epoch))  # others are further already
        elif entry.active:
            self._activate(entry, plans, self.ground.inputs.epoch())

    def register_again(
        self,
        entry: QueryEntry,
        declared: Declaration,
        epoch: int | None,
        member: Membership | None,
        is_late_alone: bool | None,
        choices: Choices,
        begins: int | None,
    ) -> None:
        """Registers a query of an earlier run as it was; without an epoch it does not run.

        Which groups it may belong to was judged by how far inputs were when it began.
        """
        if begins is not None:
            self.begins[entry.name.lower()] = begins
        self.ground.catalog.add(entry)
        self.ground.memory.declare(declared)
        plans = planned(entry, self.templates)
        self.add(replace(entry, active=False), plans, None)
        self.ground.deliveries.of(entry.name).entry = entry
        if epoch is not None and member is not None:
            self._join_again(entry, plans, epoch, member)
        elif epoch is not None:
            self.choices = choices
            known = None if is_late_alone is None else plans
            shapes = Shapes(known, epoch, bool(is_late_alone))
            self._stand_alone(entry, plans, shapes, self._choose(entry, plans))

    def remove(self, key: str) -> None:
        """A query was dropped."""
        self.ground.deliveries.of(key).is_kept = False
        self._deactivate(key)
        self.failures.forget(key)
        self.ground.deliveries.remove(key)

    def restart(self, entry: QueryEntry) -> None:
        """Runs a query that has failed again, from now on."""
        log = self.ground.deliveries.of(entry.name.lower())
        had_failed, log.sink_failed = log.sink_failed, False
        try:
            self._activate_again(entry)
        except BaseException:
            log.sink_failed = had_failed
            raise
        self.failures.forget(entry.name)

    def alter(self, entry: QueryEntry, changed: QueryEntry, restarts: bool) -> None:
        """ALTER has made one entry of another; ``restarts``: it was to run, also if it failed."""
        key = changed.name.lower()
        self.ground.deliveries.of(key).entry = changed
        group = self.groups.weigh(changed.name, changed.weight)
        if self.started is not None and group is not None:
            self.started.set_weight(group.name, group.weight)
        elif self.started is not None:
            self.started.set_weight(changed.name, changed.weight)
        if entry.active and not changed.active:
            self._deactivate(key)
        elif restarts and self.failures.of(changed.name) is not None:
            self.restart(changed)
        elif changed.active and not entry.active:
            self._activate_again(changed)

    def succeed(self, changed: QueryEntry, way: Succession) -> None:
        """ALTER has given a query another policy: it goes on in this way."""
        key, epoch, inputs = changed.name.lower(), self.epoch_of(changed.name), self.ground.inputs
        begun = self.begins.get(key)
        with inputs.holding(way.since or {}):
            if way.has_others:
                self._deactivate(key)
            self.ground.deliveries.remove_aside(key)
            self._add_aside(way.plans)
            if begun is not None:
                self.begins[key] = begun
            if way.since is not None:
                self._stand_alone(changed, way.plans, Shapes(None, inputs.epoch_after(way.since)))
            elif way.has_others and epoch is not None and begun is not None:
                self._stand_alone(changed, way.plans, Shapes(None, epoch))
            elif way.has_others and epoch is not None:
                self._activate(changed, way.plans, epoch)

    def begin_anew(self, changed: QueryEntry, anew: Renewal) -> None:
        """ALTER has given a query a window of another length: it ends, and begins anew."""
        key, inputs = changed.name.lower(), self.ground.inputs
        begun = self.begins.get(key, BEGINNING - 1)
        with inputs.holding(anew.since):
            self._deactivate(key)
            self.ground.deliveries.remove_aside(key)
            self._add_aside(anew.plans)
            if anew.epoch is not None and begun < BEGINNING:
                self._activate(changed, anew.plans, anew.epoch)
            else:
                self._begin_at(changed, anew, max(begun, anew.answered))

    def _activate_again(self, entry: QueryEntry) -> None:
        """Has a query run that stood still: what its answer held is taken out, and it begins."""
        key, ground = entry.name.lower(), self.ground
        plans = planned(entry, self.templates)
        if not ground.journal.is_replaying and holds_answer(ground, entry):
            self.choices.begins[key] = begins_again(ground, entry)
        at = self.choices.begins.get(key)
        if at is None:
            self._activate(entry, plans, ground.inputs.epoch())
        else:
            self._begin_at(entry, Renewal(plans, None, {}, at), at)

    def _begin_at(self, changed: QueryEntry, anew: Renewal, at: int) -> None:
        """Has a query begin anew whose answer up to a time is known."""
        key, inputs = changed.name.lower(), self.ground.inputs
        is_now, is_stream = anew.is_now(self.ground), changed.plan.is_stream
        if not is_stream:
            self._take_back(key, at)
        epoch = inputs.epoch() if is_now else inputs.epoch_after(anew.since)
        shapes = self._shapes(anew.plans, epoch)
        name = self.groups.choose(shapes, self.ground.settings.sharing) if is_now else None
        if name is not None and is_of_late(name):  # nothing is there before it begins
            self._bring_along(name, epoch)
            self._join_from(changed, anew.plans, name, shapes)
            return
        if not is_stream:
            self.begins[key] = at
        self._stand_alone(changed, anew.plans, Shapes(None, epoch))

    def _take_back(self, key: str, at: int) -> None:
        """Takes out what the answer of a query holds that is about to begin anew."""
        ground = self.ground
        if ground.journal.is_replaying:
            return  # the log says what it was
        table = taken_back(ground.deliveries.of(key), at)
        if table is not None:
            page = Page.of(ground.store, table)
            if ground.journal.is_durable:
                ground.journal.note("taken_back", query=key, page=page, at=at)
            ground.deliveries.put_out(key, page, at)

    def fail(self, failures: list[Failure], error: Exception) -> None:
        """Has queries stand still, for one reason."""
        self.ground.journal.note("failed", failures=[asdict(failure) for failure in failures])
        self.failures.add(failures, error)
        for failure in failures:
            self._deactivate(failure.query.lower())

    def keep_results(self, keeps: bool) -> None:
        """Whether results are kept from now on, of these queries and of others."""
        self.keeps_results = keeps
        for log in self.ground.deliveries:
            log.is_kept = keeps

    def _add_aside(self, plans: QueryPlans) -> None:
        if plans.aside is not None:
            log = replace(self._log_of(plans.aside, None), counts_coming=True)
            self.ground.deliveries.add(log)

    def _log_of(self, entry: QueryEntry, sink: NamedSink | None) -> ResultLog:
        tick = self.ground.catalog.tick_microseconds
        return ResultLog(entry, tick, self._in_timestamps(entry.plan), sink, self.keeps_results)

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

    def _activate(self, entry: QueryEntry, plans: QueryPlans, epoch: int) -> None:
        """Has a query run, with others of its shape or by itself."""
        shapes = self._shapes(plans, epoch)
        name = self.groups.choose(shapes, self.ground.settings.sharing)
        if name is None:
            self._stand_alone(entry, plans, shapes, self._choose(entry, plans))
        else:
            self._bring_along(name, epoch)
            self._join_from(entry, plans, name, shapes)

    def _choose(self, entry: QueryEntry, plans: QueryPlans) -> Chosen:
        """What other selections let through that those of a query read."""
        key = entry.name.lower()
        if self.ground.journal.is_replaying:
            return chosen_again(plans.optimised, self.choices.contained.get(key, []))
        return what_is_read(self.contained(entry, plans.optimised))

    def contained(self, entry: QueryEntry, plan: Node) -> list[Finding]:
        """What selections of a query that begins now are implied by selections that run.

        What ON ERROR SKIP leaves out is told of the rows that a query reads.
        """
        if entry.on_error == "skip" or entry.begins is not None:
            return []
        return self.containments.find(plan, self.ground.settings.sharing)

    def _seen(self, query: str, selection: LinearOperator) -> Seen | None:
        """What was measured of a selection where a query's operators have it."""
        if self.started is None or query not in self.outputs:
            return None
        for identity in self.graph.upstream(self.outputs[query]):
            if is_seen_through(self.graph.operators[identity], selection):
                tally = self.started.statistics[identity].tally
                if tally.rows_taken >= LEAST_ROWS:
                    return Seen(tally.rows_out / tally.rows_taken, tally.rows_in / tally.steps)
        return None

    def _tally(self, identity: str) -> Tally | None:
        """What was measured of an operator."""
        if self.started is None or identity not in self.started.statistics:
            return None
        return self.started.statistics[identity].tally

    def arranged(
        self,
        entry: QueryEntry,
        plan: Node,
        contained: Chosen,
        totals: frozenset[Totals] = frozenset(),
    ) -> Arrangement:
        """How a query that begins now runs by itself; ``totals``: another one reads these, and so
        does it."""
        unsummed, apart = contain(plan, contained)
        sums = self._sums(entry, unsummed, totals)
        summed = sum_up(unsummed, sums)
        joins = self._joins(entry.name.lower(), summed)
        return Arrangement(summed, contained, apart, unsummed, sums, joins)

    def _joins(self, key: str, plan: Node) -> Choice:
        """Which joins a query that begins now shares with others."""
        if self.ground.journal.is_replaying:
            return joins_again(plan, self.choices.joined.get(key, {}))
        return self.shared_joins.choose(plan, self.ground.settings.sharing)

    def _sums(
        self, entry: QueryEntry, plan: Node, totals: frozenset[Totals]
    ) -> dict[Aggregate, Totals]:
        """Which counts and sums of a query that begins now read totals; these it reads anyway."""
        if self.ground.journal.is_replaying:
            return summed_again(plan, self.choices.summed.get(entry.name.lower(), []))
        if entry.on_error == "skip":
            return {}
        return self.shared_totals.choose(plan, self.ground.settings.sharing, totals)

    def _bring_to(self, totals: frozenset[Totals], epoch: int) -> None:
        """Has others that began with a query read the totals that it reads, where nobody can tell:
        they have put out nothing."""
        is_replaying = self.ground.journal.is_replaying
        for key in self.shared_totals.could_read(totals, epoch):
            shapes = self.groups.how_alone(key)
            if shapes is None or shapes.epoch != epoch:
                continue
            is_brought = key in self.choices.summed if is_replaying else not self._has_moved(key)
            if not is_brought:
                continue
            entry, output = self.ground.query_entry(key), self.outputs[key]
            plans = planned(entry, self.templates)
            chosen = chosen_again(plans.optimised, self.containments.data(key))
            self._stand_no_more(key)
            self._stand_alone(entry, plans, shapes, chosen, totals)
            self._take_out([output])

    def _bring_along(self, name: str, epoch: int) -> None:
        """Has queries that stood alone belong to a group that is about to be founded, where nobody
        can tell: they began with its operators and have put out nothing."""
        if self.groups.get(name) is not None:
            return
        for key, shapes in self.groups.alone(name, epoch).items():
            entry = self.ground.query_entry(key)
            if not self._has_moved(key):
                output = self.outputs[key]
                self._stand_no_more(key)
                self._join_from(entry, planned(entry, self.templates), name, shapes)
                self._take_out([output])

    def _stand_no_more(self, key: str) -> None:
        """Forgets what is known of a query that stood alone."""
        self.groups.leave(key)
        self.containments.leave(key)
        self.shared_totals.leave(key)

    def _has_moved(self, key: str) -> bool:
        """Whether a query that stands alone, or an operator of it, has come to any time."""
        if self.started is None:
            return False
        running = self.started.running
        return any(
            running[each].cursor >= BEGINNING for each in self.graph.upstream(self.outputs[key])
        )

    def _join_from(self, entry: QueryEntry, plans: QueryPlans, name: str, shapes: Shapes) -> None:
        since = self.ground.inputs.since.get(shapes.epoch, {})
        self._join(entry, plans, name, shapes.lifted(name), shapes.epoch, since)

    def _shapes(self, plans: QueryPlans, epoch: int) -> Shapes:
        """The shapes of a query: none with ON ERROR SKIP, as what it leaves out is its own."""
        if plans.aside is not None:
            return Shapes(None, epoch)
        return self.groups.shapes(plans, epoch, self.ground.inputs)

    def _stand_alone(
        self,
        entry: QueryEntry,
        plans: QueryPlans,
        shapes: Shapes,
        chosen: Chosen | None = None,
        totals: frozenset[Totals] = frozenset(),
    ) -> None:
        """Has a query run by itself; ``totals``: another one reads these, and so does it."""
        key, epoch = entry.name.lower(), shapes.epoch
        made = self.arranged(entry, plans.optimised, chosen or {}, totals)
        self.shared_totals.add(key, made.unsummed, made.sums)
        joined = made.joins
        output = self.graph.add_query(
            entry.name,
            made.plan,
            epoch,
            apart=made.apart,
            numbers=joined.numbers,
            begins=self.begins.get(key),
        )
        self.outputs[key] = output
        self.containments.add(key, plans.optimised, made.contained)
        if made.contained:
            self.choices.contained[key] = self.containments.data(key)
        if joined.data:
            self.choices.joined[key] = joined.data
        if made.sums:
            self.choices.summed[key] = self.shared_totals.data(key)
        if plans.aside is not None and plans.optimised_aside is not None:
            output = self.graph.add_query(
                plans.aside.name, plans.optimised_aside, epoch, numbers=joined.numbers
            )
            self.outputs[plans.aside.name.lower()] = output
        self.groups.stands_alone(key, shapes)
        self._begin(entry.name, entry.weight)
        self._bring_to(frozenset(made.sums.values()) - totals, epoch)

    def _begin(self, name: str, weight: float) -> None:
        """Starts the operators that were added for a query or a group."""
        added = self.graph.take_added()
        self.begun += added
        inputs, converges = self.ground.inputs, self.ground.settings.sharing != "off"
        for identity in added:
            inputs.provide(self.graph.operators[identity].queues())
            if converges:
                settle(self.graph, identity, inputs.since_of(self.graph.epochs[identity]))
        if self.started is not None:
            self._start_operators(self.started, added)
            self.started.set_weight(name, weight)

    def _join(
        self,
        entry: QueryEntry,
        plans: QueryPlans,
        name: str,
        lifted: Lifted,
        epoch: int,
        since: dict[str, int],
        number: int | None = None,
    ) -> Group:
        group = self.groups.get(name)
        if group is None:
            lifted = self.groups.lifted_for(name, plans)  # told in its own words
            told = replace(entry, name=name, plan=lifted.plan, sink=None, text="")
            log = GroupLog(**vars(self._log_of(told, None)))
            self.ground.deliveries.add(log)
            output = partial(self.graph.add_query, name, lifted.plan, epoch)
            group = self.groups.found(name, plans.optimised, lifted, epoch, log, output)
        elif self.started is not None and not group.is_late:
            self.started.renew(self.graph.upstream(group.output))
        part = self.groups.join(group, entry, lifted, since, number)
        self.ground.deliveries.of(entry.name).join(part)
        self.outputs[entry.name.lower()] = group.output
        self._begin(name, group.weight)
        return group

    def _join_again(
        self, entry: QueryEntry, plans: QueryPlans, epoch: int, member: Membership
    ) -> None:
        name = member["group"]
        known = plans.shaped and (plans.shaped.late if is_of_late(name) else plans.shaped.usual)
        lifted = known or self.groups.lifted_for(name, plans)
        group = self._join(entry, plans, name, lifted, epoch, member["since"], member["number"])
        group.next_number = member["next"]

    def _deactivate(self, key: str) -> None:
        outputs = [self.outputs.pop(key, None), self.outputs.pop(aside_of(key), None)]
        self.containments.leave(key)
        self.shared_totals.leave(key)
        self.begins.pop(key, None)
        group = self.groups.of(key)
        if group is not None:
            self.ground.deliveries.of(key).leave()
            left = self.groups.leave(key)
            if left is None:
                if self.started is not None:
                    self.started.set_weight(group.name, group.weight)
                self._purge(group)
                return
            self.ground.deliveries.remove(left.name)
            left.members.close(self.ground.store)
        else:
            self.groups.leave(key)
        self._take_out([output for output in outputs if output is not None])

    def _take_out(self, outputs: list[str]) -> None:
        """Removes operators that put queries out, with all that nobody else reads."""
        removed = [each for output in outputs for each in self.graph.remove(output)]
        if not removed:
            return
        if self.started is not None:
            self.started.stop([each for each in removed if each in self.started.running])
        inputs, in_use = self.ground.inputs, set(self.graph.epochs.values())
        self.forget_queues(inputs.forget_epochs(in_use))
        copies = [queue.name for each in inputs.relations.values() for queue in each.queues[1:]]
        for copy in [name for name in copies if not self.graph.readers(name)]:
            inputs.forget_copy(copy)  # who reads it next has it filled
            self.forget_queues([copy])

    def merged(self, merge: Merge) -> None:
        """Lets a copy of a relation go when its readers read another queue."""
        if is_copy(merge.queue):
            self.ground.inputs.forget_copy(merge.queue)
            self.forget_queues([merge.queue])

    def _purge(self, group: Group) -> None:
        """Frees what is kept for queries of a group that are gone, when that is enough."""
        if self.started is None or self.ground.journal.is_replaying or not group.is_to_purge:
            return
        group.left = 0
        self.started.purge(group.output, group.living)

    def purge_again(self) -> None:
        """After a restart rows of queries that are gone may come whose state is gone already."""
        for group in self.groups:
            group.left = group.next_number - len(group.queries)
            if group.left and self.started is not None:
                group.left = 0
                self.started.purge(group.output, group.living)

    def forget_queues(self, names: Iterable[str]) -> None:
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
            ground.inputs.queues, ground.store, limits, states, spark, self.groups.members
        )
        executors = Executors(DriverExecutor(limits, spark), spark)
        runtime = EngineRuntime(self.graph, around, executors, self.listener, ground.lock)
        runtime.hold_states(state_bytes(ground.settings.budget_bytes))
        ground.store.worker_state_bytes = state_bytes(ground.settings.budget_bytes, limits.buckets)
        return runtime

    def _start_operators(self, runtime: EngineRuntime, identities: Iterable[str]) -> None:
        runtime.start(identities, self.ground.inputs.since, BEGINNING - 1)

    def use(self, settings: Settings) -> None:
        """Tells operators that run or will run the settings that may change at any time."""
        self.graph.linear = settings.linear
        self.ground.deliveries.keeper.keeping = settings.keep_results
        if self.started is not None:
            _set(self.started.limits, settings)

    def place_queues(self, operator: str, has_queue: bool) -> None:
        """Has a queue stand behind an operator, or none, whatever a strategy wants."""
        self.placing(operator, has_queue)()

    def placing(self, operator: str, has_queue: bool) -> Callable[[], None]:
        """What puts or removes the queue behind an operator; an unknown operator is refused."""
        runtime = self.runtime
        if operator not in self.graph.operators and not runtime.cutting.cuts.is_part(operator):
            known = ", ".join(self.graph.operators) or "none"
            raise StateError(f'no operator "{operator}"; EXPLAIN PHYSICAL names them: {known}')

        def place() -> None:
            runtime.placement = runtime.placement.say(operator, has_queue)
            if not self.ground.journal.is_replaying:
                runtime.move_queues()

        return place

    # -- which there are -------------------------------------------------------------------

    def epoch_of(self, query: str) -> int | None:
        """When a query began that runs."""
        output = self.outputs.get(query.lower())
        return None if output is None else self.graph.epochs[output]

    def numbers_of(self, query: str) -> Numbers:
        """The numbers of the joins of a query that runs, where they are not 0, as those of groups
        are."""
        output = self.outputs.get(query.lower())
        if output is None or self.groups.of(query) is not None:
            return {}
        return Choice(self.graph.joins_in(output), []).data

    def log_of_output(self, identity: str) -> ResultLog | None:
        """The log of what an operator puts out, if that is what it does."""
        operator = self.graph.operators[identity]
        if not isinstance(operator, OutputOperator):
            return None
        return self.ground.deliveries.of(operator.query)

    def output_of(self, query: str) -> str:
        """The operator that puts a query out; raises if none runs."""
        output = self.outputs.get(query.lower())
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
    limits.processors = settings.processors or limits.cores
    limits.step_bytes = step_bytes(settings.budget_bytes, limits.processors)
