"""The join of two relations: its state is indexed by keys, and a step probes with its new rows.

Without an equality between the two sides there are no keys, and all rows meet, in one place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.expressions import Expression, Literal
from millpond.execution.answers import Answer
from millpond.execution.fragments import STARTED
from millpond.execution.jobs import Job, Pairs, Rows
from millpond.execution.operators.freeing import FreeingOperator
from millpond.execution.operators.running import arrow_types
from millpond.execution.pair_output import PairOutput
from millpond.execution.steps import Outcome, Step
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import AnswerAndOutput, Destination
from millpond.identities import OperatorId
from millpond.kernels.columns import is_bytes
from millpond.kernels.groups import Bools
from millpond.kernels.join import JoinKernel, PairLimit
from millpond.kernels.living import Living, LivingRows
from millpond.kernels.runs import Run
from millpond.planning.branches import ELEMENT, Outputs, branches
from millpond.planning.join_keys import join_keys
from millpond.planning.physical import JoinOperator
from millpond.planning.predicates import all_columns, conjuncts
from millpond.schema import Type
from millpond.storage.bucketed import BucketedState, PairedState
from millpond.storage.forms import Indexed
from millpond.storage.frees import Frees, Met, Over, sweeps
from millpond.storage.state import Delta, StateVersion
from millpond.storage.state_cache import BucketName
from millpond.storage.worker_states import STATES

SIDES = ("left", "right")

INSTANT_SHARES = 2
"""One instant may put out so many times what a step does: it cannot be cut."""

TEXT_BYTES = 24
"""What a text is thought to take before any was seen."""

LEARNT_PAIRS, LEARNT_GROWTH, LEAST_PAIR_BYTES = 1_000, 4.0, 0.01
"""From so many pairs on is learnt what they make, and how fast a step may get larger by that."""

Versions = tuple[StateVersion, StateVersion]


class PairSize:
    """How many bytes of output a pair makes that is looked at, as it was seen.

    At first as if all were put out; then as many as were, but growing a few times as many at most.
    """

    def __init__(self, types: tuple[pa.DataType, ...]) -> None:
        texts = sum(map(is_bytes, types))
        self._bytes = float(8 * (len(ELEMENT) + len(types)) + TEXT_BYTES * texts)

    def limit(self, step_bytes: int) -> PairLimit:
        """What a step may make that has so much memory for its output."""
        return PairLimit(max(1, int(step_bytes / self._bytes)), INSTANT_SHARES * step_bytes)

    def learn(self, pairs: int, size: int) -> None:
        """So many pairs were looked at, and their output has so many bytes."""
        if pairs >= LEARNT_PAIRS:
            self._bytes = max(size / pairs, self._bytes / LEARNT_GROWTH, LEAST_PAIR_BYTES)


class RunningJoin(FreeingOperator):
    """The inner join of two relations."""

    state: PairedState

    def __init__(
        self, identity: OperatorId, operator: JoinOperator, around: Surroundings, cursor: int
    ) -> None:
        width = len(operator.left.schema)
        self._keys = join_keys(operator.condition, width)
        self._types = arrow_types(operator.left.schema), arrow_types(operator.right.schema)
        key_types = tuple(ARROW_TYPES[key.type] for key in self._keys.left)
        self._kernel = JoinKernel(key_types, *self._types)
        (post,) = branches(operator.post)
        self._output = PairOutput(
            (*self._keys.rest, *conjuncts(post.predicate)),
            post.expressions,
            width + len(operator.right.schema),
        )
        self._size = PairSize(arrow_types(operator.schema))
        self.state = PairedState(
            *(
                BucketedState(
                    around.store,
                    around.states,
                    f"{identity}.{side}",
                    Indexed(self._kernel.run_schema(number)),
                    self._kernel.keys,
                    around.limits.buckets,
                )
                for number, side in enumerate(SIDES)
            )
        )
        super().__init__(identity, operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """Side, keys, and the row in its own columns; the other side's are empty."""
        own: tuple[Expression, ...] = all_columns(self.operator.inputs[index])
        other: tuple[Expression, ...] = tuple(
            Literal(None, field.type) for field in self.operator.inputs[1 - index].schema.fields
        )
        left, right = (own, other) if index == 0 else (other, own)
        keys = (self._keys.left, self._keys.right)[index]
        return Outputs(
            (
                (Literal(index, Type.BIGINT), "_side"),
                *((key, f"k{i}") for i, key in enumerate(keys)),
                *((column, f"a{i}") for i, column in enumerate(left)),
                *((column, f"b{i}") for i, column in enumerate(right)),
            )
        )

    @property
    def _events(self) -> pa.Schema:
        numbers = [pa.field(name, pa.int64()) for name in (*ELEMENT, "_side")]
        named = [
            pa.field(f"{prefix}{i}", type_)
            for prefix, types in zip("kab", (self._kernel.key_types, *self._types), strict=True)
            for i, type_ in enumerate(types)
        ]
        return pa.schema(numbers + named)

    @cached_property
    def is_local(self) -> bool:
        return self._output.is_lowered and all(fragment.is_local for fragment in self.fragments)

    @property
    def buckets(self) -> int:
        """The buckets of the join's state."""
        return len(self.state.left.version.buckets)

    @property
    def job_keys(self) -> tuple[str, ...]:
        """The sides of the equalities."""
        return tuple(self._kernel.keys)

    @property
    def freed_rows(self) -> int:
        """How many rows were freed so far, as nothing could meet them any more."""
        return sum(version.freed for version in self.state.versions)

    @property
    def freed_bytes(self) -> int:
        """How many bytes they had."""
        return sum(version.freed_bytes for version in self.state.versions)

    def run_here(self, step: Step, rows: Rows) -> Outcome:
        """All pairs of which at least one began in this step."""
        new = [
            self.living_of(rows.gathered(self, [(reading, (STARTED,))], self._events))
            for reading in step.readings
        ]
        left, right = (self._kernel.new_run(own_columns(each, i)) for i, each in enumerate(new))
        states = self.state.left, self.state.right
        parts = [state.split(run) for state, run in zip(states, (left, right), strict=True)]
        buckets = sorted(parts[0].keys() | parts[1].keys())
        left_index, right_index = (
            self._kernel.index(side).together([state.at(bucket) for bucket in buckets])
            for side, state in enumerate(states)
        )
        limit = self._size.limit(self.around.limits.step_bytes)
        made, pairs = self._kernel.together(
            (left, right),
            (left_index, right_index),
            lambda pairs: rows.put_out(self, self._output, pairs, self.output_schema),
            limit,
        )
        self._size.learn(pairs, sum(each.nbytes for each in made))
        table = pa.concat_tables([self.output_schema.empty_table(), *made])
        runs = (left_index.runs, Run.of(left)), (right_index.runs, Run.of(right))
        for side, state in enumerate(states):
            met = self.once_met(side, step.until)
            state.free(
                with_met(self.frees(side, step.until), met, runs[1 - side], self._kernel.keys)
            )
        versions = self.state.both(
            lambda: states[0].changed_in(parts[0], step.until),
            lambda: states[1].changed_in(parts[1], step.until),
        )
        outcome = self.in_driver(table, versions)
        outcome.driver_bytes += sum(each.nbytes for each in new)
        return outcome

    # -- on the executors ------------------------------------------------------------------

    def job(self, step: Step) -> Job:
        """The pairs of each bucket, in their final form if tasks can give it to them."""
        is_lowered = self._output.is_lowered
        work = RunJoin(
            self.destination_of(step),
            self._events,
            self._kernel,
            self.identity,
            self.state.versions,
            self._output if is_lowered else None,
            self.output_schema,
            step.until,
            self._size.limit(self.around.limits.step_bytes // self.buckets),
            (self.frees(0, step.until), self.frees(1, step.until)),
            (self.once_met(0, step.until), self.once_met(1, step.until)),
        )
        parts = [(reading, (STARTED,)) for reading in step.readings]
        keys = self._kernel.keys or ["_ts"]
        return Job(
            parts,
            self.living_in(work),
            keys,
            self.buckets,
            lambda answers: self._outcome(answers, step.until),
            pairs=None if is_lowered else Pairs(self._kernel.output_schema, self._output),
        )

    def purged(self, living: Living, inputs: tuple[bool, ...]) -> Any:
        """The last column of a side that belongs to queries is the number of the query."""
        tags = [f"{each}{len(types) - 1}" for each, types in zip("ab", self._types, strict=True)]
        told = tuple(tag for tag, is_told in zip(tags, inputs, strict=True) if is_told)
        self.living = LivingRows(told, living)
        states = zip((self.state.left, self.state.right), tags, inputs, strict=True)
        return tuple(
            state.without(partial(_gone, living, f"c{tag[1:]}"), self.cursor)
            if is_told
            else state.version
            for state, tag, is_told in states
        )

    def _outcome(self, answers: list[Answer], until: int) -> Outcome:
        pairs, size = (
            sum(answer.get(each, 0) for answer in answers) for each in ("pairs", "made_bytes")
        )
        self._size.learn(pairs, size)
        versions = tuple(
            state.following(_deltas(answers, side), until)
            for side, state in zip(SIDES, (self.state.left, self.state.right), strict=True)
        )
        return self.written(answers, versions)


def _gone(living: Living, tag: str, bucket: int, rows: pa.Table) -> Bools:
    return living.gone(rows[tag])


def side_of(rows: pa.Table, side: int) -> pa.Table:
    """The elements of one side: times, keys, and its own columns as c0…"""
    return own_columns(rows.filter(pc.equal(rows["_side"], side)), side)


def own_columns(rows: pa.Table, side: int) -> pa.Table:
    """The same of rows that are all of one side."""
    prefix = "ab"[side]
    names = [name for name in rows.column_names if name[0] in ("k", prefix) or name in ELEMENT]
    own = rows.select(names)
    return own.rename_columns([f"c{name[1:]}" if name[0] == prefix else name for name in names])


def with_met(
    frees: Frees, met: Over | None, other: tuple[tuple[Run, ...], Run], keys: Sequence[str]
) -> Frees:
    """What can go of a side, with the rows that have met one of the other if that is enough."""
    if met is None:
        return frees
    known, new = other
    return (*frees, Met((*known, new), tuple(keys), met))


def _deltas(answers: list[Answer], side: str) -> dict[int, Delta]:
    return {answer["bucket"]: Delta.from_json(answer[side]) for answer in answers if side in answer}


@dataclass(frozen=True)
class RunJoin:
    """Each task joins its bucket's new elements with its part of the state."""

    destination: Destination
    schema: pa.Schema
    kernel: JoinKernel
    operator: OperatorId
    versions: Versions
    output: PairOutput | None
    """What becomes of a pair; None: pairs are written as they are."""
    output_schema: pa.Schema
    until: int
    limit: PairLimit
    frees: tuple[Frees, Frees] = ((), ())
    """Which rows of either side nothing can meet any more."""
    once_met: tuple[Over | None, Over | None] = (None, None)
    """Of which times a row is that those of a side meet only once."""

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """One bucket: its pairs, and the runs that are new in its state."""
        if rows.num_rows == 0 and not any(map(sweeps, self.frees)):
            return {}, self.output_schema.empty_table()
        forms = [Indexed(self.kernel.run_schema(side), self.frees[side]) for side in (0, 1)]
        names = [
            BucketName(self.destination.directory, f"{self.operator}.{side}", bucket)
            for side in SIDES
        ]
        left, right = runs = [self.kernel.new_run(side_of(rows, side)) for side in (0, 1)]
        left_index, right_index = (
            STATES.state_at(name, form, version)
            for name, form, version in zip(names, forms, self.versions, strict=True)
        )
        schema = self.kernel.output_schema if self.output is None else self.output_schema
        made, count = self.kernel.together(
            (left, right), (left_index, right_index), self._shaped, self.limit
        )
        pairs = pa.concat_tables([schema.empty_table(), *made])
        answer = self.destination.write_page(pairs, bucket, attempt) | {"pairs": count}
        seen = (left_index.runs, Run.of(left)), (right_index.runs, Run.of(right))
        forms = [
            replace(form, frees=with_met(form.frees, met, other, self.kernel.keys))
            for form, met, other in zip(forms, self.once_met, reversed(seen), strict=True)
        ]
        for side, name, form, version, run in zip(
            SIDES, names, forms, self.versions, runs, strict=True
        ):
            is_swept = sweeps(form.frees) and version.buckets[bucket]
            if run.num_rows or is_swept:
                path = f"{self.destination.state}-{side}-{bucket}-{attempt}"
                is_summed = self.destination.is_durable
                delta = STATES.write(name, form, version, run, path, self.until, is_summed)
                answer[side] = delta.to_line()
        return answer, pairs

    def _shaped(self, pairs: pa.Table) -> pa.Table:
        if self.output is None:
            return pairs
        return self.output.applied(pairs).cast(self.output_schema)
