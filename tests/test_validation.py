"""`validate()`: an engine agrees with itself, and says where it does not."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from millpond import Engine
from millpond.catalog import Declaration, ViewEntry
from millpond.cql.algebra import Filter
from millpond.cql.expressions import Literal
from millpond.delivery.group_results import GroupLog, SliceOfPage
from millpond.errors import InvariantError, Position
from millpond.failures import Failure
from millpond.identities import BY_NUMBER, OperatorId, QueryId, QueueId
from millpond.planning.physical import JoinOperator, MatchOperator, TotalsOperator
from millpond.schema import FOREVER, Type
from millpond.sharing import containments, queries
from millpond.storage.backlog import Amount
from millpond.storage.journal import Journal
from millpond.storage.log import LogEnd
from millpond.storage.readers import Reader
from tests.copied_process import complaint_of_copy
from tests.crashing import die
from tests.patience import wait_until

DDL = (
    "CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;"
    "CREATE STREAM T (ts BIGINT, k INT) TIMESTAMP BY ts DELAY 1;"
    "CREATE RELATION R (k INT, name STRING);"
    "INSERT INTO R VALUES (0, 'a'), (1, 'b'), (2, 'c');"
    "CREATE VIEW V AS SELECT k, v FROM S WHERE v > 2;"
)
QUERIES = {
    "few": "SELECT ts, k FROM S WHERE v > 90",
    "group1": "SELECT k, count(*) AS n FROM S [RANGE 5] WHERE v > 1 GROUP BY k",
    "group2": "SELECT k, count(*) AS n FROM S [RANGE 5] WHERE v > 2 GROUP BY k",
    **{f"sum{n}": f"SELECT sum(v) AS s FROM S [RANGE {n}]" for n in (2, 5, 9, 20)},
    "joined": "SELECT S.k, name FROM S [RANGE 4], R WHERE S.k = R.k",
    "rows": "SELECT max(v) AS m FROM V [ROWS 4]",
    "of_relation": "SELECT name FROM R WHERE k > 0",
    "two": "ISTREAM (SELECT S.v FROM S [RANGE 6], T [RANGE 6] WHERE S.k = T.k)",
}
LATE = {
    "contained": "SELECT max(v) AS m FROM S [RANGE 9] WHERE v > 92 AND k = 3",
    "group3": "SELECT k, count(*) AS n FROM S [RANGE 5] WHERE v > 3 GROUP BY k",
    "group4": "SELECT k, count(*) AS n FROM S [RANGE 5] WHERE v > 4 GROUP BY k",
}
FRESH = {"fresh": "SELECT S.v, name FROM S [RANGE 4], R WHERE S.k = R.k"}
SKIPPING = "CREATE QUERY skipping ON ERROR SKIP AS SELECT 9223372036854775800 + v AS x FROM S"


@pytest.fixture(autouse=True)
def _small_steps_are_large(monkeypatch):
    let_small_steps_count(monkeypatch)


def let_small_steps_count(monkeypatch):
    """Has what is measured in a test count."""
    monkeypatch.setattr(containments, "LARGE_STEP", 10)
    monkeypatch.setattr(queries, "LEAST_ROWS", 10)


def register(engine, queries):
    for name, text in queries.items():
        engine.execute(f"CREATE QUERY {name} AS {text}")


def page(engine, number, rows=40):
    start = number * 10
    engine.push("S", [(start + i // 4, i % 4, i * 7 % 100) for i in range(rows)])
    engine.push("T", [(start + i // 4, i % 3) for i in range(rows)])
    engine.push("T", [(0, 0), (start, 1)] if number else [])
    engine.run_until_idle()


def busy(engine):
    """Has an engine run queries of all kinds, of which some come while data flows."""
    engine.execute(DDL)
    register(engine, QUERIES)
    engine.execute(SKIPPING)
    engine.subscribe("joined", lambda table: None)
    for number in range(2):
        page(engine, number)
    register(engine, LATE)
    page(engine, 2)
    register(engine, FRESH)
    engine.validate()
    return engine


@pytest.fixture(scope="module")
def healthy():
    """An engine for all tests that leave it as it is; who breaks it does so in a copy."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        let_small_steps_count(monkeypatch)
        engine = busy(Engine())
    with engine:
        yield engine


@pytest.fixture
def engine():
    """A healthy one of its own; what a test breaks of it may keep it from being closed."""
    engine = busy(Engine())
    yield engine
    with contextlib.suppress(Exception):
        engine.close()


@pytest.fixture
def durable(tmp_path):
    """The same on a store that lasts."""
    engine = busy(Engine(store=tmp_path / "store"))
    yield engine
    with contextlib.suppress(Exception):
        engine.close()


