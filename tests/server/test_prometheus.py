"""The dashboard against a real Prometheus that scrapes a real server.

``MILLPOND_PROMETHEUS`` names the program where it is not found by itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import Running, free_port, plain_client, running

PROMETHEUS = os.environ.get("MILLPOND_PROMETHEUS") or shutil.which("prometheus")
DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana_dashboard.json"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PROMETHEUS is None,
        reason="there is no Prometheus: apt install prometheus, or MILLPOND_PROMETHEUS=PROGRAM",
    ),
]

SCRIPT = """
    CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
    CREATE STREAM Quiet (t BIGINT, a INT) TIMESTAMP BY t;
    CREATE QUERY counts AS SELECT a, COUNT(*) AS n FROM S [RANGE 10] GROUP BY a;
    CREATE QUERY waits AS SELECT S.a FROM S [RANGE 5], Quiet [RANGE 5] WHERE S.a = Quiet.a;
"""


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, httpx.Client]]:
    """A server, and the Prometheus that looks at it twice a second."""
    place = tmp_path_factory.mktemp("prometheus")
    port = free_port()
    with running(SCRIPT) as server:
        target = server.url.removeprefix("http://")
        configuration = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
            "scrape_configs": [
                {"job_name": "millpond", "static_configs": [{"targets": [target]}]},
            ],
        }
        (place / "prometheus.yml").write_text(json.dumps(configuration))
        process = subprocess.Popen(
            [
                str(PROMETHEUS),
                f"--config.file={place}/prometheus.yml",
                f"--storage.tsdb.path={place}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=error",
            ]
        )
        try:
            with plain_client(f"http://127.0.0.1:{port}") as prometheus:
                wait_until(lambda: is_ready(prometheus))
                yield server, prometheus
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def is_ready(prometheus: httpx.Client) -> bool:
    try:
        return prometheus.get("/-/ready").status_code == 200
    except httpx.HTTPError:
        return False


def asked(prometheus: httpx.Client, expression: str) -> list[dict[str, Any]]:
    answer = prometheus.get("/api/v1/query", params={"query": expression}).json()
    assert answer["status"] == "success", answer
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def targets() -> list[tuple[str, str, str]]:
    """Title, expression and legend of all that the dashboard shows."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [(p["title"], t["expr"], t["legendFormat"]) for p in panels for t in p["targets"]]


def test_prometheus_takes_all_that_a_server_says(
    scraped: tuple[Running, httpx.Client],
) -> None:
    _, prometheus = scraped

    def health() -> Any:
        active = prometheus.get("/api/v1/targets").json()["data"]["activeTargets"]
        return [(each["health"], each["lastError"]) for each in active]

    wait_until(lambda: health() == [("up", "")])
    known = prometheus.get("/api/v1/metadata").json()["data"]
    ours = {name: told[0] for name, told in known.items() if name.startswith("millpond_")}
    assert ours["millpond_stream_arrived_total"]["type"] == "counter"
    assert ours["millpond_engine_backlog_bytes"]["type"] == "gauge"
    assert all(told["help"] for told in ours.values())


def test_every_expression_of_the_dashboard_answers(scraped: tuple[Running, httpx.Client]) -> None:
    server, prometheus = scraped
    now = iter(range(1, 1_000_000))

    def has_values(expression: str) -> bool:
        server.service.engine.push("S", [(next(now), 1)])
        found = asked(prometheus, expression)
        return bool(found) and all(each["value"][1] != "NaN" for each in found)

    for title, expression, legend in targets():
        wait_until(lambda expression=expression: has_values(expression))
        for each in asked(prometheus, expression):
            labels = set(re.findall(r"{{(\w+)}}", legend))
            assert labels <= each["metric"].keys(), f"{title}: {legend}"
    moving = "rate(millpond_stream_arrived_total{stream='S'}[1m])"
    wait_until(lambda: has_values(moving) and float(asked(prometheus, moving)[0]["value"][1]) > 0)
    waiting = "millpond_query_waits_seconds{query='waits'}"
    wait_until(lambda: has_values(waiting) and float(asked(prometheus, waiting)[0]["value"][1]) > 0)


def test_a_range_is_answered_as_a_panel_asks_it(scraped: tuple[Running, httpx.Client]) -> None:
    _, prometheus = scraped
    for _, expression, _ in targets():
        now = prometheus.get("/api/v1/query", params={"query": "time()"}).json()
        end = float(now["data"]["result"][1])
        span = {"query": expression, "start": end - 1_800, "end": end, "step": 15}
        answer = prometheus.get("/api/v1/query_range", params=span).json()
        assert answer["status"] == "success", answer
        assert answer["data"]["resultType"] == "matrix"
