"""Runs a script through the engine and prints what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from typing import TextIO

import pyarrow as pa

from millpond.catalog import QueryEntry
from millpond.cli.faults import Script
from millpond.cli.progress import shown_progress
from millpond.cli.results import Printer, make_printer, text_table
from millpond.engine import Engine
from millpond.settings import Settings


def run_script(script: Script, settings: Settings, output: str) -> None:
    """Executes the statements, reads finite sources to their end and prints every result."""
    with Engine(settings, keep_results=False) as engine:
        answers = engine.execute(script.text, name=script.name)
        # Answers of SHOW and EXPLAIN are for people: they stay out of the way of programs.
        print_answers(answers, sys.stdout if output == "table" else sys.stderr)
        print_results(engine, printer_for(engine, output))
        warn_of_late_tuples(engine)


def printer_for(engine: Engine, output: str) -> Printer:
    """A printer for all queries."""
    columns = {query.name: query.plan.schema.names for query in _queries(engine)}
    return make_printer(output, columns, engine.format_time)


def print_results(engine: Engine, printer: Printer) -> None:
    """Reads finite sources to their end; every result is printed as it comes."""
    for query in _queries(engine):
        engine.subscribe(query.name, partial(printer.write, query.name))
    with shown_progress() as progress:
        engine.finish(progress)


def print_answers(answers: Iterable[pa.Table | str], stream: TextIO) -> None:
    """Prints what SHOW and EXPLAIN answered."""
    for answer in answers:
        text = answer if isinstance(answer, str) else text_table(answer)
        stream.write(text.rstrip("\n") + "\n")
    stream.flush()


def warn_of_late_tuples(engine: Engine) -> None:
    """Says how many tuples came too late to count, if any."""
    for intake in engine.inputs.streams.values():
        if intake.late_count:
            sys.stderr.write(
                f"millpond: warning: stream {intake.entry.name}: {intake.late_count} of "
                f"{intake.arrived + intake.late_count} tuples came too late and were left out; "
                f"DELAY in CREATE STREAM says how much disorder to wait for\n"
            )


def _queries(engine: Engine) -> list[QueryEntry]:
    return list(engine.catalog.of_kind(QueryEntry))