# -- an engine that is well ----------------------------------------------------------------------


def test_the_engine_of_these_tests_has_all_there_is_to_look_at(healthy):
    operators = healthy.graph.operators.values()
    for kind in (JoinOperator, MatchOperator, TotalsOperator):
        assert any(isinstance(each, kind) for each in operators), kind
    assert any(use.chosen for use in healthy.queries.containments._uses.values())
    assert any(use.chosen for use in healthy.queries.shared_totals._uses.values())
    assert any(len(group.queries) > 1 for group in healthy.queries.groups)
    assert any(group.name.is_late for group in healthy.queries.groups)
    assert healthy.inputs.relations["r"].queues[1:]
    assert healthy.inputs.streams["t"].late_count
    assert healthy.left_out_count("skipping")


def lives(make):
    """Does all kinds of things to engines that validate themselves, with deaths where it can."""
    engine = busy(make(None))
    engine.execute("ALTER QUERY joined SET WEIGHT 3; ALTER QUERY group1 INACTIVE")
    engine.execute("INSERT INTO R VALUES (3, 'd'); DELETE FROM R WHERE k = 0")
    engine.execute("ALTER QUERY sum5 SET WINDOW OF S = RANGE 7; ALTER STREAM T DELAY 5")
    engine = make(engine)
    page(engine, 3)
    engine.execute("DROP QUERY group2; DROP QUERY few; SET keep_results = '5 rows'")
    page(engine, 4)
    engine = make(engine)
    engine.execute("ALTER QUERY group1 ACTIVE; ALTER QUERY skipping ON ERROR STOP")
    with contextlib.suppress(Exception):  # its sum is too large
        page(engine, 5)
    assert [each.query for each in engine.failures()] == ["skipping"]
    engine.restart("skipping")
    engine.execute("CREATE QUERY again AS " + QUERIES["joined"])
    engine = make(engine)
    for name in [*QUERIES, *LATE, *FRESH]:
        if name not in ("group2", "few"):
            engine.execute(f"DROP QUERY {name}")
    engine.drop("skipping")
    engine.finish()
    engine.validate()
    return engine


def test_a_healthy_engine_agrees_with_itself_whatever_happens():
    lives(lambda engine: engine or Engine({"validate": "on"})).close()


def test_so_does_one_that_dies_again_and_again(tmp_path):
    def make(engine):
        if engine is not None:
            engine.compact_log()
            die(engine)
        return Engine({"validate": "on"}, store=tmp_path / "store")

    lives(make).close()


def test_so_does_one_that_writes_to_a_sink(tmp_path):
    with Engine({"validate": "on"}) as engine:
        engine.execute(DDL)
        for name in ("group1", "group2"):
            into = tmp_path / f"{name}.jsonl"
            engine.execute(f"CREATE QUERY {name} AS {QUERIES[name]} INTO json('{into}')")
        for number in range(3):
            page(engine, number)
        engine.results("group1", "rows")
        engine.finish()
        engine.validate()


def test_so_does_one_that_has_little_memory():
    with Engine({"validate": "on", "budget": "1 KB"}) as engine:
        busy(engine)
        assert any(queue.spilled_bytes for queue in engine.inputs.queues.values())


def test_nothing_is_changed_by_looking(durable):
    def looked_at():
        queues = {name: vars(queue).copy() for name, queue in durable.inputs.queues.items()}
        return queues, vars(durable.store).copy(), durable.journal.length, durable.graph.whole()

    before = looked_at()
    durable.validate()
    assert looked_at() == before


# -- the setting ---------------------------------------------------------------------------------


def test_it_is_off_unless_it_is_wanted():
    with Engine() as engine:
        engine.execute(DDL)
        engine.inputs.held.add("nothing")
        engine.execute("CREATE QUERY q AS SELECT k FROM S")
        page(engine, 0)


def test_what_does_not_agree_is_said_after_a_statement():
    with Engine() as engine:
        engine.execute(DDL)
        engine.inputs.held.add("nothing")
        with pytest.raises(InvariantError, match="there is no nothing"):
            engine.execute("SET validate = 'on'")


def test_what_does_not_agree_is_said_after_a_commit():
    with Engine({"validate": "on"}) as engine:
        engine.execute(DDL + "CREATE QUERY q AS SELECT k FROM S")
        engine.inputs.held.add("nothing")
        engine.inputs.read_rows["nobody"] = 1
        with pytest.raises(InvariantError) as said:
            page(engine, 0)
        assert said.value.complaints == (
            "inputs that are held back: there is no nothing",
            "inputs of which rows were read: there is no nobody",
        )


