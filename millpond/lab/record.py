"""The recorded verdicts: what a run is compared with, and how they are recorded anew.

A verdict that changes, for the better too, is news: a strategy, the simulator or a claim is no
longer what it was.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from millpond.errors import StateError
from millpond.lab.running import Outcome

RECORD = Path(__file__).with_name("verdicts.json")
"""The record that comes with Millpond."""
Verdicts: TypeAlias = Mapping[str, Mapping[str, str]]
"""By experiment and claim."""


class Change(NamedTuple):
    """A claim whose verdict is not the recorded one; "absent" where there is none."""

    experiment: str
    claim: str
    was: str
    now: str


def read(path: Path) -> Verdicts:
    """The recorded verdicts."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StateError(
            f'cannot read the recorded verdicts in "{path}": {error}; '
            "`millpond lab verify --record` writes them"
        ) from None
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise StateError(f'"{path}" is no record of verdicts: experiment, claim, verdict')
    return found


def write(path: Path, outcomes: Sequence[Outcome], known: Collection[str]) -> None:
    """Record these verdicts; those of other known experiments stay as they are."""
    recorded = read(path) if path.exists() else {}
    merged = {**recorded, **{outcome.name: verdicts_of(outcome) for outcome in outcomes}}
    kept = {name: merged[name] for name in known if name in merged}
    try:
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StateError(f'cannot record verdicts in "{path}": {error}') from None


def changes(recorded: Verdicts, outcomes: Sequence[Outcome]) -> list[Change]:
    """Every claim of these experiments that is new, gone, or judged otherwise than recorded."""
    return [change for outcome in outcomes for change in _changes(recorded, outcome)]


def _changes(recorded: Verdicts, outcome: Outcome) -> Iterator[Change]:
    before, now = recorded.get(outcome.name, {}), verdicts_of(outcome)
    for claim in {**before, **now}:
        was, verdict = before.get(claim, "absent"), now.get(claim, "absent")
        if was != verdict:
            yield Change(outcome.name, claim, was, verdict)


def verdicts_of(outcome: Outcome) -> Mapping[str, str]:
    """The verdicts by claim; two claims of one text could not be told apart in the record."""
    found: dict[str, str] = {}
    for claim in outcome.claims:
        if claim.text in found:
            raise StateError(f'{outcome.name} has two claims "{claim.text}"')
        found[claim.text] = claim.verdict
    return found
