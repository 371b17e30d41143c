"""Statistics gathered window by window, as a running system would have them."""

import math
from collections.abc import Mapping

from millpond.simulator.picture import Measured
from millpond.simulator.steps import MemberStep, Tally


class Meter:
    """Turns what each operator counted in a window of time into averages."""

    def __init__(self, members: Mapping[int, MemberStep], window_seconds: float | None) -> None:
        self.members = members
        self.window_seconds = window_seconds or math.inf
        self.next_seconds = self.window_seconds
        self.measured: dict[int, Measured] = {}

    def close_window(self, now_seconds: float) -> None:
        """Make the averages of the window known, and begin the next."""
        for operator, member in self.members.items():
            tally, member.tally = member.tally, Tally()
            if tally.taken > 0:
                averages = Measured(tally.seconds / tally.taken, tally.made / tally.taken)
                self.measured[operator] = averages
        self.next_seconds = now_seconds + self.window_seconds
