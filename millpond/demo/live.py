"""Web-proxy traffic by the wall clock, with bursts on demand, and queries to watch."""

from __future__ import annotations

import random
import threading
import time

from millpond.engine import Engine
from millpond.errors import MillpondError

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
SHARES = (30, 15, 25, 20, 10)

TRICKLE, BURST = 60.0, 6_000.0
"""Requests a second, usually and in a burst."""

BURST_SECONDS = 8.0
PAUSE_SECONDS = 0.1


class Traffic:
    """Pushes requests to an engine until it is closed."""

    def __init__(self, engine: Engine, seed: int = 7) -> None:
        self._engine = engine
        self._random = random.Random(seed)  # noqa: S311 (made-up data)
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
                self._engine.push("Requests", [self._request() for _ in range(count)])
            except MillpondError:
                return  # the engine is closed, or somebody has dropped the stream

    def _request(self) -> tuple[int, str, str, int]:
        draw = self._random
        domain = draw.choices(DOMAINS, SHARES)[0]
        host = "cs.stanford.edu" if domain == "stanford.edu" and draw.random() < 0.3 else domain
        url = f"http://{host}/page{draw.randrange(200)}"
        return draw.randrange(1, 1_500), domain, url, int(draw.lognormvariate(4.6, 0.7))