def test_it_ends_the_loop_in_the_background():
    with Engine({"validate": "on"}) as engine:
        engine.execute(DDL + "CREATE QUERY q AS SELECT k FROM S")
        engine.inputs.held.add("nothing")
        engine.start()
        engine.push("S", [(1, 1, 1)])
        engine.advance("S", 1)
        wait_until(lambda: not engine.operation.is_started)
        assert "there is no nothing" in str(engine.operation.take_error())


# -- engines that are not: each breaks one thing ---------------------------------------------------


def group_of(engine):
    return engine.queries.groups.of("group1")


def log_of(engine, name):
    return engine.deliveries.of(name)


def stream(engine):
    return engine.inputs.streams["s"].queue


def output(engine, name):
    return engine.queries.outputs[name]


def running(engine, name):
    return engine.runtime.running[output(engine, name)]


def copy_of_r(engine):
    return engine.inputs.relations["r"].queues[1]


def held_page(engine):
    return next(each for each in stream(engine).pages if each.holders)


def upstream_of(engine, name):
    """An operator that a query reads, and which puts nothing out."""
    mine = engine.graph.upstream(output(engine, name)) - {output(engine, name)}
    return min(mine)


def declare(engine):
    engine.memory.declare(Declaration("gone", "view", "", Position(1, 1)))


def other_kind(engine):
    engine.catalog.entries["few"] = ViewEntry("few", engine.catalog.entries["few"].plan)


def no_intake(engine):
    engine.inputs.streams["u"] = engine.inputs.streams["s"]


def other_entry(engine):
    engine.inputs.streams["s"].entry = engine.inputs.streams["t"].entry


def other_queue(engine):
    engine.inputs.queues[QueueId("stream:s")] = stream_copy(engine)


def stream_copy(engine):
    queue = stream(engine)
    return type(queue)(queue.name, queue.schema, queue.store, is_stream=True)


def other_queue_of_relation(engine):
    engine.inputs.relations["r"].queues[0].name = QueueId("relation:q")


def copy_is_behind(engine):
    copy_of_r(engine).heartbeat -= 1


def nobody_reads_a_copy(engine):
    engine.graph._readers[copy_of_r(engine).name] = []


def late_uncounted(engine):
    engine.inputs.streams["t"].late_count = 0


def late_is_free(engine):
    engine.inputs.streams["t"].late_log.kept[0].is_free = True


def no_epoch(engine):
    engine.graph.epochs[output(engine, "few")] = 77


def epoch_to_come(engine):
    engine.inputs.epochs.since[99] = {}


def no_output(engine):
    del engine.queries.outputs["few"]


def failed_and_runs(engine):
    engine.queries.failures._by_query["few"] = Failure("few", "", "", 0, 0)


def unknown_runs(engine):
    engine.queries.outputs[QueryId("gone")] = output(engine, "few")


def unknown_failed(engine):
    engine.queries.failures._by_query["gone"] = Failure("gone", "", "", 0, 0)


def no_output_operator(engine):
    engine.queries.outputs["few"] = upstream_of(engine, "joined")


def output_of_another(engine):
    engine.queries.outputs["few"] = output(engine, "joined")


def begins(engine):
    engine.queries.begins["gone"] = 1


def no_log(engine):
    del engine.deliveries._logs["few"]


def log_of_another(engine):
    log = log_of(engine, "few")
    log.entry = replace(log.entry, weight=9.0)


def left_out_of_nobody(engine):
    engine.deliveries._logs["few#left_out"] = log = engine.deliveries._logs["skipping#left_out"]
    log.entry = replace(log.entry, name="few#left_out")


def left_out_stands_still(engine):
    del engine.queries.outputs["skipping#left_out"]


def part_of_nothing(engine):
    log_of(engine, "few").slice = log_of(engine, "group1").slice


def no_part(engine):
    log_of(engine, "group1").slice = None


def unknown_member(engine):
    engine.queries.groups._of["few"] = engine.queries.groups._of["group1"]


def other_number(engine):
    group, number = engine.queries.groups._of["group1"]
    engine.queries.groups._of["group1"] = group, number + 1


def weight_of_nobody(engine):
    group_of(engine).weights[99] = 0.0


def not_living(engine):
    group_of(engine).log.living.clear()


def begins_in_group(engine):
    group_of(engine).since[0] = {}


def number_once_more(engine):
    group_of(engine).next_number = 0


def other_weight(engine):
    group_of(engine).weight += 1


def no_constants(engine):
    group_of(engine).members.remove(0)


