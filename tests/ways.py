"""The ways to run a case that must not matter: places, processors, stores, deaths, repetitions,
queues, budgets, sharing."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import threading
from dataclasses import dataclass, replace

from millpond import Engine
from millpond.execution.executor import Executors
from millpond.execution.runtime import EngineRuntime
from millpond.planning.placement import edges
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.snapshot import PartitionSnapshot
from millpond.scheduling.strategy_text import THREADED
from tests.crashing import Mortal
from tests.drawn_examples import TIMES

PROCESSORS = (1, 2, 3, 4)
DRIVER_ROWS = (50_000, 0, 3, 10**9)
STORES = ("memory", "directory", "dying")
SELDOM = 0.2


@dataclass(frozen=True)
class Way:
    """How an engine runs: nothing of this may change an answer."""

    seed: int
    processors: int = 2
    driver_rows: int = 50_000
    store: str = "memory"
    repeats: float = 0.0
    """Which part of the steps is executed twice, the first time for nothing."""
    moves: float = 0.0
    """Before which part of the steps queues are put in and taken out."""
    linear: str = "fused"
    """Whether selections and projections are operators of their own."""
    switches: float = 0.0
    """Before which part of the steps the next ones get another place."""
    budget: str = "1 GB"
    """The memory for queues; what does not fit is spilled, and pushes wait for room."""
    sharing: str = "auto"
    """Whether queries that differ in constants only run as one."""
    residents: str = "auto"
    """Whether residents do the steps on the executors, or jobs of Spark's."""
    mode: str = "free"
    """In which threads steps are done."""
    slice: str = "0"
    """How long a step may take."""
    divides: float = 0.0
    """Before which part of the steps partitions, and what is in them, are other ones."""
    shortens: float = 0.0
    """After which part of the calls a store's log begins anew."""
    validates: float = 1.0
    """After which part of the commits the engine looks whether its parts agree, beside the end."""

    def seldom_validated(self):
        """The same in `make test`, where to look after every commit takes longer than all else."""
        return self if TIMES else replace(self, validates=SELDOM)

    @staticmethod
    def drawn(seed):
        """One of the ways; seeds in a row meet all pairs of settings soon."""
        rng = random.Random(seed)
        return Way(
            seed,
            PROCESSORS[seed % len(PROCESSORS)],
            DRIVER_ROWS[seed // 3 % len(DRIVER_ROWS)],
            rng.choice(STORES),
            rng.choice((0.0, 0.5)),
            rng.choice((0.0, 0.2, 1.0)),
            rng.choice(("fused", "apart")),
            rng.choice((0.0, 0.0, 0.1)),
            rng.choice(("1 GB", "1 GB", "300 B")),
            rng.choice(("auto", "on", "off")),
            rng.choice(("auto", "auto", "0")),
            shortens=rng.choice((0.0, 0.3)),
            mode=rng.choice(("free", "free", "free", "gts", "ots", "hmts", "di", "direct")),
            slice=rng.choice(("0", "0", "1 ms")),
            divides=rng.choice((0.0, 0.0, 0.2)),
        )

    def engines(self, spark, **more):
        """Makes engines of this way, for ``fuzz.check``."""

        @contextlib.contextmanager
        def made(settings):
            rng = random.Random(self.seed)
            settings = settings | more
            settings |= {"processors": self.processors, "driver_rows": self.driver_rows}
            settings |= {"linear": self.linear, "budget": self.budget, "sharing": self.sharing}
            settings |= {"validate": "on", "residents": self.residents}
            if self.driver_rows >= 50_000:  # else each of many steps is a job
                settings |= {"slice": self.slice}
            if settings.get("strategy") not in THREADED:
                settings |= {"mode": self.mode}
            settings |= {"overload": "approximate", "latency": "1 hour"}  # which changes nothing
            directory = None if self.store == "memory" else tempfile.mkdtemp(prefix="millpond-test")

            def make():
                return Engine(settings, spark, store=directory)

            with (
                repeated(rng, self.repeats),
                moving_queues(rng, self.moves),
                switching_places(rng, self.switches),
                dividing(rng, self.divides),
                validating(self.seed, self.validates),
            ):
                death = 0.25 if self.store == "dying" else 0.0
                chances = (lambda: rng.random() < death), (lambda: rng.random() < self.shortens)
                engine = make() if directory is None else Mortal(make, *chances)
                try:
                    with engine as open_engine:
                        if self.divides:
                            open_engine.execute("CREATE PARTITION IF NOT EXISTS drawn")
                        yield open_engine
                        open_engine.validate()
                finally:
                    if directory is not None:
                        shutil.rmtree(directory, ignore_errors=True)

        return made


@contextlib.contextmanager
def repeated(rng, share):
    """Executes some steps twice: what the first execution wrote is thrown away."""
    execute, lock = Executors.execute, threading.Lock()

    def twice(self, step):
        with lock:
            again = rng.random() < share
        if again:
            outcome = execute(self, step)
            if outcome.output is not None:
                outcome.output.free()
            if step.running.state is not None:
                step.running.state.give_up(outcome.state)
        return execute(self, step)

    Executors.execute = twice
    try:
        yield
    finally:
        Executors.execute = execute


@contextlib.contextmanager
def validating(seed, share):
    """Has engines that validate themselves do so after some commits only."""
    validate, rng = Engine.validate_if_set, random.Random(seed)

    def perhaps(self):
        if rng.random() < share:
            validate(self)

    Engine.validate_if_set = perhaps
    try:
        yield
    finally:
        Engine.validate_if_set = validate


def moving_queues(rng, share):
    """Before some steps, has queues stand somewhere else."""

    def move(runtime):
        part = rng.choice((0.0, 0.5, 0.9, 1.0))
        found = sorted(edges(runtime.operators.graph))
        queues = {edge for edge in found if rng.random() > part}
        placement = runtime.placement.choose(runtime.operators.graph, queues)
        for name in drawn_parts(rng, runtime):
            placement = placement.say(name, rng.random() < 0.6)
        runtime.placement = placement

    return before_steps(rng, share, move)


def drawn_parts(rng, runtime):
    """Some of the parts of operators that can be cut off."""
    operators = sorted(runtime.operators.graph.operators)
    parts = [name for each in operators for name in runtime.cutting.cuts.named(each)]
    return [name for name in parts if rng.random() < 0.5]


def dividing(rng, share):
    """Before some steps, has other partitions with other strategies, threads and operators."""

    def divide(runtime):
        made = [
            PartitionSnapshot(
                f"p{number}",
                rng.choice(("fifo", "chain", "greedy", "path-capacity")),
                threads=rng.randint(1, 3),
                priority=rng.choice((0.01, 1.0, 9.0)),
            )
            for number in range(rng.randint(1, 3))
        ]
        operators = sorted(runtime.operators.graph.operators)
        by_hand = {each: rng.choice(made).name for each in operators if rng.random() < 0.5}
        runtime.use_partitions(made, by_hand)

    return before_steps(rng, share, divide)


def switching_places(rng, share):
    """Before some steps, has the next ones be done somewhere else."""

    def switch(runtime):
        runtime.limits.driver_rows = rng.choice(DRIVER_ROWS)

    return before_steps(rng, share, switch)


@contextlib.contextmanager
def before_steps(rng, share, change):
    """Changes something before some steps."""
    perform = EngineRuntime.perform

    def changed(self, decision):
        if isinstance(decision, RunOperator) and rng.random() < share:
            change(self)
        perform(self, decision)

    EngineRuntime.perform = changed
    try:
        yield
    finally:
        EngineRuntime.perform = perform
