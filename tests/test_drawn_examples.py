from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DRAWING = """
from hypothesis import given, strategies as st
from tests.drawn_examples import examples, load_profile

load_profile()

@examples(20)
@given(st.integers())
def draw(number):
    print(number)

draw()
"""


def _drawn(times: str | None) -> list[str]:
    """The numbers that a run of its own draws."""
    environment = {key: value for key, value in os.environ.items() if key != "MILLPOND_EXAMPLES"}
    if times is not None:
        environment["MILLPOND_EXAMPLES"] = times
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", DRAWING]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True)
    return done.stdout.decode().split()


def test_two_runs_try_the_same_examples_unless_asked_for_fresh_ones() -> None:
    fixed = _drawn(None)
    assert len(fixed) == 10
    assert _drawn(None) == fixed
    assert _drawn("3") != fixed


def test_fresh_examples_are_as_many_times_more_as_asked_for() -> None:
    assert len(_drawn("3")) == 60
