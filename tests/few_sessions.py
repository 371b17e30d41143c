"""Gives test files to processes so that few of them start a Spark session, which is dear.

A session and what it compiles take a minute of a processor's time, and each process of `make test`
that gets a file with such tests starts one.
"""

from __future__ import annotations

import re
from pathlib import Path

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SESSIONS = 3
"""So many processes take the files that need a session, as long as there are others."""
_NEEDS_A_SESSION = re.compile(r"mark\.spark|\bspark\b\s*[,):]|_spark_session")


def needs_a_session(file: str) -> bool:
    """Whether a test file asks for a Spark session, by its text.

    >>> needs_a_session("tests/spark/test_random_queries.py")
    True
    >>> needs_a_session("tests/test_few_sessions.py")
    False
    """
    path = Path(file)
    return path.is_file() and bool(_NEEDS_A_SESSION.search(path.read_text(encoding="utf-8")))


class FewSessions(LoadFileScheduling):
    """Hands out files in their order, those that need a session to the first processes only."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Have the file that this process may take first go next."""
        self.workqueue.move_to_end(self._next_for(node), last=False)
        super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str:
        """The first file for this process; one that needs a session if there are no others."""
        files = list(self.workqueue)
        if node in self.nodes[:SESSIONS]:
            return files[0]
        return next((file for file in files if not needs_a_session(file)), files[0])