def no_table(engine):
    del engine.queries.groups.members[group_of(engine).name]


def other_table(engine):
    late = engine.queries.groups.of("group3")
    group_of(engine).members = late.members


def put_out_elsewhere(engine):
    engine.queries.outputs["group1"] = output(engine, "few")


def alone_and_gone(engine):
    engine.queries.groups._alone["gone"] = engine.queries.groups._alone["few"]


def alone_in_group(engine):
    engine.queries.groups._alone["group1"] = engine.queries.groups._alone["few"]


def plans(engine):
    engine.queries.groups._plans[next(iter(engine.queries.groups._plans))] += 1


def outlines(engine):
    engine.queries.groups._outlines[next(iter(engine.queries.groups._outlines))] += 1


def not_found(engine):
    groups = engine.queries.groups
    groups._unlifted, groups._waiting = {}, {}


def waits_for_nobody(engine):
    engine.queries.groups._waiting["~x@0"] = {"gone": engine.queries.groups._alone["few"]}


def no_selections(engine):
    del engine.queries.containments._uses["few"]


def no_holders(engine):
    engine.queries.containments._holders.clear()


def reads_others(engine):
    engine.queries.containments._read.clear()


def not_implied(engine):
    uses = engine.queries.containments._uses
    (node,) = uses["contained"].chosen
    uses["contained"].chosen[node] = Filter(node.input, Literal(False, Type.BOOLEAN))


def no_selection_operator(engine):
    engine.graph._twins.clear()


def no_totals(engine):
    del engine.queries.shared_totals._uses["few"]


def other_totals(engine):
    uses = engine.queries.shared_totals
    uses._uses["sum2"].chosen.clear()


def no_totals_operator(engine):
    (over, *_) = engine.queries.shared_totals._uses["sum2"].chosen.values()
    del engine.graph._made[over.digest]


def seen_once(engine):
    templates = engine.queries.templates
    templates._seen_once.add("gone")


def too_many_skeletons(engine):
    engine.queries.templates._known |= {str(number): None for number in range(2_000)}


def reads_nothing(engine):
    del engine.inputs.queues[QueueId("stream:t")]


def reads_later(engine):
    graph = engine.graph
    first = min(graph.operators, key=BY_NUMBER)
    graph.fragments[first] = graph.operators[output(engine, "joined")].inputs


def unknown_reader(engine):
    engine.graph._readers[QueueId("stream:s")].append(output(engine, "few"))


def nobody_reads(engine):
    engine.graph._readers[upstream_of(engine, "joined")] = []


def no_operator(engine):
    del engine.graph.operators[output(engine, "few")]


def fragments_of_nobody(engine):
    engine.graph.fragments[OperatorId("op999")] = ()


def settles(engine):
    engine.graph.settled[OperatorId("op999")] = 1


def counts(engine):
    engine.graph.counting[OperatorId("op999")] = 1


def made_of_nodes(engine):
    engine.graph._nodes[OperatorId("op999")] = {}


def other_form(engine):
    graph = engine.graph
    operator = graph.operators[output(engine, "few")]
    graph._ids[operator, 0] = output(engine, "joined")


def pairs(engine):
    engine.graph.pairs += 1


def twins(engine):
    operator = engine.graph.operators[output(engine, "few")]
    engine.graph._twins[operator].append(OperatorId("op999"))


def nodes(engine):
    engine.graph._made[next(iter(engine.graph._made))][OperatorId("op999")] = None


def copied(engine):
    engine.graph.copied[QueueId("relation:r@99")] = 1


def not_running(engine):
    del engine.runtime.running[output(engine, "few")]


def not_measured(engine):
    del engine.runtime.statistics[output(engine, "few")]


def in_no_unit(engine):
    del engine.runtime.units.of[output(engine, "few")]


def quick(engine):
    engine.runtime.regrouping.quick.add(OperatorId("op999"))


def changed(engine):
    engine.runtime.telling.changed.add(OperatorId("op999"))


def does_another_thing(engine):
    running(engine, "few").operator = running(engine, "joined").operator


def reads_other_queues(engine):
    running(engine, "few").inputs = (QueueId("stream:t"),)


def reads_a_queue_that_is_gone(engine):
    each = running(engine, "few")
    each.subscriptions = [(stream_copy(engine), reader) for _, reader in each.subscriptions]


def unknown_to_its_queue(engine):
    (_, reader), *_ = running(engine, "few").subscriptions
    stream(engine)._kinds[reader.kind].readers.discard(reader)


def works_for_nobody(engine):
    stream(engine).subscribe(Reader(stream(engine).heartbeat))


