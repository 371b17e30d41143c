"""MATCH_RECOGNIZE: the matches of a pattern in each partition of a stream.

Rows come in order of time, and where matches last for some time each comes again when those that
began with it are over. Of a partition the matches that have begun are kept, with what is told or
compared of their rows, and not the rows. Conditions that speak of their own row, or of rows a fixed
number before it, are computed for all rows of a step at once; those that speak of the match for all
partitions at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.cql.row_patterns import Definition, RowPattern, Skip, Slot, kept_rows
from millpond.kernels.begun_matches import Asked, Begun, Partition, Playing, Rules
from millpond.kernels.columns import flat, integers
from millpond.kernels.groups import Bools, Ints, encode, first_rows
from millpond.kernels.kernel import Keyed
from millpond.kernels.registers import Registers, plain_lists
from millpond.kernels.row_automaton import automaton_of
from millpond.kernels.row_lines import Line, is_own, slots_in

_NUMBERS = pa.list_(pa.int64())


@dataclass(frozen=True)
class RowPatternKernel(Keyed):
    """Rows ``r0…`` with ``k0…`` (the partition) in; matches out, as elements of a stream.

    Rows of one instant are in order by the first ``order`` columns.
    """

    types: tuple[pa.DataType, ...]
    order: int
    pattern: RowPattern
    definitions: tuple[Definition, ...]
    slots: tuple[Slot, ...]
    told: tuple[int, ...]
    within: int | None
    skip: Skip

    @property
    def rows(self) -> list[str]:
        """The names of the columns of the rows."""
        return [f"r{i}" for i in range(len(self.types))]

    @property
    def state_schema(self) -> pa.Schema:
        """One row a partition: how many matches have begun and how many rows are kept, the place
        of the next row; of each match its place, time and number of ways, of each way its state and
        cells, and the last values that PREV looks at."""
        fields = [pa.field(name, pa.int64()) for name in ("_n", "_next")]
        fields += [pa.field(name, _NUMBERS) for name in ("_place", "_time", "_ways", "_state")]
        cells = enumerate(self._registers().types)
        fields += [pa.field(f"x{i}", pa.list_(type_)) for i, type_ in cells]
        fields += [pa.field(f"h{c}", pa.list_(self.types[c])) for c in self._looked_back]
        return pa.schema([*self.key_fields, *fields])

    @property
    def output_schema(self) -> pa.Schema:
        """Time, weight and row."""
        types = [*self.key_types, *(r.type for r in self._told_fields)]
        times = [pa.field(name, pa.int64()) for name in ("_ts", "_w")]
        return pa.schema(times + [pa.field(f"c{i}", t) for i, t in enumerate(types)])

    @property
    def _told_fields(self) -> list[pa.Field]:
        told = [self._registers().all[i].told([]) for i in self.told]
        return [pa.field(str(i), array.type) for i, array in zip(self.told, told, strict=True)]

    @property
    def _looked_back(self) -> list[int]:
        """The columns that PREV looks at."""
        return sorted({s.argument.position for s in self.slots if s.back and s.argument})

    @property
    def _most_back(self) -> int:
        return max([0, *(slot.back for slot in self.slots)])

    def _registers(self) -> Registers:
        return Registers(self.slots, (self.skip.to == "first", self.skip.variable))

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The matches decided in the step, and what is kept of the partitions it touched."""
        keys = pa.concat_tables([events.select(self.keys), state.select(self.keys)])
        codes = encode([keys[name] for name in self.keys], events.num_rows + state.num_rows)
        groups = int(codes.max(initial=-1)) + 1
        own, kept = codes[: events.num_rows], codes[events.num_rows :]
        rows, code = self._in_order(events, own)
        line = Line(
            rows,
            code,
            state,
            kept,
            groups,
            self._registers(),
            self.slots,
            self.definitions,
        )
        partitions = self._partitions(state, kept, groups, line)
        self._play(partitions, line)
        for partition in partitions:
            partition.expire(until)
        examples = pa.array(first_rows(codes)) if self.keys else pa.array([], pa.int64())
        columns = [flat(keys[name].take(examples)) for name in self.keys]
        known = np.zeros(groups, np.bool_)
        known[kept] = True
        return self._output(partitions, columns), self._kept(partitions, line, columns, known)

    def _in_order(self, events: pa.Table, own: Ints) -> tuple[pa.Table, Ints]:
        """The rows that come, one for each time it came, by partition and time."""
        weight = np.maximum(integers(events["_w"]), 0)
        at = np.repeat(np.arange(events.num_rows), weight)
        rows = events.select(["_ts", *self.rows]).take(pa.array(at))
        table = rows.append_column("_code", pa.array(own[at]))
        names = ("_code", "_ts", *self.rows[: self.order])
        keys = [(name, "ascending", "at_start") for name in names]
        order = pc.sort_indices(table, sort_keys=keys)
        return rows.take(order).combine_chunks(), own[at][np.asarray(order)]

    # -- the rows of a step ------------------------------------------------------------------

    def _play(self, partitions: list[Partition], line: Line) -> None:
        """Lets all partitions go on side by side, and answers what they ask together."""
        playing = [
            partition.play(range(first, behind))
            for partition, first, behind in zip(partitions, line.first, line.behind, strict=True)
        ]
        asking = [(each, asked) for each in playing if (asked := next(each, None)) is not None]
        while asking:
            answers = line.answers([asked for _, asked in asking])
            going_on = zip(asking, answers, strict=True)
            asking = [
                (each, asked)
                for (each, _), told in going_on
                if (asked := _sent(each, told)) is not None
            ]

    def _output(self, partitions: list[Partition], keys: list[pa.Array]) -> pa.Table:
        found = [(code, *each) for code, p in enumerate(partitions) for each in p.found]
        of = pa.array([code for code, _, _ in found], pa.int64())
        cells = [cells for _, _, cells in found]
        registers = self._registers()
        times = pa.array([time for _, time, _ in found], pa.int64())
        weights = pa.array(np.ones(len(found), np.int64))
        columns = [column.take(of) for column in keys]
        columns += [registers.all[slot].told(cells) for slot in self.told]
        return pa.Table.from_arrays([times, weights, *columns], schema=self.output_schema)

    # -- what is kept ------------------------------------------------------------------------

    def _partitions(self, state: pa.Table, codes: Ints, groups: int, line: Line) -> list[Partition]:
        registers = line.registers
        rules = Rules(
            automaton_of(self.pattern),
            registers,
            self.within,
            self.skip.to != "next",
            self.skip.to == "past",
            self._compared(registers),
            line.truth,
            line.times,
        )
        found = [Partition(rules) for _ in range(groups)]
        names = ["_place", "_time", "_ways", "_state"]
        names += [f"x{i}" for i in range(len(registers.types))]
        columns = [plain_lists(state[name]) for name in names]
        places = integers(state["_next"]).tolist()
        for code, place, *values in zip(codes.tolist(), places, *columns, strict=True):
            found[code].next_place, found[code].begun = place, list(_begun(*values))
        return found

    def _compared(self, registers: Registers) -> tuple[int, ...]:
        """The cells that conditions which speak of the match look at."""
        width, found = len(self.types), set[int]()
        for definition in self.definitions:
            if not is_own(definition, width, self.slots):
                for slot in slots_in(definition.condition, width):
                    found.update(registers.cells_of(slot))
        return tuple(sorted(found))

    def _kept(
        self, partitions: list[Partition], line: Line, keys: list[pa.Array], known: Bools
    ) -> pa.Table:
        """What is kept of partitions in which there is, or was, anything."""
        always = kept_rows(self.pattern, self.slots)
        rows = [
            line.kept(code) if always or partition.begun else range(0)
            for code, partition in enumerate(partitions)
        ]
        counts = [len(p.begun) + len(r) for p, r in zip(partitions, rows, strict=True)]
        at = [code for code, count in enumerate(counts) if count or known[code]]
        begun = [partitions[code].begun for code in at]
        numbers = [
            [counts[code] for code in at],
            [partitions[code].next_place if partitions[code].begun else 0 for code in at],
        ]
        lists = [
            [[each.place for each in one] for one in begun],
            [[each.time for each in one] for one in begun],
            [[len(each.ways) for each in one] for one in begun],
            [[state for each in one for state, _ in each.ways] for one in begun],
        ]
        cells = [[cells for each in one for _, cells in each.ways] for one in begun]
        types = line.registers.types
        arrays = [column.take(pa.array(at, pa.int64())) for column in keys]
        arrays += [pa.array(each, pa.int64()) for each in numbers]
        arrays += [pa.array(each, _NUMBERS) for each in lists]
        arrays += [
            pa.array([[cell[i] for cell in one] for one in cells], pa.list_(type_))
            for i, type_ in enumerate(types)
        ]
        arrays += [line.lists(column, [rows[code] for code in at]) for column in self._looked_back]
        return pa.Table.from_arrays(arrays, schema=self.state_schema)


def _sent(playing: Playing, answers: list[bool]) -> Asked | None:
    try:
        return playing.send(answers)
    except StopIteration:
        return None


def _begun(
    places: list[int], times: list[int], ways: list[int], states: list[int], *cells: list[object]
) -> Iterator[Begun]:
    """The matches that were kept of a partition."""
    rows = list(zip(states, zip(*cells, strict=True), strict=True))
    behind = 0
    for place, time, count in zip(places, times, ways, strict=True):
        yield Begun(place, time, rows[behind : behind + count])
        behind += count
