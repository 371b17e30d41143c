"""What operators of groups keep for each of their queries."""

from __future__ import annotations

from collections import Counter

from millpond.execution.operators.snapshots import RunningSnapshots
from millpond.kernels.ordered import merged_members
from millpond.storage.bucketed import PairedState


def kept_by_query(engine):
    """How many rows of states there are, by group and number of the query."""
    found = Counter()
    for group in engine.queries.groups:
        for identity, inputs in engine.graph.of_group(group.output).items():
            for number in numbers_in(engine.runtime.running[identity], inputs):
                found[group.name, number] += 1
    return dict(found)


def numbers_in(running, inputs):
    """Whose the rows are that an operator keeps."""
    state = running.state
    if state is None:
        return []
    if isinstance(running, RunningSnapshots):
        return state.everything()[running._kernel.columns[-1]].to_pylist()
    if not isinstance(state, PairedState):
        return state.everything()[running.kernel.keys[-1]].to_pylist()
    if len(inputs) == 1:
        buckets = range(len(state.left.version.buckets))
        return [number for bucket in buckets for number in of_members(running, state, bucket)]
    sides = zip((state.left, state.right), inputs, strict=True)
    tables = [(side, side.everything()) for side, is_told in sides if is_told]
    merged = [side.form.merged([table], True, running.cursor) for side, table in tables]
    return [number for table in merged for number in table.columns[-1].to_pylist()]


def of_members(running, state, bucket):
    """The same in a bucket of groups and their members; groups have numbers within a bucket."""
    groups = state.left.form.everything(state.left.at(bucket)).to_pylist()
    members = merged_members([state.right.at(bucket).all()]).to_pylist()
    tags = {row["_g"]: row[running.kernel.keys[-1]] for row in groups}
    return [*tags.values(), *(tags[row["_g"]] for row in members)]
