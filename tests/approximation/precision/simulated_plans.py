"""Plans run tuple by tuple, with errors drawn by chance: what the formulas have to agree with.

A stream is which of its correct tuples are delivered, and how many wrong ones. Each operator draws
keys anew for its inputs, so wrong tuples meet others as right ones do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millpond.approximation.precision import (
    EXACT,
    Difference,
    Distinct,
    Intersection,
    Join,
    Partners,
    Projection,
    Selection,
    Semijoin,
    Union,
    precision,
)


@dataclass
class Flow:
    is_delivered: np.ndarray
    wrong: int


@dataclass
class Step:
    """An operator with its own precision over other steps."""

    kind: str
    inputs: list
    own: object
    statistics: dict


def disturbed(random, own, is_there, wrong):
    """Errors of an operator for each tuple of an output that seems to be so."""
    right = is_there & (random.uniform(size=len(is_there)) < own.right)
    seeming = int(is_there.sum()) + wrong
    more = random.poisson(own.wrong * seeming)
    return Flow(right, int(random.binomial(wrong, own.right)) + int(more))


def decided(random, own, part, flow, belongs, seems, wrong_seems):
    """What an operator takes of what seems to belong to its output, and of what does not."""
    by_mistake = own.wrong * part / (1 - part)
    chance = np.where(seems, own.right, by_mistake)
    taken = flow.is_delivered & (random.uniform(size=len(chance)) < chance)
    wrong_chance = np.where(wrong_seems, own.right, by_mistake)
    strays = int((random.uniform(size=len(wrong_chance)) < wrong_chance).sum())
    return Flow(taken[belongs], strays + int((taken & ~belongs).sum()))


def selection(random, step, flows):
    (flow,), part = flows, step.statistics["selectivity"]
    belongs = random.uniform(size=len(flow.is_delivered)) < part
    wrong_seems = random.uniform(size=flow.wrong) < part
    return decided(random, step.own, part, flow, belongs, belongs, wrong_seems), Selection(part)


def projection(random, step, flows):
    (flow,) = flows
    return disturbed(random, step.own, flow.is_delivered, flow.wrong), Projection()


def union(random, step, flows):
    counts = [len(flow.is_delivered) for flow in flows]
    there = np.concatenate([flow.is_delivered for flow in flows])
    shares = tuple(count / sum(counts) for count in counts)
    return disturbed(random, step.own, there, sum(f.wrong for f in flows)), Union(shares)


def keyed(random, flow, keys):
    """Keys of correct tuples, and of wrong ones."""
    return random.integers(0, keys, len(flow.is_delivered)), random.integers(0, keys, flow.wrong)


def join(random, step, flows):
    keys = max(len(flows[0].is_delivered), 1)
    (left, left_wrong), (right, right_wrong) = (keyed(random, flow, keys) for flow in flows)
    order = np.argsort(right, kind="stable")
    starts, ends = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    counts = ends - starts
    first = np.repeat(np.arange(len(left)), counts)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[np.repeat(starts, counts) + offsets]
    both = flows[0].is_delivered[first] & flows[1].is_delivered[second]
    held = [
        np.bincount(each[flow.is_delivered], minlength=keys)
        for each, flow in zip((left, right), flows, strict=True)
    ]
    strays = [np.bincount(k, minlength=keys) for k in (left_wrong, right_wrong)]
    pairs = (held[0] + strays[0]) * (held[1] + strays[1]) - held[0] * held[1]
    return disturbed(random, step.own, both, int(pairs.sum())), Join()


def matched(random, step, flows, negated, most_partners=None):
    """Semijoin, or difference: which left tuples have partners, truly and seemingly."""
    keys = 2 * max(len(flows[1].is_delivered), 1)
    left, left_wrong = keyed(random, flows[0], keys)
    right, right_wrong = keyed(random, flows[1], keys)
    if most_partners == 1:
        right = random.permutation(keys)[: len(right)]
    truly = np.bincount(right, minlength=keys)
    seemingly = np.bincount(right[flows[1].is_delivered], minlength=keys)
    seemingly = seemingly + np.bincount(right_wrong, minlength=keys)
    belongs = (truly[left] > 0) != negated
    part = float(belongs.mean())
    flow = decided(
        random, step.own, part, flows[0], belongs,
        (seemingly[left] > 0) != negated, (seemingly[left_wrong] > 0) != negated,
    )  # fmt: skip
    return flow, part, Partners.of(truly[left][truly[left] > 0])


def semijoin(random, step, flows):
    flow, part, partners = matched(random, step, flows, False)
    return flow, Semijoin(part, partners)


def intersection(random, step, flows):
    flow, part, _ = matched(random, step, flows, False, 1)
    return flow, Intersection(part)


def difference(random, step, flows):
    flow, part, partners = matched(random, step, flows, True)
    return flow, Difference(part, partners)


def distinct(random, step, flows):
    (flow,) = flows
    values = max(len(flow.is_delivered) // 2, 1)
    keys = random.integers(0, values, len(flow.is_delivered))
    copies = np.bincount(keys, minlength=values)
    seen = np.bincount(keys[flow.is_delivered], minlength=values) > 0
    return disturbed(random, step.own, seen[copies > 0], flow.wrong), Distinct(Partners.of(copies))


KINDS = {
    "selection": selection, "projection": projection, "union": union, "join": join,
    "semijoin": semijoin, "intersection": intersection, "difference": difference,
    "distinct": distinct,
}  # fmt: skip
WITH_TWO_INPUTS = {"union", "join", "semijoin", "intersection", "difference"}


def drawn_plan(random, size):
    """A random plan of so many operators; None is an exact stream."""
    if size == 0:
        return None
    kind = list(KINDS)[random.integers(len(KINDS))]
    left = int(random.integers(0, size)) if kind in WITH_TWO_INPUTS else size - 1
    inputs = [drawn_plan(random, left)]
    if kind in WITH_TWO_INPUTS:
        inputs.append(drawn_plan(random, size - 1 - left))
    own = precision(float(random.uniform(0, 0.25)), float(random.uniform(0, 0.8)))
    return Step(kind, inputs, own, {"selectivity": float(random.uniform(0.2, 0.7))})


def run(random, step, tuples):
    """A plan's output and what the formulas say of its precision."""
    if step is None:
        return Flow(np.ones(tuples, dtype=bool), 0), EXACT
    done = [run(random, each, tuples) for each in step.inputs]
    flow, composition = KINDS[step.kind](random, step, [flow for flow, _ in done])
    return flow, composition.compose([said for _, said in done], step.own)
