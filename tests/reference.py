"""The naive evaluator: what a query means, instant by instant, straight from docs/semantics.md.

At each instant every window is cut by its definition and the SQL is evaluated by nested loops over
lists of tuples. Shares no code with the engine. SAMPLE is refused: it has no one right answer.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from functools import cmp_to_key
from typing import NamedTuple

from tests import reference_values as sql
from tests.reference_matches import Matched, Matches, OfMatch
from tests.reference_parser import Join, SetOperation, Table, ToStream, own_name, parse

BEGINNING = -math.inf
EPOCH = datetime(1970, 1, 1)
# Kinds of expressions whose name is no name of a Python method.
METHODS = {"or": "or_", "and": "and_", "not": "not_", "is null": "is_null", "in list": "in_list"}


class TooMuchWorkError(Exception):
    """More rows were looked at than the caller allows."""


def evaluate(
    query_text,
    streams,
    relations=None,
    views=None,
    tick_microseconds=1,
    on_error="stop",
    most_work=math.inf,
):
    """The signed output of a query to the end of time: sorted (ts or None, weight, row).

    ``streams``: name -> (schema, [(ts, seq, row)]); ``relations``: name -> (schema,
    [(ts or None, +1 or -1, row)]); ``views``: name -> text; a schema is [(column, type)].
    """
    database = Database(
        streams, relations or {}, views or {}, tick_microseconds, on_error, most_work
    )
    plan = database.top_level(query_text)
    output = Counter()
    if plan.is_stream:
        for ts, row in plan.elements():
            output[ts, row] += 1
    else:
        for ts, weight, row in changes(plan):
            output[ts, row] += weight
    return listed(output)


def evaluate_lives(lives, on_error="stop"):
    """The output of a query whose text changed: [(since, text, the arguments after it)].

    Up to the time since which a text is the query's the answer is that of the one before. What that
    held is taken out then, and what the new one holds by then is put in.
    """
    output = Counter()
    ends = [since for since, _, _ in lives[1:]] + [math.inf]
    for (since, text, arguments), end in zip(lives, ends, strict=True):
        is_kept = end == math.inf or Database(*arguments, "skip").top_level(text).is_stream
        for ts, weight, row in evaluate(text, *arguments, on_error):
            at = max(BEGINNING if each is None else each for each in (since, ts))
            if at <= end:
                output[at, row] += weight
                output[end, row] -= 0 if is_kept else weight
    return listed({key: weight for key, weight in output.items() if weight})


def left_out(
    query_text, streams, relations=None, views=None, tick_microseconds=1, most_work=math.inf
):
    """What ON ERROR SKIP leaves out: how the number of rows of each clause changes.

    Sorted (ts or None, weight, (clause,)); None if there is a correlated subquery.
    """
    database = Database(streams, relations or {}, views or {}, tick_microseconds, "skip", most_work)
    database.top_level(query_text)
    if any(getattr(judge, "reads_outer", False) for judge in database.judges):
        return None
    output = Counter()
    for judge in database.judges:
        before = Counter()
        for instant in [BEGINNING, *sorted(judge.judged_at())]:
            now = Counter(clause for clause, _ in judge.left_out(instant))
            output.update({(instant, (c,)): now[c] - before[c] for c in now | before})
            before = now
    return listed({key: weight for key, weight in output.items() if weight})


def listed(output):
    """{(ts, row): weight} in order of time and row."""
    rows = [(None if ts == BEGINNING else ts, weight, row) for (ts, row), weight in output.items()]
    return sorted(rows, key=lambda r: (r[0] is not None, r[0] or 0, sql.order_key(r[2]), r[1]))


def output_names(query_text, streams, relations=None, views=None, tick_microseconds=1):
    """The column names of the query's output; expressions without alias are called _1, _2, …"""
    database = Database(streams, relations or {}, views or {}, tick_microseconds, "skip")
    plan = database.top_level(query_text)
    return [name for _, name in plan.columns]


def changes(plan):
    """The differences of a relation from instant to instant; first what holds at the beginning."""
    before = Counter()
    for instant in [BEGINNING, *sorted(plan.instants())]:
        now = Counter(plan.rows(instant, None))
        for row in before | now:
            if now[row] != before[row]:
                yield instant, now[row] - before[row], row
        before = now


def admit(arrivals, delay):
    """Divides ("tuple", ts, row) and ("advance", ts) into stream elements and late tuples."""
    elements, late = [], []
    largest = promised = BEGINNING
    for seq, (kind, ts, *row) in enumerate(arrivals):
        if kind == "advance":
            promised = max(promised, ts)
        elif ts < largest - delay or ts <= promised:
            late.append((ts, *row))
        else:
            elements.append((ts, seq, *row))
            largest = max(largest, ts)
    return elements, late


class Environment(NamedTuple):
    """What an expression sees: a row, its group, the instant, the enclosing query's row."""

    row: tuple
    group: list | None
    instant: float
    outer: Environment | None
    arrival: tuple = ()
    """When the row came, and as which, if it is an element of a stream."""


class Scope:
    """The columns [(qualifier, name)] an expression may name, here or in the enclosing query."""

    def __init__(self, columns, outer=None):
        self.columns = columns
        self.outer = outer
        self.reads_outer = False

    def has_source(self, name):
        """Whether a source is called so, here or around."""
        is_here = any(q.lower() == name.lower() for q, _ in self.columns)
        return is_here or (self.outer is not None and self.outer.has_source(name))

    def find(self, qualifier, name):
        """(levels up, position) of a column."""
        found = [
            position
            for position, (q, n) in enumerate(self.columns)
            if n.lower() == name.lower() and (qualifier is None or q.lower() == qualifier.lower())
        ]
        if len(found) == 1:
            return 0, found[0]
        if found or self.outer is None:
            raise NameError(f"{'ambiguous' if found else 'unknown'} column {qualifier}.{name}")
        self.reads_outer = True
        levels, position = self.outer.find(qualifier, name)
        return levels + 1, position


# Every plan below has: columns [(qualifier, name)]; is_stream; instants(): all instants at which
# its result can change, perhaps more; moves(): the instants at which one of its inputs moves, as
# Rstream sees it; ends: the columns that hold the end of a window. Relations have rows(instant,
# outer environment); streams have elements().


