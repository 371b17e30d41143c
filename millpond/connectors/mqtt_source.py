"""Topics of MQTT as sources, by a session that the broker keeps: messages are acknowledged behind
the commit that has them.

A broker that has not heard that sends them again; those that the commit names are passed over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, Full, Queue
from secrets import token_hex
from typing import Any

from millpond.connectors.mqtt_client import LOOK_SECONDS, MqttBroker
from millpond.connectors.mqtt_ledger import Ledger
from millpond.connectors.mqtt_messages import Known, Message, MqttRows, Position
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.errors import InputError, MillpondError

logger = logging.getLogger("millpond")

NOTHING = "millpond/nothing"
"""A topic that nobody reads, from which we unsubscribe to get an answer."""

_ANSWERED = object()
"""The broker's answer, in its place among the messages."""

SESSION_SECONDS = 7 * 86_400
"""How long a broker keeps the messages of a session while nobody takes them."""


class MqttSource:
    """The messages of a topic, or of all that a filter names."""

    ends = False
    is_live = True

    def __init__(
        self,
        declaration: Declaration,
        rows: MqttRows,
        broker: MqttBroker,
        topic: str,
        in_flight: int,
        takes_gaps: bool,
    ) -> None:
        self._declaration, self._rows, self._broker = declaration, rows, broker
        self._topic, self._most, self._takes_gaps = topic, in_flight, takes_gaps
        self._is_closed = threading.Event()
        self._lock = threading.Lock()
        self._client: Any = None
        self._ledger = Ledger()
        self._is_asking = False
        self._noted: Any = None
        self._session = ""
        self._ends_session = False
        """Whether the broker is to keep nothing of this connection."""
        self._done = 0

    # -- what the engine asks --------------------------------------------------------------

    def pages(self) -> Iterator[SourcePage]:
        """The messages that are kept for new readers, and those that come; an empty page says first
        which session it is."""
        return self._pages(Position(f"millpond-{self._declaration.name}-{token_hex(8)}"), True)

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """The messages behind a position."""
        return self._pages(Position.of(position), False)

    def progress(self) -> Progress:
        """Messages read."""
        return Progress(self._done, None, "messages")

    def close(self) -> None:
        """Nobody waits for a message any more."""
        self._is_closed.set()

    def committed(self, position: dict[str, Any]) -> None:
        """What was taken up to a position is acknowledged."""
        with self._lock:
            if position is self._noted:
                return
            self._noted, self._session = position, position["session"]
            for each in self._ledger.commit(Position.of(position).taken):
                self._acknowledge(each)
            self._ask()

    def forget(self) -> threading.Thread | None:
        """Has the broker keep nothing for this session any more."""
        if not self._session or not self._declaration.lasts:
            return None
        thread = threading.Thread(target=self._end_session, daemon=False)
        thread.start()
        return thread

    def _end_session(self) -> None:
        try:
            with self._connected(self._session, Queue(1), clean=True, session_seconds=0):
                pass
        except MillpondError as error:
            logger.warning("%s; its session %s stays there for a while", error, self._session)

    def _acknowledge(self, known: Known) -> None:
        if self._client is not None:
            self._client.ack(known[0], 1)

    def _ask(self) -> None:
        """Has the broker answer, so that it has heard what was acknowledged."""
        if self._client is not None and not self._is_asking and self._ledger.ask():
            code, _ = self._client.unsubscribe(NOTHING)
            if code:  # the connection is gone, and what was acknowledged since comes again
                self._ledger.break_off()
            self._is_asking = not code

    def _has_answered(self) -> None:
        with self._lock:
            self._is_asking = False
            self._ledger.has_answered()
            self._ask()

    # -- reading ---------------------------------------------------------------------------

    def _pages(self, position: Position, is_new: bool) -> Iterator[SourcePage]:
        coming = Queue[Any](2 * self._most)
        self._ledger = Ledger(position.taken)
        lasting = SESSION_SECONDS if self._declaration.lasts else 0
        with self._connected(position.session, coming, False, lasting) as is_known:
            if not is_known and not is_new:
                self._lose_session(position)
            if not is_known:
                self._subscribe()
            self._session = position.session
            if is_new:
                yield self._page([], position)
            while not self._is_closed.is_set():
                before = replace(position, taken=self._ledger.taken)
                messages = self._taken(coming)
                if messages:
                    self._done += len(messages)
                    yield self._page(messages, before)

    def _lose_session(self, position: Position) -> None:
        said = f"it knows no session {position.session} any more, and may have lost messages"
        if not self._takes_gaps:
            self._ends_session = True
            raise self._fault(
                f"{said}; DROP it and declare it again, or say gaps = true if that may be"
            )
        logger.warning("%s: %s; it subscribes anew", self._declaration.name, said)

    def _fault(self, said: str) -> InputError:
        return self._broker.fault(f"topic {self._topic}: {said}")

    def _page(self, messages: list[Message], first: Position) -> SourcePage:
        rows, bad, numbers = self._rows.read(messages)

        def position_after(count: int) -> dict[str, Any]:
            end = len(messages) if count == len(numbers) else (numbers[count - 1] + 1) * bool(count)
            return first.behind(messages[:end]).as_json()

        return SourcePage(rows, tuple(bad), position_after)

    def _taken(self, coming: Queue[Any]) -> list[Message]:
        """The messages that have come and were not taken, after a wait for the first one."""
        found = list[Message]()
        while len(found) < self._declaration.settings.page_rows:
            try:
                each = coming.get(timeout=None if found else LOOK_SECONDS, block=not found)
            except Empty:
                break
            if isinstance(each, InputError):
                if found:
                    coming.put(each)  # once what came before is taken
                    break
                raise each
            if each is _ANSWERED:  # all that came before it was looked at
                self._has_answered()
            elif self._is_new(each):
                found.append(each)
        return found

    def _is_new(self, message: Message) -> bool:
        """Whether a message was not taken; one that comes again is acknowledged if it is in a
        commit."""
        with self._lock:
            if self._ledger.take(message):
                return True
            if self._ledger.acknowledge_again(message.known):
                self._acknowledge(message.known)
                self._ask()
        return False

    # -- the connection --------------------------------------------------------------------

    @contextmanager
    def _connected(
        self, session: str, coming: Queue[Any], clean: bool, session_seconds: int
    ) -> Iterator[bool]:
        """A connection, which comes again when it breaks off; whether the broker knew the
        session."""
        client, answered = self._broker.client(session), threading.Event()
        self._ends_session = False
        said = list[Any]()

        def connected(_: Any, __: Any, flags: Any, reason: Any, ___: Any) -> None:
            is_lost = not reason.is_failure and not flags.session_present
            if answered.is_set() and is_lost and self._takes_gaps:
                logger.warning(
                    "%s: the session is lost; it subscribes anew", self._declaration.name
                )
                client.subscribe(self._topic, qos=1)
            elif answered.is_set() and is_lost:
                self._ends_session = True
                self._say(coming, self._fault("it has lost the session, and may lack messages"))
            said.append((flags.session_present, reason))
            answered.set()

        def disconnected(*_: Any) -> None:
            with self._lock:
                self._ledger.break_off()
                self._is_asking = False
            with coming.mutex:  # what is not taken comes again
                coming.queue.clear()
                coming.not_full.notify_all()

        def came(_: Any, __: Any, message: Any) -> None:
            self._say(coming, Message.of(message))

        client.on_connect, client.on_disconnect, client.on_message = connected, disconnected, came
        client.on_unsubscribe = lambda *_: self._say(coming, _ANSWERED)
        self._broker.connect(client, session_seconds, clean, self._most)
        try:
            self._broker.wait(answered, self._is_closed)
            if said and said[0][1].is_failure:
                raise self._broker.fault(f"it refuses us: {said[0][1]}")
            with self._lock:
                self._client = client
            yield bool(said and said[0][0])
        finally:
            with self._lock:
                self._client = None
            self._disconnect(client)

    def _disconnect(self, client: Any) -> None:
        """Ends a connection, and its session if that has begun in place of one that is gone: else
        the next run would take it for that."""
        client.disconnect(properties=self._broker.ending() if self._ends_session else None)
        client.loop_stop()

    def _say(self, coming: Queue[Any], what: Any) -> None:
        """Hands on what came; waits while there is no room for it."""
        while not self._is_closed.is_set():
            try:
                coming.put(what, timeout=LOOK_SECONDS)
            except Full:
                continue
            return

    def _subscribe(self) -> None:
        answered, codes = threading.Event(), list[Any]()

        def subscribed(_: Any, __: Any, ___: Any, reasons: Any, ____: Any) -> None:
            codes.extend(reasons)
            answered.set()

        self._client.on_subscribe = subscribed
        self._client.subscribe(self._topic, qos=1)
        self._broker.wait(answered, self._is_closed)
        refused = [each for each in codes if each.is_failure]
        if refused:
            raise self._fault(f"it lets nobody subscribe: {refused[0]}")
