"""Where the time of a step goes, seen from outside the engine.

Calls to the JVM are timed on their way out, collections of results where Python asks for them,
planning, code generation and jobs by Spark's own books.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

PARTS = (
    "python",
    "building",
    "planning",
    "generating",
    "compiling",
    "scheduling",
    "tasks",
    "transfer",
)
MEANINGS = {
    "python": "the engine's own work in the driver: pages, kernels, decisions",
    "building": "making DataFrames: calls to the JVM, and the analysis each of them starts",
    "planning": "optimising and planning the query that is collected",
    "generating": "writing Java for the stages",
    "compiling": "compiling it: nothing in a warm engine whose steps look alike",
    "scheduling": "a job's time beyond its tasks",
    "tasks": "the tasks, divided by the cores",
    "transfer": "the rest of a collection: serving, reading and decoding Arrow",
}


class StepProfile:
    """Milliseconds by part, summed over everything that ran under it."""

    def __init__(self, spark: SparkSession) -> None:
        self.milliseconds: defaultdict[str, float] = defaultdict(float)
        self.calls = 0
        self.jobs = 0
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._collecting = False
        self._calling = False
        """Within a call there may be another: garbage is handed back whenever Python finds it."""
        self._seen_jobs = {job.jobId() for job in self._listed_jobs()}
        self._code_before = self._code_milliseconds()

    # -- while it runs ---------------------------------------------------------------------

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Times what happens in the block."""
        gateway: Any = self._spark.sparkContext._gateway
        client, frames = gateway._gateway_client, cast("Any", DataFrame)
        send, collect = client.send_command, frames._collect_as_arrow
        client.send_command = self._timed_call(send)
        frames._collect_as_arrow = self._timed_collection(collect)
        began = time.perf_counter()
        try:
            yield
        finally:
            self._add("whole", began)
            frames._collect_as_arrow = collect
            client.send_command = send
        self._read_books()

    def _add(self, part: str, began: float) -> None:
        self.milliseconds[part] += 1000 * (time.perf_counter() - began)

    def _timed_call(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            if self._collecting or self._calling:
                return send(*arguments, **options)
            self.calls += 1
            self._calling, began = True, time.perf_counter()
            try:
                return send(*arguments, **options)
            finally:
                self._add("building", began)
                self._calling = False

        return timed

    def _timed_collection(self, collect: Callable[..., Any]) -> Callable[..., Any]:
        def timed(frame: DataFrame) -> Any:
            self._collecting, began = True, time.perf_counter()
            try:
                return collect(frame)
            finally:
                self._add("collection", began)
                self._read_phases(frame)
                self._collecting = False

        return timed

    # -- Spark's books ---------------------------------------------------------------------

    def _read_phases(self, frame: DataFrame) -> None:
        began = time.perf_counter()
        phases = frame._jdf.queryExecution().tracker().phases()
        for name in ("optimization", "planning"):
            if phases.contains(name):
                self.milliseconds["planning"] += phases.apply(name).durationMs()
        self.milliseconds["whole"] -= 1000 * (time.perf_counter() - began)

    def _code_milliseconds(self) -> dict[str, float]:
        sql = self._jvm.org.apache.spark.sql
        compiling = sql.catalyst.expressions.codegen.CodeGenerator.compileTime()
        generating = sql.execution.WholeStageCodegenExec.codeGenTime()
        return {"generating": generating / 1e6, "compiling": compiling / 1e6}

    def _store(self) -> Any:
        return self._spark.sparkContext._jsc.sc().statusStore()

    def _listed_jobs(self) -> list[Any]:
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = self._store().jobsList(None)
        return [jobs.apply(i) for i in range(jobs.size())]

    def _read_books(self) -> None:
        code = self._code_milliseconds()
        for part, spent in code.items():
            self.milliseconds[part] += spent - self._code_before[part]
        self._code_before = code
        new = [job for job in self._listed_jobs() if job.jobId() not in self._seen_jobs]
        self.jobs += len(new)
        self._seen_jobs |= {job.jobId() for job in new}
        cores = self._spark.sparkContext.defaultParallelism
        for job in new:
            spent = job.completionTime().get().getTime() - job.submissionTime().get().getTime()
            tasks = sum(self._stage_milliseconds(i, cores) for i in _items(job.stageIds()))
            self.milliseconds["tasks"] += tasks
            self.milliseconds["scheduling"] += max(spent - tasks, 0)

    def _stage_milliseconds(self, stage: int, cores: int) -> float:
        try:
            data = self._store().lastStageAttempt(stage)
        except Py4JJavaError:  # the stage was skipped, or is forgotten already
            return 0.0
        return float(data.executorRunTime()) / max(1, min(cores, int(data.numTasks())))

    def per_step(self, steps: int) -> dict[str, float]:
        """Milliseconds a step, part by part."""
        spent = self.milliseconds
        collecting = sum(spent[part] for part in PARTS[PARTS.index("planning") : -1])
        parts = dict.fromkeys(PARTS, 0.0) | {name: float(spent[name]) for name in PARTS}
        parts["transfer"] = max(spent["collection"] - collecting, 0.0)
        parts["python"] = max(spent["whole"] - spent["building"] - spent["collection"], 0.0)
        return {name: value / steps for name, value in parts.items()}


def _items(sequence: Any) -> list[int]:
    return [int(sequence.apply(i)) for i in range(sequence.size())]
