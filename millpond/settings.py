"""What a user may set: ``SET key = value`` in a script, ``--set key=value`` on the command line."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from millpond.errors import CqlError, MachineError
from millpond.spelling import suggestion
from millpond.time_zones import UTC, zone_named

UNIT_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
"""The units of time, singular; a final S is allowed wherever one is read."""

_SHORT_UNITS = {"US": "MICROSECOND", "MS": "MILLISECOND", "S": "SECOND", "MIN": "MINUTE"}
_SHORT_UNITS |= {"M": "MINUTE", "H": "HOUR", "D": "DAY", "W": "WEEK"}

OFF = "off"

DISK = "disk"
"""The durability that outlives a loss of power."""

OF_THE_OWNER = ("store", "traces", "working_directory")
"""Settings for who starts the process, and not for who asks a server."""

_UNIT_BYTES = {"": 1, "B": 1, "K": 2**10, "KB": 2**10, "M": 2**20, "MB": 2**20}
_UNIT_BYTES |= {"G": 2**30, "GB": 2**30, "T": 2**40, "TB": 2**40}


def parse_duration_microseconds(text: str) -> int:
    """Reads a length of time.

    >>> parse_duration_microseconds("1 second"), parse_duration_microseconds("2ms")
    (1000000, 2000)
    """
    match = re.fullmatch(r"\s*(\d+)?\s*([A-Za-z]+)\s*", text)
    name = match[2].upper() if match else ""
    unit = _SHORT_UNITS.get(name) or name.removesuffix("S")
    if not match or unit not in UNIT_MICROSECONDS:
        units = ", ".join(name.lower() for name in UNIT_MICROSECONDS)
        raise ValueError(f"a length of time such as '1 second' (units: {units})")
    microseconds = int(match[1] or 1) * UNIT_MICROSECONDS[unit]
    if microseconds == 0:
        raise ValueError("a length of time above zero")
    return microseconds


def parse_bytes(text: str) -> int:
    """Reads an amount of memory.

    >>> parse_bytes("2 GB")
    2147483648
    """
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].upper() not in _UNIT_BYTES:
        raise ValueError("an amount of memory such as '512 MB' or '4g'")
    return int(match[1]) * _UNIT_BYTES[match[2].upper()]


@dataclass(frozen=True)
class Keeping:
    """How much of a query's results is kept: so many rows, or those of so many seconds, or all."""

    rows: int | None = None
    seconds: float | None = None

    @staticmethod
    def parse(text: str) -> Keeping:
        """Reads how much is kept.

        >>> Keeping.parse("1_000 rows"), str(Keeping.parse("1 hour")), str(Keeping.parse("none"))
        (Keeping(rows=1000, seconds=None), '3600 seconds', 'none')
        """
        words = text.strip().lower()
        if words in ("all", "none"):
            return Keeping(0 if words == "none" else None)
        found = re.fullmatch(r"(\d[\d_]*)\s*rows?", words)
        if found:
            return Keeping(int(found[1].replace("_", "")))
        try:
            return Keeping(seconds=parse_duration_microseconds(text) / 1e6)
        except ValueError:
            raise ValueError("'100000 rows', a length of time, 'all' or 'none'") from None

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"{self.seconds:g} seconds"
        return "all" if self.rows is None else f"{self.rows} rows" if self.rows else "none"


def is_local(spark_master: str) -> bool:
    """Whether Spark runs its tasks in the driver's own process.

    >>> is_local("local[2]"), is_local("spark://here:7077"), is_local("local-cluster[2,1,1024]")
    (True, False, False)
    """
    return re.match(r"local(\[|$)", spark_master) is not None


def local_cores(spark_master: str) -> int:
    """How many tasks a local Spark runs at once.

    >>> local_cores("local[3]"), local_cores("local")
    (3, 1)
    """
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", spark_master)
    if match is None:
        raise MachineError(f'spark_master = "{spark_master}" is no local Spark: use local[2]')
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1] or 1)


def format_duration(microseconds: int) -> str:
    """Writes a length of time in its largest whole unit.

    >>> format_duration(120_000_000)
    '2 minutes'
    """
    for unit, length in reversed(UNIT_MICROSECONDS.items()):
        if microseconds % length == 0:
            count = microseconds // length
            return f"{count} {unit.lower()}{'' if count == 1 else 's'}"
    return f"{microseconds} microseconds"


def format_bytes(count: int) -> str:
    """Writes an amount of memory in its largest whole unit.

    >>> format_bytes(512 * 2**20)
    '512 MB'
    """
    for unit in ("TB", "GB", "MB", "KB"):
        if count and count % _UNIT_BYTES[unit] == 0:
            return f"{count // _UNIT_BYTES[unit]} {unit}"
    return f"{count} B"