class Judge:
    """A plan with clauses that may fail; with ``skip`` such rows are left out."""

    skip = False

    def value(self, expression, environment):
        """The value, or FAILED if failures do not stop the query."""
        return sql.attempt(expression, environment) if self.skip else expression(environment)

    def holds(self, condition, environment, clause, aside):
        """Whether a condition is true; the row goes to ``aside`` if it fails."""
        value = self.value(condition, environment)
        if value is sql.FAILED:
            aside.append((clause, environment.row))
        return value is True

    def has_values(self, expressions, environment, clause, aside):
        """Whether none of the expressions fails; the row goes to ``aside`` if one does."""
        fails = self.skip and any(self.value(e, environment) is sql.FAILED for e in expressions)
        if fails:
            aside.append((clause, environment.row))
        return not fails

    def left_out(self, instant):
        """(clause, row) of everything left out at an instant."""
        return self.evaluated(instant, None)[1]

    def judged_at(self):
        """All instants at which that can change."""
        return self.instants()


class StoredStream:
    """A declared stream, in the order of (ts, seq)."""

    is_stream = True
    ends = ()

    def __init__(self, schema, tuples):
        self.columns = [("", name) for name, _ in schema]
        self.in_ticks = schema[0][1] != "TIMESTAMP"
        self.ordered = [(ts, row) for ts, _, row in sorted(tuples, key=lambda t: t[:2])]

    def elements(self):
        return self.ordered

    def instants(self):
        return set()

    moves = instants


class StoredRelation:
    """A declared relation: rows come and go."""

    is_stream = False
    ends = ()

    def __init__(self, schema, events):
        self.columns = [("", name) for name, _ in schema]
        self.events = [(BEGINNING if ts is None else ts, sign, row) for ts, sign, row in events]

    def rows(self, instant, outer):
        content = Counter()
        for ts, sign, row in self.events:
            if ts <= instant:
                content[row] += sign
        assert all(count >= 0 for count in content.values()), "removed a row that is not there"
        return list(content.elements())

    def instants(self):
        return {ts for ts, _, _ in self.events if ts != BEGINNING}

    moves = instants


