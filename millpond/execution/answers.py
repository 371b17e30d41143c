"""What the tasks of a step give back: counts and names, never rows."""

import math
from typing import Any

from millpond.errors import InputError, OutgrownError
from millpond.storage.pages import Page
from millpond.storage.state import Delta
from millpond.storage.store import Store

Answer = dict[str, Any]
"""The counts and names that a task gives back."""


def answers_of_member(answers: list[Answer], member: int) -> list[Answer]:
    """What the tasks of a ride have answered for one of its members."""
    return [answer["members"][member] for answer in answers]


def checked(answers: list[Answer]) -> list[Answer]:
    """The answers of all tasks; raises what one of them could not do."""
    failed = [answer for answer in answers if "error" in answer]
    if failed:
        error = InputError(failed[0]["error"])
        for note in (note for answer in failed for note in answer["notes"]):
            error.add_note(note)
        raise error
    outgrown = [answer for answer in answers if "outgrown" in answer]
    if outgrown:
        largest = min(
            outgrown, key=lambda answer: math.inf if answer["until"] is None else answer["until"]
        )
        raise OutgrownError(largest["outgrown"], largest["until"])
    return answers


def page_of(store: Store, answers: list[Answer]) -> Page | None:
    """The page whose parts the tasks have written."""
    parts = [answer for answer in answers if "name" in answer]
    if not parts:
        return None
    for answer in parts:
        store.note_line(answer, "name", "sum")
    ends = [answer["last_end"] for answer in parts if answer["last_end"] is not None]
    first_ends = [answer["first_end"] for answer in parts if answer["first_end"] is not None]
    return Page(
        store,
        rows=sum(answer["rows"] for answer in parts),
        bytes_=sum(answer["bytes"] for answer in parts),
        first=min(answer["first"] for answer in parts),
        last=max(answer["last"] for answer in parts),
        last_end=max(ends, default=None),
        first_end=min(first_ends, default=None),
        names=tuple(answer["name"] for answer in parts),
    )


def deltas_of(answers: list[Answer], part: str = "delta") -> dict[int, Delta]:
    """What changes in each bucket of the state, or of a part of it."""
    return {answer["bucket"]: Delta.from_json(answer[part]) for answer in answers if part in answer}
