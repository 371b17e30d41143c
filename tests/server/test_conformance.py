"""The published description holds: made-up requests to every address, and never a 5xx.

`python -m tests.server.test_conformance --requests 5000` runs for longer.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.checks import not_a_server_error

from millpond.server.limits import Limits
from tests.patience import PATIENCE_SECONDS
from tests.server.serving import Running, running

ENDLESS = {"follow": "false", "seconds": "0.2"}
"""What keeps endless responses short."""

UNHURRIED = Limits(requests_per_second=1e6, request_burst=10**9)


@pytest.fixture(scope="module")
def patient() -> Iterator[Running]:
    with running(limits=UNHURRIED) as made:
        made.push((1, 1), (2, 2), (3, 3))
        yield made


NAMES = {
    "streams": "S",
    "relations": "R",
    "inputs": "S",
    "queries": "big",
    "queues": "stream:s",
}
KINDS = {"query": "counts", "queue": "op1", "operator": "op1", "scheduler": "scheduler"}
TEXTS = (
    "SELECT a FROM S",
    "SHOW ALL; SHOW STATISTICS",
    "CREATE QUERY z AS SELECT a, COUNT(*) AS n FROM S [RANGE 5] GROUP BY a; DROP QUERY z",
    "SELECT a, t FROM S [ROWS 2]",
    "CREATE STREAM N (x STRING)",
    "SELECT name FROM R",
    "SET strategy = 'chain'",
)


def _aim(case: schemathesis.Case, number: int) -> None:
    """Every other request is about something that is there, or is meant."""
    if number % 2:
        return
    parameters = case.path_parameters or {}
    if "kind" in parameters:
        parameters["kind"] = list(KINDS)[number // 2 % len(KINDS)]
        parameters["name"] = KINDS[parameters["kind"]]
        if "attribute" in parameters:
            parameters["attribute"] = "weight" if number % 4 else "present"
    elif "name" in parameters and case.method != "DELETE":
        parameters["name"] = NAMES[case.path.split("/")[2]]
    if isinstance(case.body, dict) and "text" in case.body:
        case.body["text"] = TEXTS[number // 2 % len(TEXTS)]


def made_up(server: Running, requests: int, seed: int) -> Counter[int]:
    """Sends made-up requests to every address; how often each status came."""
    schema = schemathesis.openapi.from_url(server.url + "/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    each_gets = -(-3 * requests // (2 * len(operations)))  # some have nothing to vary
    statuses: Counter[int] = Counter()
    for operation in operations:

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=each_gets,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def send(case: schemathesis.Case) -> None:
            known = {each.name for each in case.operation.query}
            case.query = {
                **(case.query or {}),
                **{name: value for name, value in ENDLESS.items() if name in known},
            }
            _aim(case, sum(statuses.values()))
            if case.path == "/api/preview" and isinstance(case.body, dict):
                case.body["seconds"] = 0.1
            response = case.call(timeout=PATIENCE_SECONDS)
            statuses[response.status_code] += 1
            if case.path != "/ready":
                case.validate_response(response, checks=(not_a_server_error,))

        send()
    return statuses


@pytest.mark.slow
def test_made_up_requests_never_break_the_server(patient: Running) -> None:
    statuses = made_up(patient, 500, seed=1)
    assert sum(statuses.values()) >= 500
    assert statuses[200] > 50
    assert patient.http.get("/ping").text == "pong"
    assert patient.http.get("/ready").json() == {"ready": True}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=2)
    asked = parser.parse_args()
    with running(limits=UNHURRIED) as server:
        server.push((1, 1), (2, 2), (3, 3))
        found = made_up(server, asked.requests, asked.seed)
    sys.stdout.write(f"{sum(found.values())} requests: {dict(sorted(found.items()))}\n")
