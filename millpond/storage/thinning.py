"""What was known at which times, thinned: the longer ago, the fewer of them."""

from typing import TypeVar

Known = TypeVar("Known")


def thinned(known: tuple[tuple[int, Known], ...], most: int) -> tuple[tuple[int, Known], ...]:
    """At most so many of some times with what was known then; they rise, and one more came last.

    The one goes whose neighbours are the least apart for their age, so that of any age up to the
    oldest there is one that is not much older.

    >>> thinned(((0, "a"), (8, "b"), (9, "c"), (10, "d")), 3)
    ((0, 'a'), (8, 'b'), (10, 'd'))
    """
    if len(known) <= most:
        return known
    ages = [known[-1][0] - time for time, _ in known]
    gone = min(range(1, len(known) - 1), key=lambda at: ages[at - 1] / (ages[at + 1] + 1))
    return known[:gone] + known[gone + 1 :]