def reader_is_behind(engine):
    (_, reader), *_ = running(engine, "few").subscriptions
    reader.cursor -= 1


def heartbeat_of_operator(engine):
    engine.inputs.queues[output(engine, "few")].heartbeat += 1


def too_far(engine):
    stream(engine).heartbeat -= 1_000


def freed_too_soon(engine):
    stream(engine).freed_until = FOREVER


def claimed(engine):
    running(engine, "few").claimed += 1


def step_of_nobody(engine):
    engine.runtime.under_way.steps[output(engine, "few")] = []


def in_two_units(engine):
    unit = engine.runtime.units.of[output(engine, "few")]
    unit.members = (*unit.members, running(engine, "joined"))


def runs_twice(engine):
    unit = engine.runtime.units.of[output(engine, "joined")]
    engine.runtime.units.of[output(engine, "joined")] = type(unit)(
        [running(engine, "few")], engine.inputs.queues
    )


def entries(engine):
    engine.runtime.units.of[output(engine, "few")].entries.append(copy_of_r(engine))


def circle(engine):
    first = engine.runtime.units.of[upstream_of(engine, "joined")]
    others = [unit for unit in engine.runtime.units if first in reads(engine, unit)]
    if not others:
        first = next(
            each
            for each in engine.runtime.units
            if any(each in reads(engine, unit) for unit in engine.runtime.units)
        )
        others = [unit for unit in engine.runtime.units if first in reads(engine, unit)]
    first.entries.append(engine.inputs.queues[others[0].identity])


def reads(engine, unit):
    return [engine.runtime.units.of.get(queue.name) for queue in unit.entries]


def queue_of_nobody(engine):
    engine.inputs.queues[OperatorId("op999")] = stream_copy(engine)


def fused_and_runs(engine):
    engine.runtime.cutting._left.add(output(engine, "few"))


def part_of_nobody(engine):
    part = OperatorId("op999_1")
    engine.runtime.cutting.cuts._nodes[part.owner] = {part: engine.catalog.entries["v"].plan}


def owner_is_gone(engine):
    graph = engine.graph
    graph.operators[OperatorId("op999_1")] = graph.operators[output(engine, "few")]
    graph.epochs[OperatorId("op999_1")] = 0


def results_are_behind(engine):
    log_of(engine, "few").own_until = 0


def weight_told(engine):
    engine.runtime.picture.weights["few"] = 7.0


def pinned(engine):
    held_page(engine).pin()


def rows(engine):
    stream(engine).rows += 1


def size(engine):
    stream(engine).bytes -= 1


def spilled(engine):
    stream(engine).spilled_bytes += 1


def sums(engine):
    stream(engine)._amounts[-1] = (0, 0)


def times(engine):
    stream(engine)._lasts[-1] += 1


def free_pages(engine):
    stream(engine)._freed += 1


def promises_fall(engine):
    stream(engine)._floors.append(0)


def came_before(engine):
    stream(engine)._floors[-1] = stream(engine)._pages[-1].first


def holders(engine):
    held_page(engine).holders += 1


def stays_for_ever(engine):
    queue = stream(engine)
    for kind in queue._kinds.values():
        kind.unsummed, kind._held = [], []
    for each in queue.pages:
        each.holders = 0


def held_and_let_go(engine):
    stream(engine)._unread.append(held_page(engine))


def needed_and_free(engine):
    held_page(engine).is_free = True


def content_is_free(engine):
    queue = engine.inputs.relations["r"].queue
    queue.base = queue.pages[0]
    queue.base.is_free = True


def other_kind_of_reader(engine):
    (reader, *_) = stream(engine).readers
    reader.scans = not reader.scans


def thought_further(engine):
    for kind in stream(engine)._kinds.values():
        kind._cursors = [(FOREVER, number, reader) for _, number, reader in kind._cursors]


def summed_too_far(engine):
    engine.inputs.relations["r"].queue.base_time = FOREVER


def backlog(engine):
    engine.runtime.backlog.rows += 1


def backlog_of_nobody(engine):
    engine.runtime.backlog._amounts[OperatorId("op999")] = Amount()


def backlog_of_queue(engine):
    engine.runtime.backlog.rows += 1
    known = engine.runtime.backlog._amounts
    known["stream:s"] = known["stream:s"]._replace(rows=known["stream:s"].rows + 1)


def position(engine):
    log_of(engine, "joined").subscribers[0].position += 1


def result_is_free(engine):
    log_of(engine, "few").kept[0].is_free = True


def rows_of_log(engine):
    log_of(engine, "few").own_rows = 0


