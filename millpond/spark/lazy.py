"""The Spark session of an engine, started by whoever needs it first, or ahead of that."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from millpond.errors import MillpondError
from millpond.settings import Settings, is_local, local_cores
from millpond.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("millpond")


class LazySpark:
    """A session given to the engine, or one that is started when it is needed."""

    def __init__(self, given: SparkSession | None) -> None:
        self.while_starting: Callable[[], AbstractContextManager[Any]] = nullcontext
        """Is entered while somebody waits for Spark to start."""
        self._session = given
        self._checked: SparkSession | None = None
        self._starting = threading.Lock()
        self._importing = threading.Lock()
        self._is_ahead = False

    @property
    def is_started(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    def session(self, settings: Settings, store: Store) -> SparkSession:
        """The session, started now if there is none yet."""
        if self._session is None:
            with self.while_starting():
                return self._started(settings, store)
        return self._started(settings, store)

    def _started(self, settings: Settings, store: Store) -> SparkSession:
        from millpond.spark.executors import check_store
        from millpond.spark.session import create_session

        with self._starting:
            if self._session is None:
                self._session = create_session(settings)
            if self._session is not self._checked:
                check_store(self._session, store.directory, store.is_durable)
                self._checked = self._session
            return self._session

    def start_ahead(self, settings: Settings, store: Store) -> None:
        """Has the session started in the background, for it will be needed."""
        with self._importing:  # two threads cannot import PySpark at once
            if self._session is not None or self._is_ahead:
                return
            self._is_ahead = True
            import millpond.spark.executors
            import millpond.spark.session  # noqa: F401

        def start() -> None:
            try:
                self._started(settings, store)
            except MillpondError as error:  # whoever needs it is told again
                logger.debug("Spark was not started ahead: %s", error)

        threading.Thread(target=start, name="millpond-spark", daemon=True).start()

    def has_died(self) -> None:
        """Spark is gone; whoever needs it next starts it again."""
        self._session = None

    def cores(self, settings: Settings, store: Store) -> int:
        """How many tasks run at once; a cluster is asked."""
        self._forget_if_dead()
        if self._session is None and is_local(settings.spark_master):
            return local_cores(settings.spark_master)
        return self.session(settings, store).sparkContext.defaultParallelism

    def _forget_if_dead(self) -> None:
        """One that was given may have died before it was needed."""
        if self._session is not None:
            from millpond.spark.internals import is_alive

            if not is_alive(self._session):
                self.has_died()
