"""The result logs of all queries, and how they reach readers, sinks and subscribers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import pyarrow as pa

from millpond.arguments import as_text
from millpond.background import BackgroundThreads
from millpond.connectors.bad_rows import BAD_ROW
from millpond.connectors.python_values import python_rows, to_pandas
from millpond.connectors.sinks import unique_names
from millpond.delivery.group_results import GroupLog, SliceOfPage
from millpond.delivery.latency import Latencies
from millpond.delivery.results import (
    BadRowLog,
    ResultLog,
    SinkTold,
    call_subscribers,
    coming_in,
    feed_sink,
)
from millpond.delivery.transitions import Came, sink_fed
from millpond.errors import OutputError, StateError
from millpond.failures import Failure
from millpond.identities import BAD_ROWS, QueryId, QueryName, is_ours
from millpond.interruption import WholeLock, uninterrupted
from millpond.settings import Keeping
from millpond.spelling import suggestion
from millpond.storage.journal import Journal
from millpond.storage.kept_pages import Keeper, runs_of_time
from millpond.storage.pages import Page
from millpond.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_WAITING = 4
"""So many pages may wait for a sink that executors write, before the loop waits for it."""

MOST_UNSENT = 256
"""So many pages may wait for a remote sink, which the budget sees, before the loop waits for it."""

MOST_SENDERS = 16
"""So many remote sinks are written to at once."""

Fail = Callable[[list[Failure], Exception], None]


class Deliveries:
    """What queries have put out, by their names in lower case."""

    def __init__(
        self, lock: WholeLock, spark: Callable[[], SparkSession], tell: Callable[[], None]
    ) -> None:
        self._lock = lock
        self._has_rested = lock.condition()
        """Told when a page was written to a sink, and when subscribers were called."""
        self._calling: list[tuple[int, str]] = []
        """The threads that call subscribers, and of which query."""
        self._spark = spark
        self._tell = tell
        """Called, with the lock held, when a sink has what was written beside the loop."""
        self._logs: dict[QueryId, ResultLog] = {}
        self._former: WeakValueDictionary[str, GroupLog] = WeakValueDictionary()
        """The logs of groups that are gone, as long as a query has slices of their pages."""
        self._news: set[QueryId] = set()
        """The queries that have put out what was not yet handed on."""
        self._writers = BackgroundThreads(1, "millpond-sinks")
        self._senders = BackgroundThreads(MOST_SENDERS, "millpond-remote-sinks")
        self._writing: list[Future[None]] = []
        """What the threads beside the loop are writing, and are to write."""
        self._has_ended = False
        self.keeper = Keeper()
        """Looks after what is kept of the results."""
        self.stop_reading: Callable[[Exception], None]
        """Has no source be read until a run has raised an error."""
        self._journal: Journal
        self._store: Store

    def use(self, store: Store, journal: Journal) -> None:
        """Where pages lie and what happened is noted."""
        self._store, self._journal = store, journal
        self.keeper.use(store, journal)

    @property
    def store(self) -> Store:
        """Where pages lie."""
        return self._store

    # -- bad rows of sources ---------------------------------------------------------------

    def bad_rows(self, stream: str) -> ResultLog | None:
        """The log of what the source of a stream could not read, if that is put aside."""
        return self._logs.get(QueryId(f"{stream}{BAD_ROWS}"))

    def add_bad_rows(self, stream: str, page: Page) -> None:
        """Bad rows of a stream have come."""
        self.put_out(QueryId(f"{stream}{BAD_ROWS}"), page, page.last)

    def tidy_bad_rows(self, stream: str) -> None:
        """Lets old ones go."""
        log = self.bad_rows(stream)
        if log is not None:
            self.tidy(log)

    # -- which there are -------------------------------------------------------------------

    def add(self, log: ResultLog) -> None:
        """The log of a new query."""
        log.write_elsewhere, log.books = self._write_elsewhere, self.keeper.books
        log.settle = self._settle
        self._logs[log.entry.identity] = log

    def remove(self, key: QueryId) -> None:
        """A query is dropped: its pages go, and its sink is finished."""
        try:
            self._logs.pop(key).close()
        finally:
            self.remove_aside(key)

    def remove_aside(self, key: QueryId) -> None:
        """What a query has left out is told no more, if it has that."""
        log = self._logs.pop(key.aside, None)
        if log is not None:
            log.close()

    @contextmanager
    def at_rest(self, query: str) -> Iterator[None]:
        """Nobody writes to a query's sink meanwhile; the lock is held, but not while waiting.

        A page that is being written is waited for, unless it is the sink itself that asks.
        """
        log = self._logs.get(QueryId(query))
        if log is None:
            yield
            return
        log.is_resting = True
        try:
            self._has_rested.wait_for(lambda: log.fed_by in (None, threading.get_ident()))
            yield
        finally:
            log.is_resting = False
            self.has_news(QueryId(query))

    def of(self, query: str) -> ResultLog:
        """The log of a query; what is no query is refused."""
        key = QueryId(as_text(query, "a name"))
        if key not in self._logs:
            names = [log.entry.name for log in self if not isinstance(log, GroupLog)]
            known = (name for name in names if not is_ours(name))
            raise StateError(f'no query "{query}"{suggestion(query, known)}')
        return self._logs[key]

    def group_log(self, name: str, like: ResultLog) -> GroupLog:
        """The log of a group; of one that is gone those know who have slices of its pages."""
        log = self._logs.get(QueryId(name)) or self._former.get(name)
        if not isinstance(log, GroupLog):
            entry = replace(like.entry, name=name)
            log = self._former[name] = GroupLog(entry, like.tick_microseconds, like.in_timestamps)
        return log

    def aside(self, query: str) -> ResultLog | None:
        """The log of what ON ERROR SKIP leaves out, if a query has that."""
        return self._logs.get(QueryId(query).aside)

    def latency(self, query: str) -> Latencies:
        """How long the results of a query took, from the arrival of their tuples."""
        with self._lock:
            return self.of(query).latency.known()

    def left_out_count(self, query: str) -> int:
        """How many elements ON ERROR SKIP has left out so far, each counted when it came."""
        log = self.aside(query)
        return 0 if log is None else log.came

    def __iter__(self) -> Iterator[ResultLog]:
        return iter(self._logs.values())

    def file_names(self) -> set[str]:
        """The files of all results."""
        return {name for log in self for page in log.pages for name in page.names}

    # -- from steps to readers -------------------------------------------------------------

    def publish(
        self, query: QueryName, page: Page | None, until: int, ready_seconds: float
    ) -> None:
        """A step has a query put out a page, or nothing; it is complete up to a time.

        ``ready_seconds``: when its inputs had promised to be past the first result.
        """
        key = query.key
        log = self._logs[key]
        if page is not None:
            log.latency.add(page.origins, page.rows, time.monotonic(), ready_seconds)
            if log.counts_coming:
                came = Came(key, log.came + coming_in(page))
                self._journal.note(came)
                came.apply(self)
        self.put_out(key, page, until)
        self.tidy(log)

    def put_out(self, query: QueryName, page: Page | None, until: int) -> None:
        """A query has put out a page, or nothing; it is complete up to a time."""
        key = query.key
        log = self._logs[key]
        if page is not None and isinstance(log, GroupLog):
            log.hold(page)
            log.add(page, until)
            for each in log.passed_on(page):
                self.has_news(each.entry.identity)
            log.let_go(page)
        else:
            log.add(page, until)
            if page is not None and (log.entry.sink is not None or log.subscribers):
                self._news.add(key)

    def tidy(self, log: ResultLog) -> None:
        """Lets old results go and merges small pages; of a group also what its queries had."""
        self.keeper.tidy(log, query=log.entry.identity)
        if isinstance(log, GroupLog):
            for number, elder in list(log.elders.items()):
                if elder.slice is not None:
                    self.tidy(elder)
                if elder.slice is None or not elder.kept:
                    del log.elders[number]

    def keep_at_most(self, rows: int) -> None:
        """Lets go what is more than so many rows of a query, in a store that does not last."""
        for log in self:
            over = log.over(Keeping(rows))
            if over is not None:
                log.pass_over(over)
            self.tidy(log)

    def has_news(self, key: QueryId) -> None:
        """Somebody may not have seen all that a query has put out."""
        self._news.add(key)

    @property
    def has_more(self) -> bool:
        """Whether something was put out that was not yet handed on."""
        return bool(self._news)

    def hand_on(self, fail: Fail) -> None:
        """Hands on what was put out; callbacks run without the lock."""
        if not self._news:
            return
        with uninterrupted:
            with self._lock:
                news, self._news = self._news, set()
                logs = [self._logs[name] for name in news if name in self._logs]
            try:
                uninterrupted.call(self._hand_on, logs, fail)
            except BaseException:  # interrupted: what was not handed on is news still
                with self._lock:
                    self._news |= news
                raise

    def _hand_on(self, logs: list[ResultLog], fail: Fail) -> None:
        def told(log: ResultLog, error: Exception | None) -> None:
            self._has_rested.notify_all()
            if log.is_closed or self._has_ended:
                return  # its query is no more, or another one has its name
            error = error or self._note_fed(log)
            if error is None:
                self._journal.flush()
            elif isinstance(log, BadRowLog):
                self._put_off(log, error)
            else:
                at, name = log.complete_until, log.entry.name
                fail([Failure(name, f"INTO {log.entry.sink}", str(error), at, at)], error)

        for log in logs:
            log.is_put_off = False
            if log.entry.sink is not None:
                self._feed(log, told)
            if log.subscribers:
                self._call(log)

    def _call(self, log: ResultLog) -> None:
        """Calls the subscribers of a query, so that whoever closes the engine can wait for them."""
        calling = threading.get_ident(), log.entry.name
        with uninterrupted:
            with self._lock:
                if self._has_ended:
                    return
                self._calling.append(calling)
            try:
                uninterrupted.call(call_subscribers, log, self._lock)
            finally:
                with self._lock:
                    self._calling.remove(calling)
                    self._has_rested.notify_all()

    def _called_elsewhere(self) -> list[str]:
        """The queries whose subscribers another thread calls."""
        mine = threading.get_ident()
        return [name for thread, name in self._calling if thread != mine]

    def _put_off(self, log: ResultLog, error: Exception) -> None:
        """Bad rows could not be handed on: no source is read until the run has raised why."""
        log.sink_failed, log.is_put_off = False, True
        self.has_news(log.entry.identity)
        self.stop_reading(error)

    def _feed(self, log: ResultLog, told: SinkTold) -> None:
        """Hands pages on to a sink; where executors write them, or others are asked to take them,
        the loop goes on meanwhile."""
        with self._lock:
            page = log.for_sink()
            is_remote = log.sink is not None and log.sink.is_remote
            is_elsewhere = page is not None and self._next_part(log, page) is not None
            waiting = log.position - log.sink_position
        if page is None and log.fed_by is None:
            return
        if is_remote or is_elsewhere or log.fed_by is not None:
            threads = self._senders if is_remote else self._writers
            writing = threads.submit(lambda: self._feed_beside(log, told))
            self._writing.append(writing)
            writing.add_done_callback(self._has_written)
            if waiting > (MOST_UNSENT if is_remote else MOST_WAITING):
                self.wait_for_writers()
        else:
            feed_sink(log, self._lock, told)

    def _feed_beside(self, log: ResultLog, told: SinkTold) -> None:
        """Feeds a sink beside the loop; what the store refused meanwhile is news still."""
        try:
            feed_sink(log, self._lock, told)
        except BaseException:
            with self._lock:
                self.has_news(log.entry.identity)
            raise

    def _settle(self) -> None:
        """Has the log say what was noted: nobody else learns of what a death would undo."""
        if self._journal.length:
            self._journal.flush()

    def _has_written(self, _: Future[None]) -> None:
        with self._lock:
            self._tell()

    @property
    def is_all_written(self) -> bool:
        """Whether nothing is being written beside the loop."""
        done = [each for each in self._writing if each.done()]
        self._writing = [each for each in self._writing if each not in done]
        for each in done:
            each.result()
        return not self._writing

    def wait_for_writers(self) -> None:
        """Waits until sinks have what is being written for them; the lock is not held."""
        writing, self._writing = self._writing, []
        for each in writing:
            each.result()

    def _note_fed(self, log: ResultLog) -> OutputError | None:
        """Notes how far a sink is, unless it cannot say so for certain."""
        try:
            self.note_sink(log)
        except OutputError as error:
            log.sink_failed = True
            return error
        return None

    def force_sinks(self) -> None:
        """Forces what sinks have written so far onto the disk, as far as they can."""
        for log in self:
            if log.sink is not None:
                log.sink.force()

    def note_sink(self, log: ResultLog) -> None:
        """Notes how far a sink is."""
        if log.sink is not None:
            self._journal.note(sink_fed(log))

    def _write_elsewhere(self, log: ResultLog, page: Page) -> bool:
        """Has an executor write a page to a Parquet sink, if that is where its rows are."""
        part = self._next_part(log, page)
        if part is None or log.sink is None:
            return False
        log.sink.refuse_lost()
        from millpond.execution.work import Destination
        from millpond.spark.deliveries import WritePart, write_part

        destination, path = Destination.of(self._store), str(part.absolute())
        work = WritePart(destination, log.page_schema, page.sound_names, tuple(_names(log)), path)
        write_part(self._spark(), work)
        log.sink.has_part()
        return True

    @staticmethod
    def _next_part(log: ResultLog, page: Page) -> Path | None:
        if page.is_in_driver or log.sink is None or log.schema.has_nested:
            return None
        return log.sink.next_part()

    # -- reading ---------------------------------------------------------------------------

    def results(self, query: str, form: str) -> Any:
        """What a query has put out so far, in one of four forms."""
        if form == "spark":
            self._spark()  # started now, where nobody waits for the lock
        log = self.of(query)
        if form == "spark":
            with self._lock:
                return self._frame(log)
        with log.reading(self._lock) as found:
            table = log.table(found.pages)
        match form:
            case "arrow":
                return table
            case "pandas":
                return to_pandas(table)
            case "rows":
                return python_rows(table)
        raise StateError(f'no form "{form}"; known: arrow, pandas, spark, rows')

    def last_results(self, query: str, rows: int) -> pa.Table:
        """The last rows that a query has put out; no page is read for it that has none of them."""
        log = self.of(query)
        with log.reading(self._lock) as found:
            tables, wanted = [log.table([])], rows
            for run in reversed(list(runs_of_time(found.pages))):
                if wanted > 0:
                    tables.insert(1, log.table(list(run)))
                    wanted -= tables[1].num_rows
        table = pa.concat_tables(tables)
        return table.slice(max(0, table.num_rows - rows))

    def _frame(self, log: ResultLog) -> Any:
        """Reads the files of the results where they lie, as long as the query is there."""
        from millpond.spark.deliveries import result_frame

        if log.schema.has_nested:  # whose pages are not what is shown
            with log.reading(self._lock) as found:
                return self._spark().createDataFrame(log.table(found.pages))
        pages = [*log.kept, *(() if log.slice is None else log.slice.pages())]
        slices = [page for page in pages if isinstance(page, SliceOfPage)]
        lent = [Page.of(self._store, each.table) for each in slices]
        for page in lent:
            self.keeper.books.add(page)
        pages = [page for page in pages if page not in slices] + lent
        log.lent = list(dict.fromkeys([*log.lent, *pages]))
        for each in slices:
            if each not in log.kept:
                each.free()
        return result_frame(self._spark(), log.page_schema, _names(log), pages)

    def end(self, until: float) -> list[str]:
        """Waits until a moment for callbacks and for what is being written; the lock is not held.

        Who is not over by then; a callback that ends the engine is not waited for.
        """
        writing, self._writing = self._writing, []
        wait(writing, max(0.0, until - time.monotonic()))
        with self._lock:
            left = max(0.0, until - time.monotonic())
            self._has_rested.wait_for(lambda: not self._called_elsewhere(), left)
            self._has_ended = True
            called = self._called_elsewhere()
            late = [log for log in self if log.fed_by not in (None, threading.get_ident())]
            for log in late:
                log.give_up_sink()
        until = time.monotonic() if late else until
        has_ended = all([self._writers.close(until), self._senders.close(until)])
        for each in writing:
            if has_ended and not each.cancelled():
                each.result()
        sinks = [f"the sink of query {log.entry.name} INTO {log.entry.sink}" for log in late]
        return [*(f"a callback of query {name}" for name in called), *sinks]

    def close(self) -> None:
        """Finishes what the sinks have written, but those that somebody writes to still."""
        with ExitStack() as all_of_them:  # one that cannot be finished does not keep others open
            for log in self:
                if log.fed_by is None:
                    all_of_them.callback(log.close_sink)


def _names(log: ResultLog) -> list[str]:
    return unique_names(["ts", "weight", *log.schema.names])


def no_bad_rows() -> pa.Table:
    """What is put aside of a source whose first bad row is an error."""
    fields = [("ts", pa.int64()), ("weight", pa.int64())]
    return pa.schema([*fields, *((name, pa.string()) for name in BAD_ROW.names)]).empty_table()


def nothing_left_out() -> pa.Table:
    """What a query leaves out whose expressions cannot fail."""
    fields = [("ts", pa.int64()), ("weight", pa.int64())]
    return pa.schema([*fields, ("expression", pa.string()), ("row", pa.string())]).empty_table()
