"""The end of a message about an unknown name: what may have been meant, and what is known."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_LISTED = 30


def suggestion(name: str, known: Iterable[str]) -> str:
    """The nearest known name, if one is near, and all of them.

    >>> suggestion("bid", ["bids", "persons"]), suggestion("x", [])
    ('; did you mean "bids"? known: bids, persons', '; known: none')
    """
    names = sorted(dict.fromkeys(known), key=str.lower)
    return f"{nearest(name, names) or ';'} known: {listed(names) or 'none'}"


def listed(names: list[str]) -> str:
    """Some names, not more than one likes to read.

    >>> listed(["a", "b"]), listed([str(i) for i in range(100)])[-9:]
    ('a, b', '28, 29, …')
    """
    return ", ".join(names[:MAX_LISTED]) + (", …" if len(names) > MAX_LISTED else "")


def nearest(name: str, known: Iterable[str]) -> str:
    """A question after the known name that is most like an unknown one, or nothing.

    >>> nearest("uper", ["upper", "lower"]), nearest("x", ["upper"])
    ('; did you mean "upper"?', '')
    """
    spelling = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), spelling, n=1)
    return f'; did you mean "{spelling[close[0]]}"?' if close else ""
