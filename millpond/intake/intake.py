"""Where tuples come in: times, order of arrival, lateness and heartbeats."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import (
    MISSED_BY,
    VIOLATES,
    Constraint,
    RelationEntry,
    StreamEntry,
    goes_by_the_clock,
)
from millpond.connectors import arrow_schema
from millpond.connectors.admission import Admission, Admitted
from millpond.connectors.disorder import Disorder
from millpond.connectors.nested import outside_row
from millpond.connectors.python_values import python_values
from millpond.errors import InputError, MillpondError, StateError
from millpond.identities import InputId
from millpond.intake.keys import NAN, Bags, Changes, KeyedRows, can_be_first, first_rows
from millpond.intake.looking import Looking, Violations, Watched
from millpond.intake.numbered import (
    NumberedClusters,
    NumberedReferenced,
    NumberedReferences,
    NumberedUniqueness,
    are_numbers,
)
from millpond.intake.occurrences import (
    Clusters,
    Occurring,
    Referenced,
    References,
    Uniqueness,
    Value,
)
from millpond.intake.orderings import Ordering
from millpond.intake.punctuations import Contradictions, all_patterns
from millpond.intake.remnants import Forbidding, Remnant
from millpond.intake.samples import Arrived
from millpond.intake.watching import Watches
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.kernels.snapshots import still_open
from millpond.schema import BEGINNING, FOREVER, Schema, Type
from millpond.storage.bounds import Age, Bounds, Closings
from millpond.storage.kept_pages import PageLog
from millpond.storage.pages import Page, concatenated
from millpond.storage.promises import Promises
from millpond.storage.punctuations import Remembered, TimeColumn
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader

END = FOREVER - 1
"""The heartbeat of a source that has ended."""


KINDS: dict[str, type[Occurring]] = {
    "clustered": Clusters,
    "references": References,
    "unique": Uniqueness,
}
"""What is remembered for constraints about values that come again."""
KINDS_OF_NUMBERS: dict[str, type[Occurring]] = {
    "clustered": NumberedClusters,
    "references": NumberedReferences,
    "unique": NumberedUniqueness,
}
"""The same for numbers, in rows."""


def _is_same(known: Mapping[str, Ordering | Occurring], constraint: Constraint) -> bool:
    """Whether a constraint was there before, maybe within another k."""
    before = known.get(constraint.name)
    if before is None:
        return False
    return replace(before.constraint, within=constraint.within) == constraint


def refuse_ended(name: str, queue: Queue) -> None:
    """Refuses rows for an input of which it was said that nothing will follow."""
    if queue.heartbeat >= END:
        raise StateError(
            f"{name} has ended: its source was read to its end, or finish() was called; "
            "nothing can follow"
        )


def relation_page_schema(schema: Schema) -> pa.Schema:
    """Pages of a base relation: elements."""
    return element_schema([f.type for f in arrow_schema(schema)])


def violating_log_name(stream: str) -> str:
    """What the log of a store calls the tuples of a stream that broke a constraint."""
    return f"{stream}#{VIOLATES}"


def violating_schema(schema: Schema) -> pa.Schema:
    """The columns of tuples that broke a constraint."""
    told = (pa.field(name, pa.string()) for name in (VIOLATES, MISSED_BY))
    return pa.schema([*arrow_schema(schema), *told])


@dataclass
class StreamIntake:
    """One base stream: gives each tuple its time and sequence number, and keeps late ones aside."""

    entry: StreamEntry
    queue: Queue
    tick_microseconds: int
    largest: int | None = None
    arrived: int = 0
    late_count: int = 0
    last_arrival_seconds: float = field(default_factory=time.monotonic)
    largest_seconds: float = field(default_factory=time.monotonic)
    """When its largest time came, by the clock of this process."""
    late_log: PageLog = field(default_factory=PageLog)
    """The last of the late tuples, as they came."""
    orderings: dict[str, Ordering | Occurring] = field(default_factory=dict)
    """What is remembered of it for its constraints, by their names."""
    watches: Watches = field(default_factory=Watches)
    """What is seen of columns of which nothing was said."""
    referring: dict[str, tuple[StreamIntake, str]] = field(default_factory=dict)
    """The streams that reference it and their constraints, by the names that these have for it."""
    targets: dict[str, StreamIntake] = field(default_factory=dict)
    """The streams that it references, by the names of its constraints."""
    remnants: dict[str, tuple[Remnant, StreamIntake]] = field(default_factory=dict)
    """What dropped constraints forbid still, each with the stream that had it."""
    punctuations: dict[str, Remembered] = field(default_factory=dict)
    """What is remembered of its punctuations, by what becomes of those who rely on them."""
    contradicted: dict[str, int] = field(default_factory=dict)
    """How many tuples have contradicted those."""
    violating_count: int = 0
    violating_log: PageLog = field(default_factory=PageLog)
    """The last of the tuples that broke a constraint, each with its name."""
    dropped_count: int = 0
    """How many tuples a drop point has dropped so far, if this is what it keeps of a stream."""
    dropped_until: int | None = None
    """The largest time of one."""
    disorder: Disorder | None = None
    """What was seen of how far its tuples come behind, if its delay follows that."""
    is_admitted_elsewhere: bool = False
    """Whether tuples are being admitted elsewhere: until they are here its clock stands still."""

    def __post_init__(self) -> None:
        if self.entry.timestamp_column is not None:
            self.queue.promises = Promises()
            is_moment = self.entry.schema[self.entry.timestamp_column].type is Type.TIMESTAMP
            tick = self.tick_microseconds if is_moment else None
            self.queue.time_column = TimeColumn(self.entry.timestamp_column, tick)
        self.use_delay()
        self.use_constraints()

    def use_delay(self) -> None:
        """Its entry may have another delay: of one that follows how tuples come nothing is known
        yet."""
        late, most = self.entry.late_percent, self.entry.delay_ticks
        known = self.disorder
        if known is None or (known.late_percent, known.most) != (late, most):
            self.disorder = Disorder.unseen(late, most) if late else None

    def use_constraints(self, altered: str = "") -> None:
        """Its entry may have other constraints; of those that stay it is remembered what was. Of
        one that was ``altered`` k is as declared, though it may have grown."""
        known, self.orderings = self.orderings, {}
        self.queue.bounds.clear()
        closings, self.queue.closings = self.queue.closings, {}
        ages, self.queue.ages = self.queue.ages, {}
        stays = {each.name for each in self.entry.constraints if _is_same(known, each)}
        gone = {
            each.constraint.column
            for name, each in known.items()
            if name not in stays and each.constraint.kind == "clustered"
        }
        for each in self.entry.constraints:
            is_same = each.name in stays
            before = known[each.name] if is_same else None
            self.orderings[each.name] = self._remembered(before, each, each.name == altered)
            if is_same and each.kind == "clustered" and each.column in closings:
                self._go_on_closing(each, None if each.column in gone else closings[each.column])
            if each.kind in ("unique", "references"):
                age = ages.get(each.name) if is_same else None
                self.queue.ages[each.name] = age or Age(each.within, each.is_of_rows)
        self._bound()

    def _go_on_closing(self, constraint: Constraint, before: Closings | None) -> None:
        """Has known what is closed by a constraint that was there before; None: with another one
        gone it is to be said anew."""
        column, seen = constraint.column, self.orderings[constraint.name]
        closings = self.queue.closings.setdefault(column, before or Closings())
        if before is None and self.largest is not None and isinstance(seen, Clusters):
            closings.note(self.largest, seen.forbidden(self._least_place(constraint)))

    def _remembered(
        self, before: Ordering | Occurring | None, constraint: Constraint, is_altered: bool
    ) -> Ordering | Occurring:
        """What is remembered for a constraint, of which k may be another one."""
        if before is not None:
            if is_altered or before.constraint != constraint:
                least = self._least_place(constraint)
                return before.declared_as(constraint, least, self._largest_of(constraint))
            return before
        kind = self._kind(constraint)
        if kind is None:
            return Ordering.of(constraint)
        return kind(constraint, self._largest_of(constraint))

    def _kind(self, constraint: Constraint) -> type[Occurring] | None:
        """What remembers values that come again, if that is what a constraint is about."""
        types = [self.entry.schema[column].type for column in constraint.columns]
        if constraint.is_of_rows and are_numbers(types):
            return KINDS_OF_NUMBERS.get(constraint.kind)
        return KINDS.get(constraint.kind)

    def _largest_of(self, constraint: Constraint) -> int | None:
        """The largest time of tuples that came before a constraint, also of what it references."""
        target = self.targets.get(constraint.name)
        times = self.largest, None if target is None else target.largest
        return max((each for each in times if each is not None), default=None)

    def use_targets(self) -> None:
        """It is new: what it references may have come before it."""
        for each in self.orderings.values():
            if isinstance(each, References):
                each.since = self._largest_of(each.constraint)
        self._bound()

    def watch(self, columns: Iterable[int]) -> None:
        """Has these columns be watched, but for those by which it is said to be ordered."""
        said = {
            each.column
            for each in self.entry.constraints
            if each.kind == "ordered" and each.is_of_rows
        }
        self.watches = self.watches.chosen(set(columns) - said)

    def watches_after(
        self, page: pa.Table | None, arrived: Callable[[], Arrived] | None
    ) -> Watches:
        """What will have been seen of the watched columns when tuples have come; ``arrived``: how
        many of each stream have, where values are followed."""
        if page is None or not self.watches:
            return self.watches
        return self.watches.after(page, None if arrived is None else arrived())

    def watch_anew(self) -> None:
        """Tuples have come that nobody has watched: what was seen of others is not all."""
        self.watches = self.watches.anew()

    @property
    def watched(self) -> list[Watched]:
        """By what its tuples are looked at: its constraints, those that reference it, and what is
        left of such that were dropped."""
        left: list[Watched] = [Forbidding(remnant) for remnant, _ in self.left]
        return [*self.orderings.values(), *map(self._referenced, self.referring), *left]

    @property
    def left(self) -> list[tuple[Remnant, StreamIntake]]:
        """What dropped constraints forbid still, and the streams that had them."""
        return [each for name, each in self.remnants.items() if not self.is_over(name)]

    def _referenced(self, name: str) -> Referenced:
        other, constraint = self.referring[name]
        references = other.orderings[constraint]
        if not isinstance(references, References):
            raise MillpondError(f"internal: {name} references nothing")
        if isinstance(references, NumberedReferences):
            return NumberedReferenced(name, references, other.arrived)
        return Referenced(name, references, other.arrived)

    def looking(self) -> Looking | None:
        """Who looks at tuples by its constraints, if it has any."""
        watched = self.watched
        return Looking(watched, self.arrived) if watched else None

    def admit(self, table: pa.Table, looking: Contradictions | None = None) -> Admitted:
        """What becomes of tuples that come now; nothing has happened yet."""
        if table.num_rows == 0:
            reached = self.largest, self.arrived, self.queue.heartbeat, self.disorder
            return Admitted(None, None, *reached)
        breaks = looking.broken if looking is not None and looking.is_needed else None
        promises = () if looking is None else looking.promises(self.tick_microseconds)
        return self.admission.admit(table, self.now_ticks(), breaks, promises)

    def seen(self, violations: Violations | None, admitted: Admitted) -> dict[str, Any]:
        """What is noted of tuples that were looked at: of what has risen no more than those to
        come can break."""
        if violations is None:
            return {}
        heartbeat = max(self.queue.heartbeat, admitted.heartbeat)
        noted: dict[str, Any] = {}
        for name, (risen, *rest) in violations.seen.items():
            if name in self.remnants:
                noted[name] = (risen, *rest)
                continue
            if name in self.referring:
                noted[name] = (self._referenced(name).in_reach(risen), *rest)
                continue
            ordering = self.orderings[name]
            least = admitted.arrived if ordering.constraint.is_of_rows else heartbeat + 1
            noted[name] = (ordering.in_reach(risen, least), *rest)
        return noted

    def has_been_looked_at(self, seen: Mapping[str, Sequence[Any]]) -> None:
        """Tuples have come that were looked at: what has risen, and what was seen of each
        constraint."""
        for name, facts in seen.items():
            if name in self.remnants:
                remnant, owner = self.remnants[name]
                self.remnants[name] = replace(remnant, violations=facts[1]), owner
                continue
            if name in self.referring:
                self._referenced(name).references.took(*facts)
                self.referring[name][0].age_anew()
                continue
            ordering = self.orderings[name]
            if isinstance(ordering, Occurring):
                ordering.took(*facts)
            else:
                least = self._least_place(ordering.constraint)
                risen, violations, measured = facts
                self.orderings[name] = ordering.following(risen, violations, measured, least)
        self._bound()
        self.forget_remnants()

    def forget_remnants(self) -> None:
        """What dropped constraints forbade that no tuple to come can meet is forgotten."""
        for name in [name for name in self.remnants if self.is_over(name)]:
            del self.remnants[name]

    def forget_remnants_of(self, stream: InputId) -> None:
        """A stream is gone whose constraints were dropped."""
        known = self.remnants.items()
        self.remnants = {n: each for n, each in known if each[1].entry.identity != stream}

    def is_over(self, name: str) -> bool:
        """Whether all that a dropped constraint has freed has ended, or is forbidden again."""
        remnant, owner = self.remnants[name]
        heartbeat = self.queue.heartbeat
        if heartbeat + 1 >= remnant.until or not remnant.by:
            return heartbeat + 1 >= remnant.until
        other = owner.orderings.get(remnant.by)
        if other is None:  # which could be dropped once this was over
            return True
        heartbeat = min(heartbeat, owner.queue.heartbeat)
        place = owner.arrived if other.constraint.is_of_rows else heartbeat + 1
        if isinstance(other, Ordering):
            bound = other.bound(place)
            return remnant.least is None or (bound is not None and bound >= remnant.least)
        return other.widened.reach(place) >= remnant.reach

    def forbidden_by(self, name: str) -> tuple[int | None, tuple[Value, ...], int]:
        """What a constraint forbids in all that is to come, whatever k becomes: what is below a
        bound, or some values; and its reach."""
        seen = self.orderings[name]
        place = self._least_place(seen.constraint)
        reach = seen.widened.reach(place)
        if isinstance(seen, Ordering):
            return seen.bound(place), (), reach
        return None, seen.forbidden(place), reach

    def age_anew(self) -> None:
        """What a stream that it references has seen may have made k larger."""
        for name, each in self.orderings.items():
            if isinstance(each, References):
                self.queue.ages[name].use(each.widened.within, each.widened.narrowed)

    def _least_place(self, constraint: Constraint) -> int:
        """No tuple that is to come has a smaller place, nor one of a stream that it references."""
        if constraint.is_of_rows:
            return self.arrived
        target = self.targets.get(constraint.name, self)
        return min(self.queue.heartbeat, target.queue.heartbeat) + 1

    def _bound(self) -> None:
        """What is known of tuples that are to come holds after the largest time so far."""
        for name, ordering in self.orderings.items():
            if isinstance(ordering, Occurring):
                ordering.catch_up(self._least_place(ordering.constraint))
                if isinstance(ordering, Clusters):
                    self._close(ordering)
                else:
                    self._age(name, ordering)
                continue
            bound = ordering.bound(self._least_place(ordering.constraint))
            if bound is not None and self.largest is not None:
                history = self.queue.bounds.setdefault(ordering.constraint.column, Bounds())
                history.note(self.largest, bound)

    def _close(self, clusters: Clusters) -> None:
        """Values that no tuple to come has are closed for all after the largest time so far."""
        if self.largest is not None:
            closings = self.queue.closings.setdefault(clusters.constraint.column, Closings())
            closings.note(self.largest, clusters.close(self._least_place(clusters.constraint)))

    def _age(self, name: str, occurring: Occurring) -> None:
        """What has come so far is as old as it is; of those that reference another stream that
        holds after the largest time of that."""
        age = self.queue.ages[name]
        age.since = occurring.since
        age.use(occurring.widened.within, occurring.widened.narrowed)
        age.came(self.arrived, self.queue.heartbeat + 1)
        read = self.targets.get(name) if occurring.constraint.target else self
        if read is not None and read.largest is not None:
            age.note(self.arrived, read.largest)

    def violating_page_of(
        self, broken: pa.Table | None, missed_by: str, ahead: pa.Table | None
    ) -> Page | None:
        """The page of those that are too far ahead, which no query misses, and of those that broke
        a constraint or contradicted a punctuation."""
        found = [(each, by) for each, by in ((ahead, ""), (broken, missed_by)) if each is not None]
        if not found:
            return None
        told = pa.array([by for each, by in found for _ in range(each.num_rows)], pa.string())
        rows = pa.concat_tables([each for each, _ in found])
        rows = rows.append_column(pa.field(MISSED_BY, pa.string()), told)
        return self._aside_page(rows, self._place_after(self.violating_count, rows.num_rows))

    @property
    def is_punctuated(self) -> bool:
        """Whether there are punctuations, or may be."""
        return bool(self.punctuations) or self.entry.punctuation_column is not None

    def has_been_punctuated(self, on_violation: str, remembered: Remembered) -> None:
        """Punctuations have come: no tuple with a time after the largest so far matches them."""
        self.punctuations[on_violation] = remembered
        after = BEGINNING - 1 if self.largest is None else self.largest
        self.queue.punctuations.note(after, tuple(all_patterns(self.punctuations)))

    def violating(self, last_rows: int | None = None) -> pa.Table:
        """The tuples that broke a constraint, each with the name of that and who goes on without
        it: the last, or all that are kept."""
        schema = violating_schema(self.entry.schema)
        if last_rows is None:
            return _rows_of(self.violating_log.kept, schema)
        return _last_rows(self.violating_log.kept, schema, last_rows)

    def page_of(self, admitted: Admitted) -> Page | None:
        """The page for the queue."""
        if admitted.page is None:
            return None
        return Page.of(self.queue.store, admitted.page, is_sorted=True)

    def late_page_of(self, admitted: Admitted) -> Page | None:
        """The page of those that came too late."""
        if admitted.late is None:
            return None
        return self._aside_page(admitted.late, self.late_place(admitted.late.num_rows))

    def _aside_page(self, table: pa.Table, place: dict[str, Any]) -> Page:
        rows, size = table.num_rows, table.nbytes
        return Page(self.queue.store, rows=rows, bytes_=size, **place, table=table)

    def late_place(self, rows: int) -> dict[str, Any]:
        """What stands for the times of so many more late tuples: how many came before."""
        return self._place_after(self.late_count, rows)

    def _place_after(self, count: int, rows: int) -> dict[str, Any]:
        return {"first": count, "last": count + rows - 1, "last_end": None, "is_sorted": True}

    @property
    def is_kept(self) -> bool:
        """Whether it is what a drop point keeps of a stream."""
        return self.entry.identity.is_kept

    @property
    def admission(self) -> Admission:
        """How far the stream is, by which tuples are admitted or late."""
        reached = self.largest, self.arrived, self.queue.heartbeat, self.disorder
        return Admission(self.entry, self.tick_microseconds, *reached)

    @property
    def promise(self) -> int:
        """Nothing at or before this time follows, by what has come and the delay."""
        return self.admission.promise(self.largest)

    def has_come(self, largest: int | None, arrived: int, heartbeat: int) -> None:
        """Tuples have come, and the stream is this far now."""
        self.last_arrival_seconds = time.monotonic()
        if largest != self.largest:
            self.largest_seconds = self.last_arrival_seconds
        for age in self.queue.ages.values():
            age.came(self.arrived, self.queue.heartbeat + 1)
        self.largest, self.arrived = largest, arrived
        self.queue.advance(heartbeat)

    @property
    def _goes_by_the_clock(self) -> bool:
        column = self.entry.timestamp_column
        return goes_by_the_clock(self.entry.schema, column, self.tick_microseconds)

    def idle_promise(self, now_seconds: float) -> int:
        """What is promised of a silent stream: its largest time was now when it came, and has gone
        on since as the wall clock has."""
        if self.largest is None or not self._goes_by_the_clock:
            return self.queue.heartbeat
        passed = int((now_seconds - self.largest_seconds) * 1e6) // self.tick_microseconds
        return self.admission.promise(self.largest + passed)

    def now_ticks(self) -> int:
        """The wall clock in ticks."""
        return time.time_ns() // 1000 // self.tick_microseconds

    @property
    def late(self) -> pa.Table:
        """The late rows that are kept, as they came."""
        return concatenated(self.late_log.kept, arrow_schema(self.entry.schema))

    def last_late(self, rows: int) -> pa.Table:
        """The last late tuples; no page is read for it that has none of them."""
        return _last_rows(self.late_log.kept, arrow_schema(self.entry.schema), rows)


def _last_rows(pages: Sequence[Page], schema: pa.Schema, rows: int) -> pa.Table:
    """The last rows of some pages, of which no other is read."""
    first, wanted = len(pages), rows
    while first and wanted > 0:
        first -= 1
        wanted -= pages[first].rows
    table = _rows_of(pages[first:], schema)
    return table.slice(max(0, table.num_rows - rows))


def _rows_of(pages: Sequence[Page], schema: pa.Schema) -> pa.Table:
    """The rows of some pages, of which those of earlier versions may have fewer columns."""
    tables = [schema.empty_table(), *(page.table for page in pages)]
    return pa.concat_tables(tables, promote_options="default")


@dataclass(frozen=True)
class Changing:
    """A change of a relation before it happens: its page for each queue, and what is true then."""

    pages: list[tuple[Queue, Page]]
    last_change: int
    changed_rows: int
    counts: Counter[Hashable] | None
    """How many of each row come or go, where that was looked at."""
    bags: Bags | None = None
    """The rows of the keys that are touched, where there is a key that is looked at."""


@dataclass
class RelationIntake:
    """One base relation: its changes go to one queue for each time at which readers began."""

    entry: RelationEntry
    queues: list[Queue]
    reader: Reader
    """Keeps the relation's content."""
    last_change: int = BEGINNING
    changed_rows: int = 0
    """How many rows were put in or taken out so far."""
    _held: Counter[Hashable] | None = None
    _by_key: KeyedRows | None = None

    @property
    def queue(self) -> Queue:
        """The queue that was there from the beginning."""
        return self.queues[0]

    def refuse_conflict(self, heartbeat: int) -> None:
        """Refuses that the last instant ends with a promise while a key has several rows."""
        is_open = self.entry.checks_key and self.entry.has_changes
        if is_open and self.queue.heartbeat < self.last_change <= heartbeat:
            self._keyed().refuse_crowded(self.last_change)

    def changing(self, rows: pa.Table, times: Ints, weights: Ints) -> Changing:
        """What adds (weight 1) and removes (weight -1) rows at times after the relation's promise;
        nothing has happened yet."""
        if rows.num_rows == 0:
            return Changing([], self.last_change, self.changed_rows, None)
        self._refuse_past(times)
        changes, counts, bags = self._checked(Changes(rows, times, weights))
        rows, times, weights = changes.rows, changes.times, changes.weights
        if rows.num_rows == 0:  # all were there
            return Changing([], self.last_change, self.changed_rows, None)
        ends = np.full(rows.num_rows, FOREVER, dtype=np.int64)
        columns = [pa.array(times), pa.array(ends), pa.array(weights), *rows.columns]
        page = pa.Table.from_arrays(columns, schema=relation_page_schema(self.entry.schema))
        pages = [(queue, Page.of(queue.store, page)) for queue in self.queues]
        last = max(self.last_change, int(times.max()))
        return Changing(pages, last, self.changed_rows + rows.num_rows, counts, bags)

    def has_changed(
        self,
        last_change: int,
        changed_rows: int,
        counts: Counter[Hashable] | None,
        bags: Bags | None = None,
    ) -> None:
        """Rows have come or gone."""
        self.last_change, self.changed_rows = last_change, changed_rows
        if self._held is not None:
            self._held.update(counts or {})
        if self._by_key is not None:
            self._by_key.put(bags or {})

    def _checked(self, changes: Changes) -> tuple[Changes, Counter[Hashable] | None, Bags | None]:
        """What is done of some changes, and what is held of their rows then, where that is looked
        at; what cannot be is refused."""
        if self.entry.on_conflict != "replace" and not changes.weights.all():
            raise InputError(
                f"relation {self.entry.name}: a change of weight 0 takes away what has its key: "
                "declare the PRIMARY KEY with ON CONFLICT REPLACE"
            )
        if not self.entry.checks_key:
            return changes, self._counted(changes.rows, changes.times, changes.weights), None
        is_first = self.changed_rows == 0 and not (changes.weights < 0).any()
        is_first = is_first and bool((changes.times == changes.times[0]).all())
        if is_first and can_be_first(self.entry):
            at = int(changes.times[0])
            rows = first_rows(self.entry, changes.rows, at)
            some = slice(0, rows.num_rows)
            return Changes(rows, changes.times[some], changes.weights[some]), None, None
        is_over = not self.entry.has_changes  # then the instant may end at any time
        done, bags = self._keyed().changed(changes, self.last_change, is_over)
        return done, None, bags

    def _keyed(self) -> KeyedRows:
        """What the relation holds by its keys."""
        if self._by_key is None:
            content, names = self.content(), self.queue.schema.names[3:]
            self._by_key = KeyedRows(self.entry)
            self._by_key.fill(content.select(names), integers(content["_w"]).tolist())
        return self._by_key

    def _refuse_past(self, times: Ints) -> None:
        earliest = int(times.min())
        if earliest <= self.queue.heartbeat:
            raise InputError(
                f"relation {self.entry.name}: a change at {earliest} comes after the promise that "
                f"nothing at or before {self.queue.heartbeat} will follow"
            )

    def _counted(self, rows: pa.Table, times: Ints, weights: Ints) -> Counter[Hashable] | None:
        """How many of each row come or go, if that is looked at."""
        if self._held is None and not (weights < 0).any():
            return None
        held = self._held = self._content() if self._held is None else self._held
        changes: Counter[Hashable] = Counter()
        for row, weight, when in zip(rows_of(rows), weights.tolist(), times.tolist(), strict=True):
            changes[row] += weight
            if held[row] + changes[row] < 0:
                raise InputError(
                    f"relation {self.entry.name}: at {when} a row is removed that is not there: "
                    f"{outside_row(row, self.entry.schema.types)}"
                )
        return changes

    def _content(self) -> Counter[Hashable]:
        held: Counter[Hashable] = Counter()
        table = self.changes()
        weights = integers(table["_w"]).tolist()
        for row, weight in zip(
            rows_of(table.select(range(3, table.num_columns))), weights, strict=True
        ):
            held[row] += weight
        return held

    def content(self, until: int = END) -> pa.Table:
        """The rows there are after all changes up to a time, each once with its number."""
        changes = self.changes()
        past = changes.filter(pa.array(integers(changes["_ts"]) <= until))
        return still_open(past, past.column_names[3:], END)

    def changes(self) -> pa.Table:
        """The changes that are remembered; older ones are summed up in one."""
        return concatenated(self.queue.content(END), self.queue.schema)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as tuples."""
    columns = [_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _values(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = python_values(column)
    if pa.types.is_floating(column.type):
        return [NAN if value != value else value for value in values]
    return values