def rows_of_group(engine):
    group_of(engine).log.own_rows += 1


def rows_in_pages(engine):
    group_of(engine).log._there[0] += 1


def whose_rows(engine):
    group_of(engine).log._tags.clear()


def gone_rows(engine):
    group_of(engine).log._gone[0] += 10_000


def holders_of_group(engine):
    log = group_of(engine).log
    log._holders[log.kept[0]] = 0


def holders_of_part(engine):
    log = group_of(engine).log
    log_of(engine, "few").lent.append(SliceOfPage(log, log.kept[0], 0, 1))
    log._holders[log.kept[0]] = 1


def memory(engine):
    engine.deliveries.keeper.books.memory_bytes += 1


def unaccounted(engine):
    engine.deliveries.keeper.books.remove(log_of(engine, "few").kept[0])


def kept_by_nobody(engine):
    engine.deliveries.keeper.books.add(held_page(engine))


def bytes_of_store(engine):
    engine.store.bytes += 1


def page_is_nowhere(engine):
    held_page(engine)._table = None


def file_is_gone(engine):
    (name,) = held_page(engine).names
    engine.store.path(name).unlink()


def read_again(engine):
    engine.store._tables_bytes += 1


def states_in_memory(engine):
    engine.runtime.states._held_bytes += 1


def states_waiting(engine):
    engine.runtime.states._waiting_bytes += 1


def version_is_old(engine):
    states = (each.state for each in engine.runtime.running.values())
    state = next(each for each in states if each is not None and hasattr(each, "version"))
    object.__setattr__(state.version, "number", 0)


def says_twice(engine):
    states = (each.state for each in engine.runtime.running.values())
    state = next(each for each in states if each is not None and hasattr(each, "version"))
    buckets = tuple(deltas + deltas for deltas in state.version.buckets)
    object.__setattr__(state.version, "buckets", buckets)


