"""Verdicts in words: a line or a row each, and how many there are of every kind."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from millpond.lab.experiment import Claim, Verdict
from millpond.lab.record import Change
from millpond.lab.running import Outcome

_PLURAL = {"holds": "hold", "differs": "differ", "fails": "fail"}


def counts(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many claims hold, differ and fail."""
    found = Counter(claim.verdict for outcome in outcomes for claim in outcome.claims)
    return {verdict: found[verdict] for verdict in get_args(Verdict)}


def summary(outcomes: Sequence[Outcome]) -> str:
    """All three counts in one sentence."""
    found = counts(outcomes)
    parts = [f"{count} {_PLURAL[verdict]}" for verdict, count in found.items()]
    experiments = "1 experiment" if len(outcomes) == 1 else f"{len(outcomes)} experiments"
    return f"{experiments}, {sum(found.values())} claims: {', '.join(parts)}"


def by_paper(outcomes: Sequence[Outcome], papers: Mapping[str, str]) -> list[str]:
    """A summary for each paper, if there are several."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(papers[outcome.name], []).append(outcome)
    told = [f"{paper}: {summary(of)}" for paper, of in found.items()]
    return told if len(found) > 1 else []


def line(name: str, claim: Claim) -> str:
    """A claim with its verdict; what differs with what stands instead, and why."""
    verdict = claim.verdict.upper() if claim.verdict == "fails" else claim.verdict
    told = (
        f"{verdict:8}{name}: {claim.text} | expected {claim.expected} | measured {claim.measured}"
    )
    if claim.verdict == "differs" and claim.instead is not None:
        told += f" | instead {claim.instead.found} | why: {claim.instead.why}"
    return told


def row(name: str, claim: Claim) -> dict[str, str]:
    """The same as a row of JSON."""
    found = {
        "experiment": name,
        "claim": claim.text,
        "expected": claim.expected,
        "measured": claim.measured,
        "verdict": claim.verdict,
    }
    if claim.verdict == "differs" and claim.instead is not None:
        found |= {"instead": claim.instead.found, "why": claim.instead.why}
    return found


def change_line(change: Change) -> str:
    """A verdict that is not the recorded one."""
    return f"CHANGED {change.experiment}: {change.claim} | was {change.was}, is {change.now}"
