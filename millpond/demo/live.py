"""Web-proxy traffic by the wall clock, with bursts on demand, and queries to watch."""

import threading
import time

import numpy as np
import pyarrow as pa

from millpond.errors import MillpondError
from millpond.facade.engine import Engine

SCRIPT = """
CREATE STREAM Requests (client_id INT, domain STRING, url STRING, milliseconds INT);
CREATE RELATION Domains (domain STRING PRIMARY KEY, type STRING);
INSERT INTO Domains VALUES
  ('stanford.edu', 'education'), ('shop.example', 'commerce'), ('news.example', 'news'),
  ('mail.example', 'other'), ('games.example', 'commerce');
CREATE QUERY traffic AS
  SELECT domain, COUNT(*) AS requests, AVG(milliseconds) AS mean_ms
  FROM Requests [RANGE 1 MINUTE SLIDE 1 SECOND]
  GROUP BY domain;
CREATE QUERY stanford AS
  SELECT COUNT(*) AS requests
  FROM Requests S [RANGE 1 MINUTE SLIDE 1 SECOND]
  WHERE S.domain = 'stanford.edu';
CREATE QUERY cs_department AS
  SELECT COUNT(*) AS requests
  FROM Requests S [PARTITION BY S.client_id ROWS 10 PRECEDING WHERE S.domain = 'stanford.edu']
  WHERE S.url LIKE 'http://cs.stanford.edu/%';
CREATE QUERY shopping AS
  SELECT S.client_id, S.url, S.milliseconds
  FROM Requests S [NOW], Domains R
  WHERE S.domain = R.domain AND R.type = 'commerce' AND S.milliseconds > 250;
"""

DOMAINS = ("stanford.edu", "shop.example", "news.example", "mail.example", "games.example")
HOSTS = (*DOMAINS, "cs.stanford.edu")
SHARES = (0.3, 0.15, 0.25, 0.2, 0.1)

TRICKLE, BURST = 60.0, 25_000.0
"""Requests a second, usually and in a burst."""

BURST_SECONDS = 8.0
PAUSE_SECONDS = 0.1


class Traffic:
    """Pushes requests to an engine until it is closed."""

    def __init__(self, engine: Engine, seed: int = 7) -> None:
        self._engine = engine
        self._random = np.random.default_rng(seed)
        self._bursts_until = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="millpond-demo", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def burst(self) -> None:
        """Much comes for some seconds."""
        self._bursts_until = time.monotonic() + BURST_SECONDS

    def close(self) -> None:
        """Ends."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        owed, last = 0.0, time.monotonic()
        while not self._is_over.wait(PAUSE_SECONDS):
            now = time.monotonic()
            rate = BURST if now < self._bursts_until else TRICKLE * self._random.uniform(0.3, 1.7)
            owed, last = min(owed + rate * (now - last), BURST), now
            count = int(owed)
            owed -= count
            try:
                self._engine.push("Requests", self.requests(count))
            except MillpondError:
                return  # the engine is closed, or somebody has dropped the stream

    def requests(self, count: int) -> pa.Table:
        """Some made-up requests."""
        draw = self._random
        domains = draw.choice(len(DOMAINS), size=count, p=SHARES)
        hosts = np.where((domains == 0) & (draw.random(count) < 0.3), len(DOMAINS), domains)
        pages = draw.integers(0, 200, count)
        urls = [f"http://{HOSTS[host]}/page{page}" for host, page in zip(hosts, pages, strict=True)]
        return pa.table(
            {
                "client_id": pa.array(draw.integers(1, 1_500, count), pa.int32()),
                "domain": pa.array([DOMAINS[each] for each in domains], pa.string()),
                "url": pa.array(urls, pa.string()),
                "milliseconds": pa.array(draw.lognormal(4.6, 0.7, count).astype(int), pa.int32()),
            }
        )