BROKEN = {
    declare: "view gone is declared, and the catalog has nothing",
    other_kind: "query few is declared, and the catalog has view",
    no_intake: "streams of the catalog and of the inputs: only the second has u",
    other_entry: "the input s has another entry than the catalog",
    other_queue: "the queue of stream s is not the one that is read",
    other_queue_of_relation: "the queue relation:q of relation r is not the one",
    copy_is_behind: "relation:r@2 is promised up to",
    nobody_reads_a_copy: "nobody reads relation:r@2",
    late_uncounted: "stream t keeps 4 late tuples and has counted 0",
    late_is_free: "stream t keeps late tuples whose page is free",
    no_epoch: "began in epoch 77, of which nothing is known",
    epoch_to_come: "epoch 99 is known, and",
    no_output: "query few is active, and no operator puts it out",
    failed_and_runs: "query few stands still, and",
    unknown_runs: "queries that are put out: there is no gone",
    unknown_failed: "queries that have failed: there is no gone",
    no_output_operator: "query few is put out by .*, which is no output operator",
    output_of_another: "query few is put out by .*, which puts out joined",
    begins: "queries that begin with a time: there is no gone",
    no_log: "queries with groups, and logs of results: only the first has few",
    log_of_another: "the log of query few has another entry",
    left_out_of_nobody: "few#left_out tells what a query leaves out that leaves nothing out",
    left_out_stands_still: "skipping#left_out runs without its query, or the query without it",
    part_of_nothing: "few has a slice of the results of a group, and belongs to none",
    no_part: "query group1 belongs to .*, and has no slice of its results",
    unknown_member: "queries that belong to groups, and queries of groups: only the first has few",
    other_number: "query group1 belongs to .*, which knows it otherwise",
    weight_of_nobody: "weights of ~.*99",
    not_living: "queries in the log of ~",
    begins_in_group: "beginnings of ~",
    number_once_more: "would give the number 0 once more",
    other_weight: "weight of ~.*: 3.0 is kept, and counted anew it is 2.0",
    no_constants: r"constants of ~.*: \[1\] is kept",
    no_table: "tables of constants and groups: only the second has ~",
    other_table: "have another table of constants",
    put_out_elsewhere: "query group1 of ~.* is put out elsewhere",
    alone_and_gone: "queries of shapes that stand alone and run: there is no gone",
    alone_in_group: "query group1 stands alone, and belongs to ~",
    plans: "plans stand alone, and counted anew",
    outlines: "outlines of plans: ",
    not_found: "query few stands alone, and nobody finds it",
    waits_for_nobody: "queries that wait for others of their shapes: there is no gone",
    no_selections: "queries with selections, and alone: only the second has few",
    no_holders: "selections of query few are not those that it has",
    reads_others: "what is read of the selections of query few is not what it has chosen",
    not_implied: "query contained reads False, which .* does not imply",
    no_selection_operator: r"query contained reads \(v > 90\), which is no operator",
    no_totals: "queries with totals, and alone: only the second has few",
    other_totals: "aggregates of tuples of query sum2 are not those that it has",
    no_totals_operator: "query sum2 reads totals that no operator makes",
    seen_once: "the skeleton gone was seen once, and is known as another one",
    too_many_skeletons: "skeletons are known, more than 1000",
    reads_nothing: "reads stream:t, which is not there",
    reads_later: "op1 reads op.*, which comes after it",
    unknown_reader: "readers of stream:s: ",
    nobody_reads: r"nobody reads op\d+ \(",
    no_operator: "operators and their epochs: only the second has op",
    fragments_of_nobody: "operators that read other fragments: there is no op999",
    settles: "operators that settle: there is no op999",
    counts: "operators that count: there is no op999",
    made_of_nodes: "operators made of nodes: there is no op999",
    other_form: "is found by what it does not do",
    pairs: "pairs: ",
    twins: "operators that do the same .*op999",
    nodes: "of op999 it is not known both ways",
    copied: "relation:r@99 is to become one with its relation, and nobody reads it",
    not_running: "operators of the graph, and that run: only the first has op",
    not_measured: "operators, and those measured: only the first has op",
    in_no_unit: "operators, and those in units: only the first has op",
    quick: "operators seen to be quick: there is no op999",
    changed: "operators that have changed: there is no op999",
    does_another_thing: "does something else than the graph says",
    reads_other_queues: "queues that op.* reads: {'stream:t'} is kept",
    reads_a_queue_that_is_gone: "reads a queue stream:s that is gone",
    unknown_to_its_queue: "reads stream:s, which does not know it",
    works_for_nobody: "stream:s has a reader at .* that is no operator",
    reader_is_behind: "cursor of op.* in stream:s",
    heartbeat_of_operator: "heartbeat of op",
    too_far: "and stream:s is promised up to",
    freed_too_soon: "in stream:s, which is freed up to",
    claimed: "and has claimed up to",
    step_of_nobody: "are under way that are nobody's, or over",
    in_two_units: "is in the unit op.*, and in another one",
    runs_twice: "is in the unit op.*, and in another one",
    entries: "entries of op.*relation:r@2",
    circle: "units read one another in a circle: op",
    queue_of_nobody: "queues, and who writes them: only the first has op999",
    fused_and_runs: "was fused again, and runs",
    part_of_nobody: "parts that are cut off: only the first has op999_1",
    owner_is_gone: "operators with parts: there is no op999",
    results_are_behind: "and its results are known up to 0",
    weight_told: "weight of few: 7.0 is kept, and counted anew it is 1.0",
    pinned: "pins of a page of stream:s: 1 is kept, and counted anew it is 0",
    rows: "rows of stream:s: ",
    size: "bytes of stream:s: ",
    spilled: "spilled bytes of stream:s: ",
    sums: "sums of stream:s: ",
    times: "times of stream:s: ",
    free_pages: "free pages of stream:s: ",
    promises_fall: "stream:s has promises that fall",
    came_before: "stream:s has a page from .* on that came at",
    holders: "holders of a page of stream:s up to",
    stays_for_ever: "is held by nobody, and stays for ever",
    held_and_let_go: "is held, and is to be let go",
    needed_and_free: "is needed, and free",
    content_is_free: "the content of relation:r is free",
    other_kind_of_reader: "stream:s has readers with others than their like",
    thought_further: "a reader of stream:s at .* is thought to be further",
    summed_too_far: "relation:r is summed up to",
    backlog: "rows of the backlog: ",
    backlog_of_nobody: "queues with a backlog: there is no op999",
    backlog_of_queue: "backlog of stream:s: ",
    position: "somebody is at page .* of the results of joined",
    result_is_free: "1 pages of the results of few are free",
    rows_of_log: "rows of few are kept, and 0 were put out",
    rows_of_group: "rows of ~",
    rows_in_pages: "rows in pages of ~",
    whose_rows: "whose the rows of a page of ~.* are is not known",
    gone_rows: "are gone or there than were put out",
    holders_of_group: "is held by 0, and 1 need it",
    holders_of_part: "is held by 1, and 2 need it",
    memory: "memory of kept pages: ",
    unaccounted: "memory of a kept page: None is kept",
    kept_by_nobody: "is in the account, and kept by nobody",
    bytes_of_store: "bytes of the pages in the store: ",
    page_is_nowhere: "is neither in memory nor in a file",
    file_is_gone: "a page is in .*, which is not there",
    read_again: "bytes of what was read again: ",
    states_in_memory: "bytes of states in memory: ",
    states_waiting: "bytes of states not yet committed: ",
    version_is_old: "is older than its files",
    says_twice: "say the same twice",
}
"""What breaks an engine, and what is said then."""


