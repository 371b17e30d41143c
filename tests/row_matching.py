"""What the matches of a row pattern are, by the definition: all ways are tried one after the other.

A pattern is a tuple: ``("row", V)``, ``("turn", parts)``, ``("either", parts)``,
``("repeat", part, least, most or None, is_reluctant)`` or, as the last of a turn,
``("absent", V)``.

A match that begins at a row is the first whole one in the order of preference, among all rows that
will ever come; it is decided as soon as those that have come leave no doubt of it.
"""

from __future__ import annotations

import math


class DoubtError(Exception):
    """Which match is preferred depends on rows that have not come."""


class Attempt:
    """The search for the match that begins at one row, knowing the first ``known`` rows.

    ``stands(V, path, index)``: whether a row stands for V behind the rows of ``path``, which are
    (index, variable). ``is_over``: no row comes any more that a match could have.
    """

    def __init__(self, pattern, stands, begin, known, is_over):
        self.pattern, self.stands = pattern, stands
        self.begin, self.known, self.is_over = begin, known, is_over

    def preferred(self):
        """The rows of the match and their variables; None if there is none. Raises DoubtError."""
        for _, path in self.ways(self.pattern, self.begin, ()):
            return path
        return None

    def ways(self, pattern, index, path):
        """(index behind, path) of all ways in which a pattern is there, the preferred first."""
        kind, *parts = pattern
        if kind == "row":
            if self.comes(index) and self.stands(parts[0], path, index):
                yield index + 1, (*path, (index, parts[0]))
        elif kind == "turn":
            yield from self.turn(parts[0], index, path)
        elif kind == "either":
            for part in parts[0]:
                yield from self.ways(part, index, path)
        elif kind == "repeat":
            yield from self.repeat(parts, 0, index, path)
        elif self.is_absent(parts[0], index, path):
            yield index, path

    def turn(self, parts, index, path):
        if not parts:
            yield index, path
            return
        for behind, longer in self.ways(parts[0], index, path):
            yield from self.turn(parts[1:], behind, longer)

    def repeat(self, parts, times, index, path):
        part, least, most, is_reluctant = parts
        if times >= least and is_reluctant:
            yield index, path
        if most is None or times < most:
            for behind, longer in self.ways(part, index, path):
                if behind > index or times < least:
                    yield from self.repeat(parts, times + 1, behind, longer)
        if times >= least and not is_reluctant:
            yield index, path

    def comes(self, index):
        """Whether there is a row; it is not known while more may come."""
        if index >= self.known and not self.is_over:
            raise DoubtError
        return index < self.known

    def is_absent(self, variable, index, path):
        while self.comes(index):
            if self.stands(variable, path, index):
                return False
            index += 1
        return True


def decided(pattern, times, stands, begin, within, until):
    """(when, path or None) of the match that begins at a row; None if it is not decided."""
    deadline = math.inf if within is None else times[begin] + within
    usable = sum(time < deadline for time in times)
    for known in range(begin + 1, usable + 1):
        try:
            return times[known - 1], Attempt(pattern, stands, begin, known, False).preferred()
        except DoubtError:
            continue
    if deadline > until or deadline == math.inf:
        return None
    return deadline, Attempt(pattern, stands, begin, usable, True).preferred()


def matches(pattern, times, stands, within=None, skip=("past", None), until=math.inf):
    """[(when, path)] of all matches in the rows of one partition, which came at these times."""
    found, begin, latest = [], 0, -math.inf
    while begin < len(times):
        told = decided(pattern, times, stands, begin, within, until)
        if told is None and skip[0] != "next":
            break
        when, path = told or (0, None)
        latest = max(latest, when)
        if path is not None:
            found.append((when if skip[0] == "next" else latest, path))
        begin = next_begin(begin, path, skip)
    return found


def next_begin(begin, path, skip):
    """Where the search goes on."""
    to, variable = skip
    if path is None or to == "next":
        return begin + 1
    own = [index for index, name in path if variable in (None, name)]
    if to == "past":
        return own[-1] + 1
    return max(begin + 1, own[0 if to == "first" else -1] if own else 0)
