"""Cutting parts off operators, and fusing them again, while data flows.

A part that is cut off is an operator from the time on to which its reader has come: what is up to
there the reader has read, and reads again where windows need it, by the old way; what is later
comes through the new queue. When the part is fused again it is the other way round, and its queue
stays until nothing in it is needed. So no answer depends on when that happens.
"""

from collections.abc import Callable, Iterator, Mapping

from millpond.execution.running_operators import RunningOperators
from millpond.execution.units import Unit
from millpond.identities import OperatorId
from millpond.planning.parts import Cut, Cuts
from millpond.planning.physical import LinearOperator


class Cutting:
    """The parts that are cut off, and those that are to be."""

    def __init__(self, operators: RunningOperators) -> None:
        self.cuts = Cuts(operators.graph)
        self.history: list[Cut] = []
        """What has led to what is read now, and to what is still read of before."""
        self._operators = operators
        self._left: set[OperatorId] = set()
        """The queues of parts that were fused again."""
        self._due: dict[OperatorId, bool] = {}

    # -- what is wanted --------------------------------------------------------------------

    def want(self, by_hand: Mapping[OperatorId, bool]) -> None:
        """Says behind which parts queues are wanted, or are not."""
        apart = self.cuts.names
        self._due = {
            name: has_queue
            for name, has_queue in by_hand.items()
            if has_queue != (name in apart) and self.cuts.is_part(name)
        }

    def due(self, is_busy: Callable[[Unit], bool]) -> Iterator[Cut]:
        """What is wanted and can be done now: nobody concerned is at work.

        Each is done before the next is asked for, and may make others of its operator possible.
        """
        by_owner: dict[OperatorId, dict[OperatorId, bool]] = {}
        for name, is_cut in self._due.items():
            by_owner.setdefault(name.owner, {})[name] = is_cut
        for wanted in by_owner.values():
            while (cut := self._first_possible(wanted, is_busy)) is not None:
                del wanted[cut.part]
                yield cut

    def _first_possible(
        self, wanted: Mapping[OperatorId, bool], is_busy: Callable[[Unit], bool]
    ) -> Cut | None:
        cuts = (self._possible(name, is_cut, is_busy) for name, is_cut in wanted.items())
        return next((cut for cut in cuts if cut is not None), None)

    def holds(self, unit: Unit) -> bool:
        """Whether a unit without a state is to begin nothing new, so that it comes to rest."""
        if not self._due or unit.keeps_state:
            return False
        owners = {each.owner for each in unit.identities}
        return any(
            name.owner in owners
            and not unit.identities.isdisjoint(self.cuts.rewiring(name, is_cut))
            and self._possible(name, is_cut, lambda unit: False) is not None
            for name, is_cut in self._due.items()
        )

    def _possible(
        self, name: OperatorId, is_cut: bool, is_busy: Callable[[Unit], bool]
    ) -> Cut | None:
        running = self._operators.running
        rewiring = self.cuts.rewiring(name, is_cut)
        rewiring.pop(name, None)
        concerned = [running[each] for each in (*rewiring, *([] if is_cut else [name]))]
        if any(is_busy(self._operators.units.of[each.identity]) for each in concerned):
            return None
        times = {each.cursor for each in concerned}
        at = times.pop()
        if times or not all(running[each].can_reread(rewiring[each], at) for each in rewiring):
            return None
        return Cut(name, is_cut, at)

    # -- what is done ----------------------------------------------------------------------

    def do(self, cut: Cut) -> None:
        """Cuts a part off, or fuses it again."""
        self._due.pop(cut.part, None)
        self.history.append(cut)
        rewiring = (self.cuts.cut if cut.is_cut else self.cuts.fuse)(cut.part)
        rewiring.pop(cut.part, None)
        if cut.is_cut:
            self._start(cut)
        for each, fragments in rewiring.items():
            self._operators.running[each].reread(fragments, cut.at)
            self._operators.units.take_apart(each)  # else it could read what is behind itself
        if not cut.is_cut:
            self._stop(cut.part)

    def _start(self, cut: Cut) -> None:
        name, operators = cut.part, self._operators
        operator = LinearOperator(operators.graph.fragments_of(name)[0])
        around = operators.running[name.owner].around
        operators.start(name, operator, around, cut.at)
        self._left.discard(name)
        operators.queues[name].advance(cut.at)

    def _stop(self, name: OperatorId) -> None:
        self._operators.stop(name)
        self._left.add(name)

    def let_go(self, operator: OperatorId) -> None:
        """Forgets what an operator has read of queues that it reads no more, where it is over."""
        running = self._operators.running[operator]
        if running.past and running.let_go():
            self._forget_unread()

    def forget(self) -> None:
        """Operators have gone."""
        self.cuts.forget()
        self._due = {name: is_cut for name, is_cut in self._due.items() if self.cuts.is_part(name)}
        self._forget_unread()

    def _forget_unread(self) -> None:
        for name in [name for name in self._left if not self._operators.queues[name].readers]:
            self._left.discard(name)
            self._operators.close_queue(name)
        running = self._operators.running.values()
        known = (*self.cuts.names, *self._left, *(each.identity for each in running if each.past))
        owners = {name.owner for name in known}
        self.history = [cut for cut in self.history if cut.part.owner in owners]
