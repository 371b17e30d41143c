"""The rows of a step in order of partition and time, behind the last ones of the steps before, and
what conditions say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa

from millpond.cql.expressions import Column, Expression, walk
from millpond.cql.row_patterns import Definition, Slot
from millpond.kernels.begun_matches import Asked
from millpond.kernels.columns import integers
from millpond.kernels.expressions import Columns, Program
from millpond.kernels.expressions.faults import Faults, raise_first
from millpond.kernels.expressions.operand import Operand, over_rows
from millpond.kernels.groups import Ints
from millpond.kernels.registers import Cells, Registers

Array: TypeAlias = "pa.Array | pa.ChunkedArray"


def slots_in(condition: Expression, width: int) -> set[int]:
    """The slots that a condition looks at, which stand behind so many columns."""
    positions = (part.position for part in walk(condition) if isinstance(part, Column))
    return {position - width for position in positions if position >= width}


def is_own(definition: Definition, width: int, slots: Sequence[Slot]) -> bool:
    """Whether a condition speaks of its own row and of those a fixed number before it alone."""
    looked = (slots[slot] for slot in slots_in(definition.condition, width))
    return all(each.function == "last" and each.variable == definition.variable for each in looked)


@dataclass(frozen=True)
class _Known:
    """What a condition says of each row."""

    is_true: list[bool]
    faults: Faults | None


class Line:
    """The rows, and what is known of them."""

    def __init__(
        self,
        rows: pa.Table,
        code: Ints,
        state: pa.Table,
        kept: Ints,
        groups: int,
        registers: Registers,
        slots: Sequence[Slot],
        definitions: Sequence[Definition],
    ) -> None:
        self.rows, self.registers = rows, registers
        self.times: list[int] = integers(rows["_ts"]).tolist()
        self.width = rows.num_columns - 1
        self._slots, self._definitions = slots, definitions
        bounds = np.searchsorted(code, np.arange(groups + 1))
        self.first: list[int] = bounds[:-1].tolist()
        self.behind: list[int] = bounds[1:].tolist()
        self._past = _Past.made(rows, code, state, kept, groups, slots)
        self._bind(code, bounds, state, kept, groups)
        self._known = {each.variable: self._judged(each) for each in definitions}

    def _bind(self, code: Ints, bounds: Ints, state: pa.Table, kept: Ints, groups: int) -> None:
        """Tells the registers what each row adds."""
        for slot, register in zip(self._slots, self.registers.all, strict=False):
            if slot.argument is not None:
                register.bind(self._argument(slot))
        begins = np.zeros(groups, np.int64)
        begins[kept] = integers(state["_next"])
        places = begins[code] + np.arange(len(code)) - bounds[code]
        self.registers.all[-1].values = places.tolist()

    def _argument(self, slot: Slot) -> Array:
        position = slot.argument.position if slot.argument else 0
        if slot.back:
            return self._past.before(position, slot.back)
        return self.rows[f"r{position}"]

    # -- conditions --------------------------------------------------------------------------

    def truth(self, variable: str, row: int) -> bool | None:
        """Whether a row stands for a variable; None: that depends on the match."""
        if variable not in self._known:
            return True
        known = self._known[variable]
        if known is None:
            return None
        if known.faults is not None:
            raise_first(known.faults[row : row + 1])
        return known.is_true[row]

    def _judged(self, definition: Definition) -> _Known | None:
        """What a condition says of all rows; None if it speaks of the match."""
        if not is_own(definition, self.width, self._slots):
            return None
        columns: list[Array | None] = [self.rows[f"r{i}"] for i in range(self.width)]
        wanted = slots_in(definition.condition, self.width)
        columns += [
            self._argument(slot) if number in wanted else None
            for number, slot in enumerate(self._slots)
        ]
        return _Known(*_said(definition.condition, columns, self.rows.num_rows))

    @cached_property
    def _asked(self) -> dict[str, Definition]:
        return {each.variable: each for each in self._definitions}

    def answers(self, asked: Sequence[Asked]) -> list[list[bool]]:
        """The answers to questions of several partitions, together for each variable."""
        found = [[False] * len(questions) for _, questions in asked]
        places: dict[str, list[tuple[int, int]]] = {}
        for i, (_, questions) in enumerate(asked):
            for j, (variable, _) in enumerate(questions):
                places.setdefault(variable, []).append((i, j))
        for variable, own in places.items():
            rows = np.array([asked[i][0] for i, _ in own], np.int64)
            cells = [asked[i][1][j][1] for i, j in own]
            told = self._of_match(self._asked[variable].condition, rows, cells)
            for (i, j), answer in zip(own, told, strict=True):
                found[i][j] = answer
        return found

    def _of_match(self, condition: Expression, rows: Ints, cells: Sequence[Cells]) -> list[bool]:
        used = {part.position for part in walk(condition) if isinstance(part, Column)}
        at = pa.array(rows)
        columns: list[Array | None] = [
            self.rows[f"r{i}"].take(at) if i in used else None for i in range(self.width)
        ]
        columns += [
            self.registers.all[i].told(cells) if self.width + i in used else None
            for i in range(len(self._slots))
        ]
        is_true, faults = _said(condition, columns, len(rows))
        raise_first(faults)
        return is_true

    # -- what is kept ------------------------------------------------------------------------

    def kept(self, code: int) -> range:
        """The last rows of a partition, as far as PREV looks back."""
        return self._past.last(code)

    def lists(self, column: int, rows: Sequence[range]) -> pa.Array:
        """The values of a column in some such rows."""
        return self._past.lists(column, rows)


def _said(
    condition: Expression, columns: Sequence[Array | None], rows: int
) -> tuple[list[bool], Faults | None]:
    """What a condition says of rows, and on which it fails."""
    value = cast("Operand", Program([condition]).run(cast("Columns", columns))[0])
    faults = None if value.faults is None else np.resize(value.faults, rows)
    return over_rows(value.true, rows).tolist(), faults


@dataclass(frozen=True)
class _Past:
    """The columns that PREV looks at, with the rows of the steps before in front of each
    partition's."""

    columns: dict[int, Array]
    own: Ints
    """Where the rows of the step are among them."""
    begin: Ints
    """Where the rows of each partition begin; the end of all."""
    of: Ints
    """The partition of each row of the step."""
    back: int

    @staticmethod
    def made(
        rows: pa.Table, code: Ints, state: pa.Table, kept: Ints, groups: int, slots: Sequence[Slot]
    ) -> _Past:
        """The rows of a step behind what is kept of those before."""
        looked = sorted({slot.argument.position for slot in slots if slot.back and slot.argument})
        counts = np.zeros(len(kept), np.int64)
        if looked:
            counts = np.asarray(state[f"h{looked[0]}"].combine_chunks().value_lengths())
        both = np.concatenate([np.repeat(kept, counts), code])
        order = np.argsort(both, kind="stable")
        own = np.empty(len(both), np.int64)
        own[order] = np.arange(len(both))
        columns = {
            column: pa.chunked_array(
                [_flattened(state[f"h{column}"]), *rows[f"r{column}"].chunks]
            ).take(pa.array(order))
            for column in looked
        }
        begin = np.searchsorted(both[order], np.arange(groups + 1))
        back = max([0, *(slot.back for slot in slots)])
        return _Past(columns, own[len(both) - len(code) :], begin, code, back)

    def before(self, column: int, back: int) -> Array:
        """A column so many rows before those of the step; NULL before the first."""
        at = self.own - back
        is_none = at < self.begin[self.of]
        return self.columns[column].take(pa.array(at, mask=is_none))

    def last(self, code: int) -> range:
        """The last rows of a partition."""
        begin, behind = int(self.begin[code]), int(self.begin[code + 1])
        return range(max(begin, behind - self.back), behind)

    def lists(self, column: int, rows: Sequence[range]) -> pa.Array:
        """The values of a column in each of several such."""
        at = [place for each in rows for place in each]
        offsets = np.cumsum([0, *map(len, rows)])
        values = self.columns[column].take(pa.array(at, pa.int64()))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _whole(values))


def _whole(values: Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _flattened(lists: pa.ChunkedArray) -> pa.Array:
    return _whole(lists).flatten()