@pytest.mark.parametrize("breaks", BROKEN, ids=lambda breaks: breaks.__name__)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_is_broken_is_found(healthy, breaks):
    def look():
        breaks(healthy)
        with pytest.raises(InvariantError, match=BROKEN[breaks]):
            healthy.validate()

    assert not complaint_of_copy(look)
    healthy.validate()


# -- stores that last ----------------------------------------------------------------------------


def undeclared(engine):
    engine.memory.forget("few")


def unnoted_page(engine):
    (name,) = held_page(engine).names
    del engine.store._sums[name]


def doomed_page(engine):
    engine.store._doomed += held_page(engine).names


def named_and_gone(engine):
    engine.store.path(next(iter(engine.store._sums))).unlink()


def unknown_file(engine):
    engine.store._unnoted["pages/other"] = next(iter(engine.store._sums.values()))


def state_is_gone(engine):
    for each in engine.runtime.running.values():
        for name in () if each.state is None else each.state.names:
            engine.store.path(name).unlink()


def no_log_file(engine):
    engine.store.path("commits.log").unlink()


def end_is_ahead(engine):
    end = LogEnd(engine.store.path("commits.end"))
    end.write(engine.journal._log.last_number + 1)
    end.close()


def no_open_log(engine):
    log, engine.journal._log = engine.journal._log, None
    log.close()


BROKEN_STORES = {
    undeclared: "declarations of what is in the catalog: there is no few",
    unnoted_page: "a page is in .*, of which the log says nothing",
    doomed_page: "a page is in .*, which is about to be deleted",
    named_and_gone: "the log names .*, which is not there",
    unknown_file: "files that the log is to know: there is no pages/other",
    state_is_gone: "the state of op.* is in .*, which is not there",
    no_log_file: "the log commits.log is not there",
    end_is_ahead: r"the log is whole up to \d+, and its last record is \d+",
    no_open_log: "notes go nowhere",
}


@pytest.mark.parametrize("breaks", BROKEN_STORES, ids=lambda breaks: breaks.__name__)
def test_what_is_broken_in_a_store_is_found(durable, breaks):
    assert isinstance(durable.journal, Journal)
    breaks(durable)
    with pytest.raises(InvariantError, match=BROKEN_STORES[breaks]):
        durable.validate()


# -- what it has found ---------------------------------------------------------------------------


def test_a_strategy_hears_that_a_group_matters_less_when_a_query_leaves_it(engine):
    group = group_of(engine)
    assert engine.runtime.picture.weights[group.name] == 2
    engine.execute("DROP QUERY group2")
    assert engine.runtime.picture.weights[group.name] == 1


def test_what_a_log_that_begins_anew_has_freed_is_no_backlog(tmp_path):
    with Engine(store=tmp_path) as engine:
        engine.execute(DDL + "CREATE QUERY q AS SELECT k FROM S")
        page(engine, 0)
        engine.execute("DROP QUERY q")
        engine.push("S", [(100, 1, 1)])
        engine.advance("S", 100)
        assert engine.runtime.backlog.memory_bytes > 0
        engine.compact_log()
        assert engine.runtime.backlog.of("stream:s").memory_bytes == 0


def test_pages_of_groups_are_counted_once_after_a_restart(tmp_path):
    engine = Engine(store=tmp_path)
    engine.execute(DDL)
    register(engine, {name: QUERIES[name] for name in ("group1", "group2")})
    page(engine, 0)
    engine.execute("ALTER QUERY group1 INACTIVE")
    assert any(isinstance(each, GroupLog) for each in engine.deliveries)
    engine.compact_log()
    before = engine.store.bytes
    die(engine)
    with Engine(store=tmp_path) as again:
        assert again.store.bytes == before


def test_a_part_that_is_fused_again_is_no_longer_known_to_be_quick(engine):
    runtime = engine.runtime
    named = {n for each in engine.graph.operators for n in runtime.cutting.cuts.named(each)}
    part = min(named)
    engine.execute(f"ALTER PLAN QUEUE AFTER {part}")
    assert part in runtime.running
    runtime.regrouping.quick.add(part)
    engine.execute(f"ALTER PLAN NO QUEUE AFTER {part}")
    assert part not in runtime.running
    engine.validate()
