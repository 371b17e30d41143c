"""Engines that die: what was committed stays in the store, nothing else does."""

from __future__ import annotations

import os

from millpond import Engine


def die(engine: Engine) -> None:
    """Ends an engine as a kill does: nothing is written any more, and the store's lock is free."""
    engine._closed = True
    if engine._runtime is not None:
        engine._runtime.cancel()
        engine._runtime._processors.close()
    engine._journal._log = None
    lock, engine.store._lock = engine.store._lock, None
    if lock is not None:
        os.close(lock)


class Mortal:
    """An engine on a store that dies now and then, and goes on; it looks like one engine.

    ``dies`` is asked after every call.
    """

    def __init__(self, make, dies) -> None:
        self._make, self._dies = make, dies
        self._engine = make()
        self._statements = []
        self.deaths = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._engine.close()

    def __getattr__(self, name):
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def call(*arguments):
            answer = getattr(self._engine, name)(*arguments)
            if name == "execute":
                self._statements += arguments
            if name in ("execute", "push", "push_changes", "advance", "run_until_idle") and (
                self._dies()
            ):
                self.deaths += 1
                die(self._engine)
                self._engine = self._make()
                for statement in self._statements:  # as a script would that is started again
                    self._engine.execute(statement)
            return answer

        return call