def _whole_number(low: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text.replace("_", "").strip()
        if not re.fullmatch(r"-?\d+", digits) or int(digits) < low:
            raise ValueError(f"a whole number of at least {low}")
        return int(digits)

    return parse


def parse_seconds(text: str) -> float:
    """Reads a number of seconds, or a length of time in any unit.

    >>> parse_seconds("1.5"), parse_seconds("2 min")
    (1.5, 120.0)
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = parse_duration_microseconds(text) / 1e6
    if not 0 <= seconds < float("inf"):
        raise ValueError("a number of seconds, not negative")
    return seconds


EXACT = "EXACT"
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_TOLERATED = re.compile(
    rf"(SAMPLE AT LEAST|CONFIDENCE|FALSE NEGATIVES|FALSE POSITIVES) {_NUMBER} PERCENT"
    rf"|(ERROR) {_NUMBER}(?: PERCENT)?"
)


def _tolerated(text: str) -> str:
    """EXACT, or what stands between the parentheses of TOLERATE."""
    words = " ".join(text.upper().split())
    if words == EXACT:
        return EXACT
    parts = [_TOLERATED.fullmatch(part.strip()) for part in words.split(",")]
    said = {part[1] or part[3]: float(part[2] or part[4]) for part in parts if part is not None}
    most = {"SAMPLE AT LEAST": 100.0, "CONFIDENCE": 99.999999, "FALSE POSITIVES": 99.999999}
    allowed = all(0 < said[kind] <= most.get(kind, float("inf")) for kind in said)
    if len(said) < len(parts) or not allowed:
        raise ValueError(
            "EXACT, or SAMPLE AT LEAST n PERCENT, ERROR n PERCENT, CONFIDENCE n PERCENT, FALSE "
            "NEGATIVES n PERCENT, FALSE POSITIVES n PERCENT, or some of these"
        )
    return words


def _word(text: str) -> str:
    if not text.strip():
        raise ValueError("a name")
    return text.strip()


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip().lower() not in words:
            raise ValueError("one of " + ", ".join(words))
        return text.strip().lower()

    return parse


def _traces(text: str) -> str:
    words = text.strip()
    if words.lower() in (OFF, "process"):
        return words.lower()
    if not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", words):
        raise ValueError("off, process, or the address of a collector: http://localhost:4318")
    return words


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError("a number from 0 to 1")
    return share


def _memory_of_jvm(text: str) -> str:
    return f"{max(1, parse_bytes(text) // 2**20)}m"


class Change(StrEnum):
    """When a setting may be changed."""

    ANY_TIME = "at any time"
    FIRST = "by the first statement"
    BEFORE_STORE = "before the store"
    BEFORE_STREAMS = "before the first stream"
    SOURCES_TO_COME = "for sources declared later"
    BEFORE_QUERIES = "before the first query"
    BEFORE_STEPS = "before the first step"
    BEFORE_SPARK = "before Spark starts"


AUTO = "auto"
"""The value of a setting that is worked out, or left to Spark."""


def _or_auto(parse: Callable[[str], Any]) -> Callable[[str], str]:
    def parse_or_auto(text: str) -> str:
        if text.strip().lower() == AUTO:
            return AUTO
        try:
            return str(parse(text))
        except ValueError as error:
            raise ValueError(f"{AUTO} or {error}") from None

    return parse_or_auto


@dataclass(frozen=True)
class _Option:
    parse: Callable[[str], Any]
    meaning: str
    show: Callable[[Any], str] = str
    change: Change = Change.ANY_TIME


def _option(default: Any, parse: Callable[[str], Any], meaning: str, **more: Any) -> Any:
    option = _Option(parse, meaning, **more)
    return dataclasses.field(default=default, metadata={"option": option})


@dataclass(frozen=True)
class Settings:
    """All settings of an engine; a changed copy is made with ``with_option``.

    >>> Settings().with_option("tick", "1 second").tick_microseconds
    1000000
    """

    tick_microseconds: int = _option(
        1,
        parse_duration_microseconds,
        "the length of one tick of time",
        show=format_duration,
        change=Change.BEFORE_STREAMS,
    )
    time_zone: str = _option(
        UTC,
        zone_named,
        "where hours and days are those of the clocks, in views and queries that follow",
    )
    strategy: str = _option("round-robin", _word, "the scheduling strategy")
    mode: str = _option(
        "free",
        _one_of("free", "direct", "di", "gts", "ots", "hmts"),
        "who may begin a step: whatever the strategy says (free), whoever brings tuples, without a "
        "strategy (direct), or threads as in the HMTS paper",
    )
    seed: int = _option(
        0,
        _whole_number(0),
        "what sampling and generated data depend on",
        change=Change.BEFORE_STEPS,
    )
    page_rows: int = _option(
        100_000,
        _whole_number(1),
        "how many rows a source hands over at once, at most",
        change=Change.SOURCES_TO_COME,
    )
    pace: str = _option(
        "fast",
        _one_of("fast", "wall"),
        "when generated rows come: as soon as they are asked for (fast), or at their time (wall)",
        change=Change.SOURCES_TO_COME,
    )
    budget_bytes: int = _option(
        2**30,
        parse_bytes,
        "the memory for what waits, what windows retain, kept results, late and left-out rows, and "
        "what is remembered of states and of pages read again; beyond it pages are spilled, "
        "sources are held back while as much waits, and steps are cut smaller",
        show=format_bytes,
    )
    overload: str = _option(
        "wait",
        _one_of("wait", "approximate"),
        "what follows when there is more than can be done: sources wait, or tuples are dropped for "
        "queries that TOLERATE it",
    )
    latency_seconds: float = _option(
        0.0,
        parse_seconds,
        "how far answers of queries that TOLERATE a sample may be behind before tuples are dropped "
        "for them, where overload is approximate; 0: none are dropped by themselves",
        show=lambda seconds: f"{seconds:g} seconds" if seconds else "0",
    )
    tolerate: str = _option(
        EXACT,
        _tolerated,
        "what queries TOLERATE that are created from now on, say neither that nor EXACT, and have "
        "bounds: EXACT, or such as 'SAMPLE AT LEAST 10 PERCENT, CONFIDENCE 99 PERCENT'",
    )
    heartbeat_timeout_seconds: float = _option(
        1.0,
        parse_seconds,
        "with clock = 'wall' how long a stream may be silent before its time goes on without it",
        show=lambda seconds: f"{seconds:g} seconds",
    )
    clock: str = _option(
        "event",
        _one_of("event", "wall"),
        "what moves time: the tuples alone (event), or also the wall clock (wall)",
    )
    step_rows: int = _option(
        500_000, _whole_number(1), "how many rows one step reads, about, at most"
    )
    driver_rows: int = _option(
        50_000,
        _whole_number(0),
        "with place_by = 'rows' steps of more rows run on the executors; with 0 all steps do",
    )
    place_by: str = _option(
        "cost",
        _one_of("cost", "rows"),
        "whether a step runs where it is quicker, by what steps have cost, or by driver_rows alone",
    )
    small_steps: str = _option(
        "driver",
        _one_of("driver", "spark"),
        "who evaluates the expressions of steps that end in the driver",
    )
    functions: str = _option(
        "thread",
        _one_of("thread", "process"),
        "where steps in the driver call functions of the user: in the thread of the step, or in a "
        "process of their own, so that one that crashes stops the queries that call it only",
    )
    linear: str = _option(
        "functions",
        _one_of("fused", "functions", "apart"),
        "which selections and projections are operators from the start, for modes to put queues "
        "behind: none, those next to functions of the user, or all",
        change=Change.BEFORE_QUERIES,
    )
    sharing: str = _option(
        "auto",
        _one_of("auto", "on", "off"),
        "whether queries that differ in constants only run as one: from the second of them on, "
        "from the first, or never; whether equal joins do: unless they were seen to have uneven "
        "readers, always, or never; for queries to come",
    )
    keep_results: Keeping = _option(  # noqa: RUF009 (a Keeping never changes)
        Keeping(1_000_000),
        Keeping.parse,
        "how much of each query's results is kept to be read again: '100000 rows', '1 hour', "
        "'all' or 'none'; sinks and subscribers get everything",
    )
    validate: str = _option(
        "off",
        _one_of("off", "on"),
        "whether it is checked after every commit and statement that all parts of the engine "
        "agree; where they do not it stops with an error",
    )
    watch: str = _option(
        "order",
        _one_of("order", "on", "off"),
        "what is seen of the columns by which queries join and group: how far tuples come behind "
        "larger ones, also how far equal values come apart, or nothing; SHOW CONSTRAINTS suggests "
        "what would free rows",
    )
    traces: str = _option(
        OFF,
        _traces,
        "where traces of arrivals go, through steps to deliveries: to the OpenTelemetry collector "
        "at an address such as http://localhost:4318, to what the process has set up (process), or "
        "nowhere (off)",
    )
    trace_share: float = _option(
        0.01, _share, "of which share of the arrivals traces are made, from 0 to 1"
    )
    slice_seconds: float = _option(
        0.0,
        parse_seconds,
        "how long the rows of a step may take, beside its fixed part, by what they were measured "
        "to cost: what is more urgent waits no longer for a processor; 0: as strategy and mode say",
        show=lambda seconds: f"{seconds:g} seconds" if seconds else "0",
    )
    processors: int = _option(
        0, _whole_number(0), "how many steps run at once; 0: as many as Spark has cores"
    )
    tasks: int = _option(
        0,
        _whole_number(0),
        "how many tasks a step on the executors has, where its rows can be divided; 0: as many as "
        "Spark has cores, fewer for few rows. What has a state keeps the number it began with",
    )
    residents: str = _option(
        AUTO,
        _or_auto(_whole_number(0)),
        "how many long-lived tasks of Spark's do the steps on the executors; auto: as many as "
        "there are cores; 0: a job of Spark's does each step",
    )
    store: str = _option(
        "memory",
        _word,
        "where pages and states are kept: memory, a directory that all hosts see, or an address "
        "(s3://bucket/name)",
        change=Change.FIRST,
    )
    working_directory: str = _option(
        AUTO,
        _word,
        "where copies of the files lie, of a store at an address; auto: where temporary files do; "
        "on a cluster a directory that all hosts see",
        change=Change.BEFORE_STORE,
    )
    durability: str = _option(
        "process",
        _one_of("process", DISK),
        "what survives in a store that is a directory: the death of the process, or also a loss of "
        "power: then what is acknowledged was forced onto the disk",
    )
    spark_master: str = _option("local[*]", _word, "where Spark runs", change=Change.BEFORE_SPARK)
    driver_memory: str = _option(
        "2048m", _memory_of_jvm, "the heap of Spark's driver process", change=Change.BEFORE_SPARK
    )
    driver_host: str = _option(
        AUTO,
        _or_auto(_word),
        "the address of this machine that Spark's workers reach; auto: the one towards the master",
        change=Change.BEFORE_SPARK,
    )
    resident_port: str = _option(
        AUTO,
        _or_auto(_whole_number(1)),
        "the port of this machine that residents connect to; auto: any that is free",
        change=Change.BEFORE_SPARK,
    )
    resident_encryption: str = _option(
        AUTO,
        _one_of("auto", "on", "off"),
        "whether residents and the driver talk in TLS; auto: where Spark encrypts what it says",
        change=Change.BEFORE_SPARK,
    )
    executor_memory: str = _option(
        AUTO,
        _or_auto(_memory_of_jvm),
        "the heap of each executor on a cluster; auto: as Spark is configured",
        change=Change.BEFORE_SPARK,
    )
    executor_cores: str = _option(
        AUTO,
        _or_auto(_whole_number(1)),
        "how many tasks an executor on a cluster runs at once; auto: as Spark is configured",
        change=Change.BEFORE_SPARK,
    )

    def with_option(self, key: str, value_text: str) -> Settings:
        """A copy with one setting changed, read from text as in ``SET key = value``."""
        name, option = _find(key)
        try:
            value = option.parse(value_text)
        except ValueError as error:
            raise CqlError(f"setting {_key(name)}: {value_text!r} is not {error}") from None
        return dataclasses.replace(self, **{name: value})

    def with_options(self, options: dict[str, Any]) -> Settings:
        """A copy with several settings changed, values given as text or as plain numbers."""
        settings = self
        for key, value in options.items():
            settings = settings.with_option(key, str(value))
        return settings

    def listing(self) -> list[tuple[str, str, str, str]]:
        """Key, value, meaning of every setting, and when it may change, for SHOW SETTINGS."""
        return [
            (_key(name), option.show(getattr(self, name)), option.meaning, option.change.value)
            for name, option in _OPTIONS.items()
        ]


_OPTIONS: dict[str, _Option] = {
    field.name: field.metadata["option"] for field in dataclasses.fields(Settings)
}


def refuse_late_change(key: str, has_spark: bool, has_stepped: bool, has_queries: bool) -> None:
    """Refuses to change a setting that was already made use of and would change nothing more."""
    name, option = _find(key)
    too_late = {
        Change.BEFORE_SPARK: has_spark,
        Change.BEFORE_STEPS: has_stepped,
        Change.BEFORE_QUERIES: has_queries,
    }
    if too_late.get(option.change):
        raise CqlError(f"setting {_key(name)} can be changed only {option.change}; it is in use")


def _key(name: str) -> str:
    """What a setting is called: its name without the unit."""
    return re.sub("_(microseconds|seconds|bytes)$", "", name)


def _find(key: str) -> tuple[str, _Option]:
    wanted = key.strip().lower().replace("-", "_")
    for name, option in _OPTIONS.items():
        if wanted in (_key(name), name):
            return name, option
    raise CqlError(f'no setting "{key}"{suggestion(wanted, map(_key, _OPTIONS))}')