class Windowed(Judge):
    """A window over a stream: the relation of the elements it holds."""

    is_stream = False
    ends = ()

    def __init__(self, stream, window, keep, partition, skip, spend):
        self.stream, self.spend = stream, spend
        self.columns = stream.columns
        self.window = window
        self.partition = partition
        self.skip = skip
        self.kept, self.failed = [], []
        for ts, row in stream.elements():
            aside = []
            environment = Environment(row, None, BEGINNING, None)
            if self.holds(keep, environment, "WHERE", aside):
                self.kept.append((ts, row))
            self.failed += [(ts, failure) for failure in aside]

    def left_out(self, instant):
        return [failure for ts, failure in self.failed if ts <= instant]

    def judged_at(self):
        return {ts for ts, _ in self.failed}

    def rows(self, instant, outer):
        return [self.kept[index][1] for index in self.content(instant)]

    def arrivals(self, instant):
        """(time, number of arrival if there is one) of each of them."""
        return [self.arrival(index) for index in self.content(instant)]

    def arrival(self, index):
        return self.kept[index][0], index if isinstance(self.stream, StoredStream) else 0

    def content(self, instant):
        """The positions (in kept) of the elements in the window."""
        self.spend(len(self.kept))
        cut = self.range_content if self.window.kind == "range" else self.rows_content
        return [] if instant == BEGINNING else cut(instant)

    def range_content(self, instant):
        length, slide = self.window.length, self.window.slide
        if slide:
            instant = instant // slide * slide
        start = BEGINNING if length is None else instant - length
        return [i for i, (ts, _) in enumerate(self.kept) if start <= ts <= instant]

    def rows_content(self, instant):
        parts = {}
        for index, (ts, row) in enumerate(self.kept):
            if ts <= instant:
                parts.setdefault(self.partition(row), []).append(index)
        slide = self.window.slide or 1
        whole = [part[: len(part) // slide * slide] for part in parts.values()]
        return sorted(index for part in whole for index in part[-self.window.length :])

    def instants(self):
        times = {ts for ts, _ in self.kept}
        length, slide = self.window.length, self.window.slide
        if self.window.kind == "range" and slide:
            return self.stream.instants() | set(self.slide_instants(times))
        if self.window.kind == "range" and length is not None:
            times |= {ts + length + 1 for ts in times}
        return self.stream.instants() | times

    def slide_instants(self, times):
        """All multiples of the slide from before each element to after it has left."""
        length, slide = self.window.length or 0, self.window.slide
        for ts in times:
            first = ts // slide * slide
            yield from range(first, ts + length + 2 * slide + 1, slide)

    def moves(self):
        result = set()
        before = []
        slides = self.window.kind == "range" and self.window.slide
        for instant in sorted(self.instants()):
            now = self.content(instant)
            if now != before or (slides and now and instant % slides == 0):
                result.add(instant)
            before = now
        return result | self.stream.moves()


class Until(Windowed):
    """The elements of a stream, each until a time that it tells."""

    def __init__(self, bound, time_of, *arguments):
        super().__init__(*arguments)
        self.time_of, kept = time_of, self.kept
        self.kept, self.bounds = [], []
        for ts, row in kept:
            found = self.value(bound, Environment(row, None, BEGINNING, None))
            if found is sql.FAILED:
                self.failed.append((ts, ("UNTIL", row)))
            elif found is not None:
                self.kept.append((ts, row))
                self.bounds.append(as_moment(found))

    def content(self, instant):
        self.spend(len(self.kept))
        return [
            index
            for index, (ts, _) in enumerate(self.kept)
            if ts <= instant and self.time_of(instant, self.bounds[index]) < self.bounds[index]
        ]

    def instants(self):
        ends = set()
        for (ts, _), bound in zip(self.kept, self.bounds, strict=True):
            unit = self.time_of(1, bound) - self.time_of(0, bound)
            last = (bound - self.time_of(0, bound)) // unit
            ends |= {ts, last, last + 1}
        return self.stream.instants() | ends


class Hopping(Windowed):
    """Windows [start, start + length) over a stream; rows have the bounds of theirs behind them."""

    def __init__(self, bound, *arguments):
        super().__init__(*arguments)
        self.columns = [*self.stream.columns, ("", "window_start"), ("", "window_end")]
        self.ends = (len(self.columns) - 1,)
        self.bound = bound

    def rows(self, instant, outer):
        return [
            (*self.kept[index][1], self.bound(start), self.bound(start + self.window.length))
            for index, start in self.content(instant)
        ]

    def arrivals(self, instant):
        return [self.arrival(index) for index, _ in self.content(instant)]

    def content(self, instant):
        """(position in kept, begin of a window) for all windows that are there."""
        self.spend(len(self.kept))
        return [
            (index, start)
            for index, (ts, _) in enumerate(self.kept)
            for start in self.starts(ts)
            if ts <= instant < start + self.window.length
        ]

    def starts(self, ts):
        """When the windows begin that an element is in."""
        length, slide, offset = self.window.length, self.window.slide, self.window.offset
        return [s for s in range(ts - length + 1, ts + 1) if (s - offset) % slide == 0]

    def instants(self):
        ends = {s + self.window.length for ts, _ in self.kept for s in self.starts(ts)}
        return self.stream.instants() | {ts for ts, _ in self.kept} | ends


class InSessions(Hopping):
    """Sessions: elements of a partition with less than a gap between each and the next."""

    def rows(self, instant, outer):
        return [
            (*self.kept[index][1], self.bound(start), self.bound(end))
            for index, start, end in self.content(instant)
        ]

    def arrivals(self, instant):
        return [self.arrival(index) for index, _, _ in self.content(instant)]

    def content(self, instant):
        """(position in kept, begin and end of its session) for all sessions that are there."""
        self.spend(len(self.kept))
        parts = {}
        for index, (ts, row) in enumerate(self.kept):
            if ts <= instant:
                parts.setdefault(self.partition(row), []).append(index)
        return sorted(each for part in parts.values() for each in self.last_session(part, instant))

    def last_session(self, part, instant):
        """The session of a partition that is not over, if there is one."""
        times = [self.kept[index][0] for index in part]
        gap, begin = self.window.length, len(part) - 1
        if times[-1] + gap <= instant:
            return []
        while begin and times[begin] - times[begin - 1] < gap:
            begin -= 1
        return [(index, times[begin], times[-1] + gap) for index in part[begin:]]

    def instants(self):
        times = {ts for ts, _ in self.kept}
        return self.stream.instants() | times | {ts + self.window.length for ts in times}


class Joined(Judge):
    """A join of two relations by nested loops."""

    is_stream = False

    def __init__(self, kind, left, right, condition, skip, spend):
        self.kind, self.left, self.right, self.condition = kind, left, right, condition
        self.skip, self.spend = skip, spend
        self.columns, self.ends = list(left.columns), left.ends
        if kind not in ("semi", "anti"):
            self.ends += tuple(len(self.columns) + end for end in right.ends)
            self.columns += right.columns

    def rows(self, instant, outer):
        return self.evaluated(instant, outer)[0]

    def evaluated(self, instant, outer):
        """(rows, what is left out)."""
        lefts, rights = self.left.rows(instant, outer), self.right.rows(instant, outer)
        aside = []
        self.spend(len(lefts) * len(rights))
        matches = [
            (i, j)
            for i, left in enumerate(lefts)
            for j, right in enumerate(rights)
            if self.holds(
                self.condition, Environment(left + right, None, instant, outer), "ON", aside
            )
        ]
        return self.joined(lefts, rights, matches), aside

    def joined(self, lefts, rights, matches):
        """The rows that follow from the pairs of positions that match."""
        matched_left = {i for i, _ in matches}
        if self.kind in ("semi", "anti"):
            wanted = self.kind == "semi"
            return [left for i, left in enumerate(lefts) if (i in matched_left) == wanted]
        result = [lefts[i] + rights[j] for i, j in matches]
        if self.kind in ("left", "full"):
            nulls = (None,) * len(self.right.columns)
            result += [left + nulls for i, left in enumerate(lefts) if i not in matched_left]
        if self.kind in ("right", "full"):
            nulls = (None,) * len(self.left.columns)
            matched_right = {j for _, j in matches}
            result += [nulls + row for j, row in enumerate(rights) if j not in matched_right]
        return result

    def instants(self):
        return self.left.instants() | self.right.instants()

    def moves(self):
        return self.left.moves() | self.right.moves()


class Lateral(Joined):
    """The rows of a subquery for each row of the left side, which it sees as the enclosing one."""

    reads_outer = True  # what it leaves out follows from pairs that are never looked at together

    def evaluated(self, instant, outer):
        aside, result = [], []
        for row in self.left.rows(instant, outer):
            rights = self.right.rows(instant, Environment(row, None, instant, outer))
            self.spend(1 + len(rights))
            pairs = [Environment(row + right, None, instant, outer) for right in rights]
            found = [e.row for e in pairs if self.holds(self.condition, e, "ON", aside)]
            nulls = [row + (None,) * len(self.right.columns)] if self.kind == "left" else []
            result += found or nulls
        return result, aside


class Selected(Judge):
    """SELECT … FROM … WHERE … GROUP BY … HAVING; ``subqueries`` are those in its expressions."""

    is_stream = False

    def __init__(self, source, subqueries, skip, spend):
        self.source, self.subqueries = source, subqueries
        self.skip, self.spend = skip, spend
        self.columns, self.outputs, self.ends = [], [], ()
        self.arguments = []  # of the aggregate functions
        self.where = self.having = None
        self.keys = None  # None: no aggregation; []: one group, even if it is empty
        self.distinct = False
        self.rankings = []
        self.compared, self.compared_groups = [], []  # the sides of comparisons with the time
        self.known_instants = None

    def rows(self, instant, outer):
        return self.evaluated(instant, outer)[0]

    def evaluated(self, instant, outer):
        """(rows, what is left out)."""
        aside = []
        found = [Environment(row, None, instant, outer) for row in self.source.rows(instant, outer)]
        if (self.rankings or self.keys is not None) and hasattr(self.source, "arrivals"):
            arrivals = self.source.arrivals(instant)
            pairs = zip(found, arrivals, strict=True)
            found = [e._replace(arrival=arrival) for e, arrival in pairs]
        self.spend(len(found))
        if self.where:
            found = [e for e in found if self.holds(self.where, e, "WHERE", aside)]
        if self.keys is not None:
            used = self.keys + self.arguments
            found = [e for e in found if self.has_values(used, e, "GROUP BY", aside)]
            found = self.grouped(found, instant, outer)
        if self.having:
            found = [e for e in found if self.holds(self.having, e, "HAVING", aside)]
        wanted = self.outputs + [value for ranking in self.rankings for value in ranking.wanted()]
        found = [e for e in found if self.has_values(wanted, e, "SELECT", aside)]
        result = [tuple(output(e) for output in self.outputs) for e in found]
        if self.rankings:
            result = self.ranked(found, result)
        return (list(dict.fromkeys(result)) if self.distinct else result), aside

    def ranked(self, environments, rows):
        """The rows with their ranks where these belong; a LIMIT keeps those of the first."""
        orders = []
        for e, row in zip(environments, rows, strict=True):
            others = [value for ranking in self.rankings for value in ranking.values(e)]
            orders.append((*e.arrival, *sql.order_key((*row, *others))))
        kept, ranks = list(range(len(rows))), []
        for ranking in self.rankings:
            ranks.append(ranking.ranks(environments, orders))
            said = (sql.order_key((ranks[-1][i],)) for i in range(len(rows)))
            orders = [(*order, *own) for order, own in zip(orders, said, strict=True)]
            if ranking.limit is not None:
                kept = [i for i in kept if ranks[-1][i] <= ranking.limit]
        result = []
        for i in kept:
            row = list(rows[i])
            for ranking, found in zip(self.rankings, ranks, strict=True):
                if ranking.limit is None:
                    row[ranking.place] = found[i]
            result.append(tuple(row))
        return result

    def grouped(self, environments, instant, outer):
        """One environment a group; its row is any row of the group, for the grouping columns."""
        groups = {} if self.keys else {(): []}
        for environment in environments:
            key = tuple(key(environment) for key in self.keys)
            groups.setdefault(key, []).append(environment)
        return [
            Environment(members[0].row if members else (), members, instant, outer)
            for members in groups.values()
        ]

    def instants(self):
        if self.known_instants is None:
            found = self.source.instants().union(*(s.instants() for s in self.subqueries))
            if self.compared:
                found = found | self.turns(found, self.compared, self.ungrouped)
            if self.compared_groups:
                found = found | self.turns(found, self.compared_groups, self.groups)
            self.known_instants = found
        return self.known_instants

    def ungrouped(self, instant):
        """What WHERE is asked of."""
        return [Environment(row, None, instant, None) for row in self.source.rows(instant, None)]

    def groups(self, instant):
        """What HAVING is asked of."""
        found = self.ungrouped(instant)
        if hasattr(self.source, "arrivals"):
            pairs = zip(found, self.source.arrivals(instant), strict=True)
            found = [e._replace(arrival=arrival) for e, arrival in pairs]
        if self.where:
            found = [e for e in found if self.holds(self.where, e, "WHERE", [])]
        used = self.keys + self.arguments
        found = [e for e in found if self.has_values(used, e, "GROUP BY", [])]
        return self.grouped(found, instant, None)

    def turns(self, instants, compared, asked):
        """The instants at which comparisons with the time turn, for all rows there ever are."""
        found, seen = set(), set()
        for instant in [BEGINNING, *sorted(instants)]:
            for e in asked(instant):
                for left, right in compared:
                    far = [distance(left, right, e._replace(instant=at)) for at in (0, 1)]
                    if None not in far and tuple(far) not in seen:
                        seen.add(tuple(far))
                        last = -far[0] // (far[1] - far[0])
                        found |= {last, last + 1}
        return found

    def moves(self):
        return self.source.moves().union(*(s.moves() for s in self.subqueries))


def distance(left, right, environment):
    """How far one side of a comparison is above the other, in microseconds or as it is."""
    values = [sql.attempt(side, environment) for side in (left, right)]
    if None in values or sql.FAILED in values:
        return None
    return in_microseconds(in_microseconds(values[0]) - in_microseconds(values[1]))


def in_microseconds(value):
    """A length of time as a number; anything else as it is, a DATE as its midnight."""
    is_length = isinstance(value, timedelta)
    return value // timedelta(microseconds=1) if is_length else as_moment(value)


def as_moment(value):
    """A DATE as its midnight."""
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return datetime.combine(value, datetime.min.time()) if is_day else value


class Ranking:
    """A rank of the rows of a SELECT: a column of it, or what its LIMIT goes by."""

    def __init__(self, function, partition, order, place=None, limit=None, given=(), frame=None):
        self.function, self.partition, self.order = function, partition, order
        self.place, self.limit = place, limit
        self.given, self.frame = given, frame

    def wanted(self):
        """What rows are divided and ordered by, and what is asked of them."""
        given = [] if self.function == "ntile" else self.given[:1]
        return [*self.partition, *(key for key, _, _ in self.order), *given]

    def values(self, e):
        return [value(e) for value in self.wanted()]

    def ranks(self, environments, orders):
        """The rank of each row; ``orders`` tells rows apart that the order does not."""
        parts, keys = {}, {}
        for i, e in enumerate(environments):
            parts.setdefault(tuple(key(e) for key in self.partition), []).append(i)
            keys[i] = tuple(key(e) for key, _, _ in self.order)
        found = {}
        for part in parts.values():
            part.sort(key=cmp_to_key(lambda i, j: self.compared(keys, orders, i, j)))
            if self.frame:
                rows = [environments[i] for i in part]
                said = self.over(rows, [keys[i] for i in part])
                found |= dict(zip(part, said, strict=True))
                continue
            first, different = {}, 0
            for position, i in enumerate(part, 1):
                if keys[i] not in first:
                    first[keys[i]] = position
                    different += 1
                places = {"row_number": position, "rank": first[keys[i]], "dense_rank": different}
                found[i] = places[self.function]
        return found

    def over(self, rows, keys):
        """What is said of each row of a partition, which are in order."""
        if self.function == "ntile":
            parts = self.given[0](None)
            sizes = [len(rows) // parts + (n < len(rows) % parts) for n in range(parts)]
            return [n for n, size in enumerate(sizes, 1) for _ in range(size)]
        if self.function in ("lag", "lead"):
            far = self.given[1](None) if len(self.given) > 1 else 1
            places = [i - far if self.function == "lag" else i + far for i in range(len(rows))]
            return [self.given[0](rows[p]) if 0 <= p < len(rows) else None for p in places]
        return [self.of_frame([rows[j] for j in self.inside(i, keys)]) for i in range(len(rows))]

    def of_frame(self, rows):
        values = [self.given[0](e) for e in rows] if self.given else [True] * len(rows)
        if self.function in ("first_value", "last_value"):
            return values[0 if self.function == "first_value" else -1] if values else None
        return sql.aggregate(self.function, values)

    def inside(self, i, keys):
        """Which rows the frame of one holds."""
        unit, start, end = self.frame
        if unit == "rows":
            first = 0 if start is None else max(i + start, 0)
            return range(first, len(keys) if end is None else min(i + end + 1, len(keys)))
        return [
            j
            for j in range(len(keys))
            if self.reaches(i, j, keys, start, -1) and self.reaches(i, j, keys, end, 1)
        ]

    def reaches(self, i, j, keys, bound, sign):
        """Whether a row is not beyond the start (sign -1) or the end of the frame of another."""
        if bound is None:
            return True
        side = sign * (keys[i] != keys[j]) * (1 if j > i else -1)
        if not bound or keys[i][0] is None:
            return side <= 0
        if keys[j][0] is None:
            return side < 0
        away = keys[j][0] - keys[i][0]
        away = -away if self.order[0][1] else away
        return away >= bound if sign < 0 else away <= bound

    def compared(self, keys, orders, i, j):
        for (_, descends, nulls_first), x, y in zip(self.order, keys[i], keys[j], strict=True):
            if x == y:
                continue
            if x is None or y is None:
                return -1 if (x is None) == nulls_first else 1
            return -1 if (x < y) != descends else 1
        return (orders[i] > orders[j]) - (orders[i] < orders[j])


class Combined:
    """UNION, EXCEPT or INTERSECT; NULLs are equal."""

    is_stream = False

    def __init__(self, operation, keep_all, left, right):
        self.operation, self.keep_all, self.left, self.right = operation, keep_all, left, right
        self.columns = left.columns
        both = [end for end in left.ends if end in right.ends]
        self.ends = left.ends if operation == "except" else tuple(both)
        assert len(left.columns) == len(right.columns), "branches differ in width"

    def rows(self, instant, outer):
        left = Counter(self.left.rows(instant, outer))
        right = Counter(self.right.rows(instant, outer))
        if self.operation == "union":
            result = left + right
        elif self.keep_all:
            result = left - right if self.operation == "except" else left & right
        else:
            present = self.operation == "intersect"
            result = Counter(row for row in left if (row in right) == present)
        return list(result.elements() if self.keep_all else result.keys())

    def instants(self):
        return self.left.instants() | self.right.instants()

    def moves(self):
        return self.left.moves() | self.right.moves()


class Streamed:
    """Istream, Dstream or Rstream of a relation."""

    is_stream = True
    ends = ()

    def __init__(self, kind, relation):
        self.kind, self.relation = kind, relation
        self.columns = relation.columns
        self.instants, self.moves = relation.instants, relation.moves
        self.ordered = None

    def elements(self):
        if self.ordered is None:
            self.ordered = sorted(self.computed(), key=lambda e: (e[0], sql.order_key(e[1])))
        return self.ordered

    def computed(self):
        if self.kind == "rstream":
            return [(t, row) for t in self.moves() for row in self.relation.rows(t, None)]
        sign = 1 if self.kind == "istream" else -1
        return [
            (instant, row)
            for instant, weight, row in changes(self.relation)
            if instant != BEGINNING
            for _ in range(sign * weight)
        ]


class Final:
    """EMIT FINAL: the rows of a SELECT in the last instant of their first window, when it ends.

    Behind its columns the SELECT has the ends of the windows that a row is of.
    """

    is_stream = True

    ends = ()

    def __init__(self, selected, instant_of):
        self.relation, self.instant_of = selected, instant_of
        self.columns = selected.columns
        self.instants, self.moves = selected.instants, selected.moves

    def elements(self):
        width = len(self.columns)
        found = []
        for instant in self.instants():
            for row in self.relation.rows(instant - 1, None):
                ends = [self.instant_of(end) for end in row[width:] if end is not None]
                if ends and min(ends) == instant:
                    found.append((instant, row[:width]))
        return sorted(found, key=lambda e: (e[0], sql.order_key(e[1])))


class Named:
    """A plan under an alias."""

    def __init__(self, plan, alias, names=()):
        self.is_stream, self.plan, self.ends = plan.is_stream, plan, plan.ends
        if hasattr(plan, "arrivals"):
            self.arrivals = plan.arrivals
        self.columns = [(alias, name) for name in names or [name for _, name in plan.columns]]
        self.instants, self.moves = plan.instants, plan.moves
        if plan.is_stream:
            self.elements = plan.elements
        else:
            self.rows = plan.rows


class Timed:
    """A stream through its window under an alias, with the times of its elements."""

    is_stream = False

    def __init__(self, plan, alias, bound):
        self.plan, self.bound, self.ends = plan, bound, plan.ends
        self.columns = [*plan.columns, (alias, TSTAMP)]
        self.instants, self.moves, self.arrivals = plan.instants, plan.moves, plan.arrivals

    def rows(self, instant, outer):
        pairs = zip(self.plan.rows(instant, outer), self.arrivals(instant), strict=True)
        return [(*row, self.bound(arrival[0])) for row, arrival in pairs]


TSTAMP = "tstamp()"
CLOCKS = ("current_timestamp", "current_time")


def as_ticks(instant):
    """CURRENT_TIME; the beginning lies before all that is compared with it."""
    return -(10**15) if instant == BEGINNING else instant


def asked_times(part):
    """The sources whose times an expression, a query or a part of FROM asks for."""
    if isinstance(part, (tuple, list)):
        if list(part[:2]) == ["call", "tstamp"]:
            return {part[2][0][2].lower()}
        return set().union(*map(asked_times, part))
    if is_dataclass(part):
        return set().union(*(asked_times(getattr(part, each.name)) for each in fields(part)))
    return set()


class Database:
    """Turns syntax into plans, knowing the declared streams, relations and views."""

    def __init__(
        self, streams, relations, views, tick_microseconds, on_error="stop", most_work=math.inf
    ):
        self.tick_microseconds = tick_microseconds
        self.skip = on_error == "skip"
        self.judges = []
        self.work_left = most_work
        self.stored = {n.lower(): StoredStream(*s) for n, s in streams.items()}
        self.stored |= {n.lower(): StoredRelation(*r) for n, r in relations.items()}
        self.views = {name.lower(): text for name, text in views.items()}

    def spend(self, rows):
        """Counts the rows that are looked at."""
        self.work_left -= rows + 1
        if self.work_left < 0:
            raise TooMuchWorkError

    def top_level(self, text):
        """The plan of a query or view, with the default Istream."""
        return self.plan(self.with_default(parse(text, self.tick_microseconds)), None)

    # Defaults.

    def with_default(self, query):
        """A query that is no aggregation and names a stream gets an Istream."""
        if isinstance(query, Matches):
            return query
        if isinstance(query, ToStream):
            return self.outright(query)
        selects = branches(query)
        aggregation = any(is_aggregation(select) or is_ranked(select) for select in selects)
        streams = any(self.names_stream(select.source) for select in selects)
        return ToStream("istream", query) if streams and not aggregation else query

    def outright(self, query):
        """RELATION is the query itself, without a default; STREAM an Istream, unless it is one."""
        if query.kind != "stream":
            return query
        return query.query if says_stream(query.query) else ToStream("istream", query.query)

    def names_stream(self, source):
        if source is None:
            return False
        if isinstance(source, Join):
            return self.names_stream(source.left) or self.names_stream(source.right)
        if isinstance(source.source, Matches):
            return True
        if not isinstance(source.source, str):
            return says_stream(source.source) or source.window is not None
        name = source.source.lower()
        if name in self.views:
            query = self.with_default(parse(self.views[name], self.tick_microseconds))
            return says_stream(query)
        return self.stored[name].is_stream

    # Queries. ``outer`` is the scope of the enclosing query, for correlated subqueries.

    def plan(self, query, outer):
        if isinstance(query, ToStream) and query.kind == "final":
            return self.final(query.query)
        if isinstance(query, ToStream) and query.kind == "relation":
            return self.relation(query.query, outer)
        if isinstance(query, ToStream):
            return Streamed(query.kind, self.relation(query.query, None))
        if isinstance(query, SetOperation):
            left, right = self.relation(query.left, outer), self.relation(query.right, outer)
            return Combined(query.operation, query.all, left, right)
        return self.select(query, outer)

    def relation(self, query, outer):
        plan = self.plan(query, outer)
        assert not plan.is_stream, "a stream where a relation is expected"
        return plan

    def select(self, query, outer):
        source = self.source(query.source, asked_times(query))
        scope = Scope(source.columns, outer)
        subqueries = []
        plan = self.judge(Selected(source, subqueries, self.skip, self.spend))
        compiler = Compiler(self, scope, subqueries, plan.arguments)
        compiler.counts_ticks = counts_ticks(source)
        plan.distinct = query.distinct
        if is_aggregation(query):
            plan.keys = [compiler.compile(key) for key in query.group_by]
        plan.where = query.where and compiler.compile(query.where)
        plan.compared, compiler.compared = compiler.compared, plan.compared_groups
        plan.having = query.having and compiler.compile(query.having)
        for number, (expression, alias) in enumerate(expand_stars(query.items, scope), 1):
            if expression[0] == "ranking":
                plan.rankings.append(self.ranking(compiler, *expression[1:], place=number - 1))
            is_ranking = expression[0] == "ranking"
            plan.outputs.append(compiler.compile(("literal", None) if is_ranking else expression))
            name = own_name(expression) or f"_{number}"
            plan.columns.append(("", alias or name))
            if position_of(expression, scope) in source.ends:
                plan.ends += (number - 1,)
        if query.limit is not None:
            function = "rank" if query.ties else "row_number"
            order = self.ranking(compiler, function, [], query.order, limit=query.limit)
            plan.rankings.append(order)
        plan.reads_outer = scope.reads_outer
        return plan

    def ranking(self, compiler, function, partition, order, given=(), frame=None, **more):
        by = [compiler.compile(expression) for expression in partition]
        keys = [(compiler.compile(expression), *rest) for expression, *rest in order]
        values = [compiler.compile(each) for each in given if each is not None]
        return Ranking(function, by, keys, given=values, frame=frame, **more)

    def final(self, query):
        """EMIT FINAL of a SELECT: those window ends are its rows' that every row has one of."""
        plan = self.select(query, None)
        scope = Scope(plan.source.columns)
        ends = list(plan.source.ends)
        if plan.keys is not None:
            keys = [position_of(key, scope) for key in query.group_by]
            ends = [end for end in ends if end in keys]
        assert ends, "EMIT FINAL without the end of a window"
        names = Compiler(self, scope, None)
        plan.outputs += [names.compile(("position", end, "")) for end in ends]
        return Final(plan, self.instant_of)

    def bound(self, ticks):
        """A bound of a window as a TIMESTAMP."""
        return EPOCH + timedelta(microseconds=ticks * self.tick_microseconds)

    def moment(self, instant):
        """CURRENT_TIMESTAMP; the beginning lies before all that is compared with it."""
        return datetime(1000, 1, 1) if instant == BEGINNING else self.bound(instant)

    def time_of(self, instant, bound):
        """The time of an instant, as a bound is written."""
        return self.moment(instant) if isinstance(bound, datetime) else as_ticks(instant)

    def instant_of(self, bound):
        """The instant of a bound of a window."""
        if not isinstance(bound, datetime):
            return bound
        return (bound - EPOCH) // timedelta(microseconds=self.tick_microseconds)

    def source(self, item, timed):
        if item is None:  # a SELECT without FROM has one row to look at
            return StoredRelation([], [(None, 1, ())])
        if isinstance(item, Table):
            table = self.table(item)
            named = Named(table, item.alias, item.columns)
            if item.alias.lower() not in timed or not hasattr(table, "arrivals"):
                return named
            bound = (lambda ticks: ticks) if counts_ticks(table) else self.bound
            return Timed(named, item.alias, bound)
        left = self.source(item.left, timed)
        if isinstance(item.right, Table) and item.right.lateral:
            return self.lateral(item, left)
        right = self.source(item.right, timed)
        if item.on is None:
            return Joined(item.kind, left, right, lambda environment: True, self.skip, self.spend)
        scope = Scope(left.columns + right.columns)
        condition = Compiler(self, scope, None).compile(item.on)
        return self.judge(Joined(item.kind, left, right, condition, self.skip, self.spend))

    def lateral(self, item, left):
        """A subquery that is evaluated for each row of what stands before it."""
        table = item.right
        query = self.relation(table.source, Scope(left.columns))
        right = Named(query, table.alias, table.columns)
        scope = Scope(left.columns + right.columns)
        on = Compiler(self, scope, None).compile(item.on or ("literal", True))
        return self.judge(Lateral(item.kind, left, right, on, self.skip, self.spend))

    def judge(self, plan):
        """The plan, noted as one whose clauses may fail."""
        self.judges.append(plan)
        return plan

    def table(self, item):
        """A FROM item as a relation: streams get their window, or the unbounded one."""
        if item.sampled:
            raise NotImplementedError("SAMPLE")
        plan = self.table_source(item)
        window = item.window
        if window is None and not plan.is_stream:
            return plan
        assert plan.is_stream, "a window over a relation"
        if window is None:
            window = parse("select a from s [unbounded]").source.window
        compiler = Compiler(self, Scope([(item.alias, name) for _, name in plan.columns]), None)
        where = compiler.compile(window.where or ("literal", True))
        keys = [compiler.on_row(column) for column in window.partition]
        parts = lambda row: tuple(key(row) for key in keys)  # noqa: E731
        arguments = (plan, window, where, parts, self.skip, self.spend)
        if window.kind == "until":
            until = compiler.compile(window.until)
            return self.judge(Until(until, self.time_of, *arguments))
        if window.kind in ("hop", "session"):
            bound = (lambda ticks: ticks) if counts_ticks(plan) else self.bound
            kind = Hopping if window.kind == "hop" else InSessions
            return self.judge(kind(bound, *arguments))
        return self.judge(Windowed(*arguments))

    def table_source(self, item):
        if isinstance(item.source, Matches):
            return self.matched(item.source)
        if not isinstance(item.source, str):
            query = self.with_default(item.source) if item.window else item.source
            return self.plan(query, None)
        return self.named(item.source)

    def named(self, name):
        name = name.lower()
        return self.top_level(self.views[name]) if name in self.views else self.stored[name]

    def matched(self, clause):
        """The matches in a stream."""
        is_name = isinstance(clause.source, str)
        query = None if is_name else self.with_default(clause.source)
        stream = self.named(clause.source) if is_name else self.plan(query, None)
        assert stream.is_stream, "a pattern in a relation"
        scope = Scope([("", name) for _, name in stream.columns])

        def compiler_of(variable):
            made = MatchCompiler(self, scope, None)
            made.own = variable
            return made

        rows = Compiler(self, scope, None)
        return Matched(stream, clause, compiler_of, rows, self.skip, self.spend)


def counts_ticks(plan):
    """Whether the time of a stream in a plan is a number."""
    if isinstance(plan, StoredStream):
        return plan.in_ticks
    names = ("stream", "source", "left", "right", "relation", "plan")
    below = [getattr(plan, name) for name in names if hasattr(plan, name)]
    return any(map(counts_ticks, [*below, *getattr(plan, "subqueries", ())]))


def position_of(expression, scope):
    """The column of its own query that an expression is, or None."""
    if expression[0] == "position":
        return expression[1]
    if expression[0] != "column":
        return None
    if expression[1] is not None and not scope.has_source(expression[1]):
        return None  # a field of a STRUCT
    levels, position = scope.find(*expression[1:])
    return None if levels else position


def says_stream(query):
    """Whether a query says itself that it is a stream."""
    return isinstance(query, ToStream) and query.kind != "relation"


def branches(query):
    """The SELECTs that a set operation combines."""
    if isinstance(query, SetOperation):
        return branches(query.left) + branches(query.right)
    return branches(query.query) if isinstance(query, ToStream) else [query]


def is_aggregation(select):
    """Whether a SELECT has GROUP BY, HAVING or an aggregate function."""
    return bool(select.is_grouped or select.having) or any(
        has_aggregate(expression) for expression, _ in select.items
    )


def is_ranked(select):
    """Whether the rows of a SELECT have ranks, or only the first are wanted."""
    return select.limit is not None or any(e[0] == "ranking" for e, _ in select.items)


def has_aggregate(expression):
    """Whether an aggregate function occurs, not looking into subqueries (they are no tuples)."""
    if not isinstance(expression, (tuple, list)):
        return False
    is_one = expression[:1] in (("aggregate",), ("in_order",))
    return is_one or any(map(has_aggregate, expression))


def expand_stars(items, scope):
    """The select items with * and S.* replaced by columns."""
    for expression, alias in items:
        if expression[0] != "star":
            yield expression, alias
            continue
        for position, (qualifier, name) in enumerate(scope.columns):
            if name == TSTAMP:
                continue
            if expression[1] is None or qualifier.lower() == expression[1].lower():
                yield ("position", position, name), name


class Compiler:
    """Turns expressions over one scope into functions of an Environment."""

    def __init__(self, database, scope, subqueries, arguments=None):
        self.database, self.scope, self.subqueries = database, scope, subqueries
        self.arguments = arguments
        self.compared = []
        self.counts_ticks = False

    def on_row(self, expression):
        """A function of a bare row."""
        function = self.compile(expression)
        return lambda row: function(Environment(row, None, BEGINNING, None))

    def compile(self, expression):
        kind, *parts = expression
        return getattr(self, METHODS.get(kind, kind))(*parts)

    def literal(self, value):
        return lambda e: value

    def position(self, position, name):
        return lambda e: e.row[position]

    def column(self, qualifier, name):
        if self.is_clock(qualifier, name):
            in_ticks = name.lower() == "current_time" and self.counts_ticks
            time = as_ticks if in_ticks else self.database.moment
            return lambda e: time(e.instant)
        if qualifier is not None and not self.scope.has_source(qualifier):
            return self.compile(("call", "field", [("column", None, qualifier), ("literal", name)]))
        levels, position = self.scope.find(qualifier, name)
        if levels == 0:
            return lambda e: e.row[position]
        if levels == 1:
            return lambda e: e.outer.row[position]

        def value(e):
            for _ in range(levels):
                e = e.outer
            return e.row[position]

        return value

    def is_clock(self, qualifier, name):
        """Whether a name is that of the time."""
        known = [own.lower() for _, own in self.scope.columns]
        return qualifier is None and name.lower() in CLOCKS and name.lower() not in known

    def names_clock(self, expression):
        """Whether the time is named in an expression, subqueries aside."""
        if not isinstance(expression, (tuple, list)):
            return False
        if list(expression[:2]) == ["column", None]:
            return self.is_clock(None, expression[2])
        return any(map(self.names_clock, expression))

    def binary(self, operation, left, right):
        left, right = self.compile(left), self.compile(right)
        return lambda e: operation(left(e), right(e))

    def or_(self, left, right):
        left, right = self.compile(left), self.compile(right)
        return lambda e: sql.any_of(sql.attempt(side, e) for side in (left, right))

    def and_(self, left, right):
        left, right = self.compile(left), self.compile(right)
        return lambda e: sql.all_of(sql.attempt(side, e) for side in (left, right))

    def not_(self, operand):
        operand = self.compile(operand)
        return lambda e: sql.logical_not(operand(e))

    def compare(self, symbol, left, right):
        if self.names_clock(left) or self.names_clock(right):
            self.compared.append((self.compile(left), self.compile(right)))
        return self.binary(lambda x, y: sql.compare(symbol, x, y), left, right)

    def arithmetic(self, symbol, left, right):
        return self.binary(lambda x, y: sql.arithmetic(symbol, x, y), left, right)

    def like(self, text, pattern):
        return self.binary(sql.like, text, pattern)

    def is_null(self, operand):
        operand = self.compile(operand)
        return lambda e: operand(e) is None

    def same(self, left, right):
        return self.binary(lambda x, y: x == y, left, right)

    def in_list(self, operand, items):
        equalities = [self.compare("=", operand, item) for item in items]
        return lambda e: sql.any_of(sql.attempt(equality, e) for equality in equalities)

    def case(self, branches, otherwise):
        branches = [(self.compile(c), self.compile(v)) for c, v in branches]
        otherwise = self.compile(otherwise)
        return lambda e: next((v for c, v in branches if c(e) is True), otherwise)(e)

    def cast(self, operand, type_name):
        operand = self.compile(operand)
        return lambda e: sql.cast(operand(e), type_name)

    def call(self, name, arguments):
        if name == "tstamp":
            return self.column(arguments[0][2], TSTAMP)
        arguments = [self.compile(argument) for argument in arguments]
        if name in ("coalesce", "ifnull"):
            return lambda e: next((v for a in arguments if (v := a(e)) is not None), None)
        return lambda e: sql.call(name, [argument(e) for argument in arguments])

    def row(self, parts):
        """Several values as one, which is NULL if one of them is."""
        parts = [self.compile(part) for part in parts]

        def value(e):
            values = tuple(part(e) for part in parts)
            return None if None in values else values

        return value

    def aggregate(self, name, argument, distinct, parameter, condition):
        if argument is None and condition is None:
            return lambda e: len(e.group)
        argument = self.compile(argument or ("literal", True))
        if condition is not None:
            argument = self.only_if(self.compile(condition), argument)
        self.arguments.append(argument)
        fraction = parameter and self.compile(parameter)

        def value(e):
            values = [argument(member) for member in e.group]
            values = set(values) if distinct else values
            return sql.aggregate(name, values, fraction and fraction(e))

        return value

    def in_order(self, name, arguments, condition):
        """An aggregate of the rows of a group in order: by time, number of arrival and values."""
        *values, last = arguments
        between = self.compile(last)(None) if name == "string_agg" else None
        values = [self.compile(each) for each in (values if between is not None else arguments)]
        needed = values[1:] if name in ("max_by", "min_by") else values
        if condition is not None:
            needed = [self.only_if(self.compile(condition), needed[0]), *needed[1:]]
        self.arguments += [*values, *needed]

        def value(e):
            members = [m for m in e.group if all(each(m) is not None for each in needed)]
            rows = [(m.arrival, tuple(each(m) for each in values)) for m in members]
            rows.sort(key=lambda row: (row[0], sql.order_key(row[1])))
            return sql.aggregate_in_order(name, [row for _, row in rows], between)

        return value

    def only_if(self, condition, argument):
        """A value where a condition is true, NULL elsewhere."""
        return lambda e: argument(e) if condition(e) is True else None

    # Subqueries are evaluated again for every row; those that read nothing of it, once an instant.

    def subquery(self, query):
        plan = self.database.relation(query, self.scope)
        self.subqueries.append(plan)
        known = {}

        def rows(e):
            if reads_outer(plan):
                return plan.rows(e.instant, e)
            if e.instant not in known:
                known[e.instant] = plan.rows(e.instant, None)
            return known[e.instant]

        return rows

    def exists(self, query):
        rows = self.subquery(query)
        return lambda e: bool(rows(e))

    def scalar(self, query):
        rows = self.subquery(query)

        def value(e):
            found = rows(e)
            assert len(found) <= 1, "not a value"
            return found[0][0] if found else None

        return value

    def quantified(self, operand, symbol, quantifier, query):
        operand, rows = self.compile(operand), self.subquery(query)
        combine = sql.all_of if quantifier == "all" else sql.any_of

        def value(e):
            left = operand(e)
            return combine(sql.compare(symbol, left, row) for (row,) in rows(e))

        return value

    def row_in(self, parts, query):
        """(a, b) IN (subquery), with three truth values."""
        parts, rows = [self.compile(part) for part in parts], self.subquery(query)

        def value(e):
            left = [part(e) for part in parts]
            return sql.any_of(
                sql.all_of(map(sql.compare, ["="] * len(left), left, row)) for row in rows(e)
            )

        return value


class MatchCompiler(OfMatch, Compiler):
    """Compiles what DEFINE and MEASURES say."""

    def on_row(self, expression):
        return Compiler(self.database, self.scope, None).on_row(expression)


def reads_outer(plan):
    """Whether a subquery is correlated."""
    if isinstance(plan, Combined):
        return reads_outer(plan.left) or reads_outer(plan.right)
    return plan.reads_outer
