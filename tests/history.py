"""What the schedule of a case comes to: tuples admitted, changes and their times, promises.

The current time, at which a change without a time takes effect, and what a query sees that is
registered while data flows follow from the promises, as docs/semantics.md says.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from tests import reference

EPOCH = datetime(1970, 1, 1)
BEGINNING = -(10**12)
NOTHING = BEGINNING - 1
"""What an input has promised that has promised nothing: not even the beginning is over."""


def ticks(value, tick_microseconds):
    """A timestamp value as a count of ticks."""
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1) // tick_microseconds
    return value


class History:
    """One walk over a schedule; an action does its part by ``happen``."""

    def __init__(self, case):
        self.case = case
        self.arrivals = {stream.name: [] for stream in case.streams}
        self.changes = {relation.name: [] for relation in case.relations}
        self.content = {relation.name: Counter() for relation in case.relations}
        self.promised = dict.fromkeys([*self.arrivals, *self.changes], NOTHING)
        self.reached = dict.fromkeys(self.arrivals, NOTHING)
        self.last_change = dict.fromkeys(self.changes, BEGINNING)
        self.missed = {}
        """For each late-comer what had been promised when it was registered."""
        self.ended, self.latest = {}, {}
        """For each altered query its texts of before and the present one, as ``lives_of`` says."""
        for action in case.schedule:
            action.happen(self)

    def admitted(self, stream):
        """(elements, late tuples) of a stream."""
        return reference.admit(self.arrivals[stream.name], stream.delay)

    # What actions do.

    def arrive(self, name, rows):
        """Tuples reach a stream, each promising that nothing will come too long after it."""
        (stream,) = (s for s in self.case.streams if s.name == name)
        for row in rows:
            ts = ticks(row[0], self.case.tick_microseconds)
            self.arrivals[name].append(("tuple", ts, row))
            if ts > self.promised[name]:
                self.reached[name] = max(self.reached[name], ts)
                self.promise(name, self.reached[name] - stream.delay - 1)

    def advance(self, name, ts):
        """A heartbeat."""
        if name in self.arrivals:
            self.arrivals[name].append(("advance", ts))
        self.promise(name, ts)

    def promise(self, name, ts):
        """Nothing at or before ``ts`` will follow."""
        self.promised[name] = max(self.promised[name], ts)

    def change(self, name, ts, sign, row):
        """A row comes or goes; ts None means the beginning."""
        self.changes[name].append((ts, sign, row))
        self.content[name][row] += sign
        self.last_change[name] = max(self.last_change[name], BEGINNING if ts is None else ts)

    def change_now(self, name, sign, rows):
        """Rows come or go at the current time."""
        now = self.current_time(name)
        for row in rows:
            self.change(name, None if now == BEGINNING else now, sign, row)

    def current_time(self, name):
        """The largest time any stream has reached, after all that is promised."""
        promised = [*(self.promised[stream] for stream in self.arrivals), self.promised[name]]
        now = max([*self.reached.values(), max(promised) + 1, self.last_change[name]])
        return max(now, 0) if now > BEGINNING else BEGINNING

    def run(self):
        """Answers are given, so relations without times promise what they are given for."""
        furthest = max((self.promised[s] for s in self.arrivals), default=BEGINNING)
        for relation in self.case.relations:
            if not relation.timed:
                self.promise(relation.name, max(furthest, self.last_change[relation.name]))

    def register(self, query, start=""):
        """A query comes late; with a start it sees of streams what is not before that."""
        self.missed[query] = dict(self.promised)
        if start:
            last = NOTHING if start == "BEGINNING" else int(start) - 1
            self.missed[query] |= dict.fromkeys(self.arrivals, last)

    def alter(self, query, text):
        """A query that has answered all it can goes on as another one from that time on."""
        answered = min(self.promised[name] for name in self.case.inputs_of(text))
        (since, before), missed = self.begun(query), self.missed_by(query)
        if answered >= BEGINNING:
            self.ended.setdefault(query, []).append((since, before, missed))
            since = answered
        self.latest[query] = since, text
        over = {name: max(missed[name], answered) for name in self.arrivals}
        self.missed[query] = self.promised | over

    # What a query sees.

    def missed_by(self, query):
        """What is over for a query: what had been promised when it began."""
        return self.missed.get(query, dict.fromkeys(self.promised, NOTHING))

    def lives_of(self, query):
        """[(since when, text, what it has missed)] of a query, in order of time."""
        return [*self.ended.get(query, ()), (*self.begun(query), self.missed_by(query))]

    def begun(self, query):
        """(since when, text) of a query as it is now."""
        return self.latest.get(query, (None, self.case.queries[query]))

    def seen_without(self, missed):
        """({stream: elements}, {relation: changes}): late-comers see what is not promised yet.

        What relations hold by then, holds for them from the beginning.
        """
        streams = {
            stream.name: [e for e in self.admitted(stream)[0] if e[0] > missed[stream.name]]
            for stream in self.case.streams
        }
        relations = {
            name: [
                (None if ts is None or ts <= missed[name] else ts, sign, row)
                for ts, sign, row in changes
            ]
            for name, changes in self.changes.items()
        }
        return streams, relations

    def selected(self, name, items, predicate):
        """The rows of SELECT items FROM relation WHERE predicate, over what it holds by now."""
        (relation,) = (r for r in self.case.relations if r.name == name)
        held = [(None, 1, row) for row in self.content[name].elements()]
        where = f" WHERE {predicate}" if predicate else ""
        rows = reference.evaluate(
            f"SELECT {items} FROM {name}{where}", {}, {name: (relation.schema, held)}
        )
        return [row for _, weight, row in rows for _ in range(weight)]
