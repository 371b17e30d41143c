"""Runs a script through the engine and prints what comes of it."""

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TextIO

import pyarrow as pa

from millpond.catalog import QueryEntry
from millpond.cli.faults import STDIN_SCRIPT, Script, warn
from millpond.cli.notices import (
    say_what_has_no_end,
    say_what_it_took,
    warn_of_bad_rows,
    warn_of_late_tuples,
    warn_of_silence,
)
from millpond.cli.progress import ProgressDisplay, ended_by_printing
from millpond.cli.results import Printer, make_printer, text_table
from millpond.cli.simulating import write_statistics
from millpond.facade.engine import Engine
from millpond.insight.display import Plan
from millpond.intake.reading import ReadLimits
from millpond.settings import Settings

UNLIMITED = ReadLimits()
WAY_OUT = "this runs until Ctrl-C; --for 30s or --rows 1000 would end it"


def run_script(
    script: Script,
    settings: Settings,
    output: str,
    limits: ReadLimits = UNLIMITED,
    statistics: Path | None = None,
) -> None:
    """Executes the statements, reads sources to their end and prints every result."""
    with ended_by_terminating(), Engine(settings, keep_results=False) as engine:
        if script.name == STDIN_SCRIPT:
            engine.ground.claims.keep_stdin("the script")
        answers = engine.execute(script.text, name=script.name)
        warn(engine.warnings(), script)
        # Answers of SHOW and EXPLAIN are for people: they stay out of the way of programs.
        print_answers(answers, sys.stdout if output == "table" else sys.stderr)
        if limits == UNLIMITED:
            say_what_has_no_end(engine, WAY_OUT)
        print_results(engine, printer_for(engine, output), limits)
        say_what_it_took(engine)
        if statistics is not None:
            write_statistics(engine.statistics(), statistics)
        warn_of_silence(engine, has_answers=bool(answers))
        warn_of_late_tuples(engine)
        warn_of_bad_rows(engine)


@contextmanager
def ended_by_terminating() -> Iterator[None]:
    """SIGTERM ends the work as Ctrl-C does, so that all is closed; a second one ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    was_told = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal was_told
        if was_told:
            os._exit(128 + number)
        was_told = True
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if was_told:
            signal.raise_signal(signal.SIGTERM)


def printer_for(engine: Engine, output: str) -> Printer:
    """A printer for all queries."""
    columns = {query.name: query.plan.schema.names for query in _queries(engine)}
    return make_printer(output, columns, engine.format_time)


def print_results(engine: Engine, printer: Printer, limits: ReadLimits = UNLIMITED) -> None:
    """Reads sources to their end; every result is printed as it comes."""
    display = ProgressDisplay()
    for query in _queries(engine):
        engine.subscribe(query.name, partial(display.printing(printer), query.name))
    engine.ground.lazy_spark.while_starting = partial(display.waiting_for, "Spark")
    with ended_by_printing(), display.shown() as progress:
        engine.finish(progress, limits.seconds, limits.rows)


def print_answers(answers: Iterable[pa.Table | Plan], stream: TextIO) -> None:
    """Prints what SHOW and EXPLAIN answered."""
    for answer in answers:
        text = str(answer) if isinstance(answer, Plan) else text_table(answer)
        stream.write(text.rstrip("\n") + "\n")
    stream.flush()


def _queries(engine: Engine) -> list[QueryEntry]:
    return list(engine.catalog.of_kind(QueryEntry))
