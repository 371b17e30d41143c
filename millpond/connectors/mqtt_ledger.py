"""Which packets of MQTT were taken, and may come again because the broker has not heard so.

A packet is held until a commit has it; then it is acknowledged, and forgotten when the broker has
answered to something that was said behind that. After a connection has broken off what was
acknowledged may come again, before all that is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from millpond.connectors.mqtt_messages import Known, Message


class _State(Enum):
    HELD = "in no commit yet"
    TOLD = "acknowledged"
    ASKED = "acknowledged before the broker was asked for an answer"
    OLD = "in a commit, and the broker may not know it"


class Ledger:
    """The packets by their numbers; those of a position are in a commit."""

    def __init__(self, taken: Iterable[Known] = ()) -> None:
        self._packets = dict.fromkeys(taken, _State.OLD)

    @property
    def taken(self) -> tuple[Known, ...]:
        """The packets that may come again."""
        return tuple(self._packets)

    def take(self, message: Message) -> bool:
        """Whether a message is one that was not taken; then it is held from now on."""
        if not message.packet:
            return True
        if message.is_again and message.known in self._packets:
            return False
        if not message.is_again:  # all that comes again has come
            self._forget(_State.OLD)
        self._packets = {k: s for k, s in self._packets.items() if k[0] != message.packet}
        self._packets[message.known] = _State.HELD
        return True

    def acknowledge_again(self, known: Known) -> bool:
        """Whether a packet that has come again is to be acknowledged."""
        if self._packets.get(known) in (None, _State.HELD):
            return False
        self._packets[known] = _State.TOLD
        return True

    def commit(self, taken: Iterable[Known]) -> list[Known]:
        """What of some packets is to be acknowledged, now that a commit has them."""
        found = [each for each in taken if self._packets.get(each) is _State.HELD]
        self._packets |= dict.fromkeys(found, _State.TOLD)
        return found

    def ask(self) -> bool:
        """Whether there is something that the broker is to be asked about."""
        told = [each for each, state in self._packets.items() if state is _State.TOLD]
        self._packets |= dict.fromkeys(told, _State.ASKED)
        return bool(told)

    def has_answered(self) -> None:
        """The broker has heard what was said before it was asked."""
        self._forget(_State.ASKED)

    def break_off(self) -> None:
        """The connection is gone: what the broker has not answered to may come again."""
        for each, state in self._packets.items():
            if state is not _State.HELD:
                self._packets[each] = _State.OLD

    def _forget(self, state: _State) -> None:
        self._packets = {k: s for k, s in self._packets.items() if s is not state}
