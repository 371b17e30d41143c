"""Paths into JSON, such as ``$.items[0].price``: which key or place to go to, one by one."""

import re

Step = str | int
"""A key of an object, or a place in an array."""

_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\]"'*?@]+)
      | \."(?P<quoted>[^"]*)"
      | \['(?P<key>[^']*)'\]
      | \[(?P<at>\d+)\]""",
    re.VERBOSE,
)


def steps_of(path: str) -> tuple[Step, ...] | None:
    """The steps of a path; None if it is none.

    >>> steps_of("$.items[0].'price'".replace("'", '"'))
    ('items', 0, 'price')
    >>> steps_of("items") is None
    True
    """
    found: list[Step] = []
    place = 1 if path.startswith("$") else 0
    while place and place < len(path):
        match = _STEP.match(path, place)
        if match is None:
            break
        name = next(each for each in match.group("name", "quoted", "key", "at") if each is not None)
        found.append(int(name) if match["at"] is not None else name)
        place = match.end()
    return tuple(found) if path and place == len(path) else None
