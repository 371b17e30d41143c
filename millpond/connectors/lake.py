"""What tables of lakes have in common: who is told of their faults, and in which words."""

import re
from typing import Protocol

from millpond.errors import MillpondError

_COLOUR = re.compile(r"\x1b\[\d*m")


class LakePlace(Protocol):
    """A table of a lake."""

    def fault(self, reason: str) -> MillpondError:
        """A fault that names the owner and the table."""


def words_of(error: BaseException) -> str:
    """What a fault of a package says, in one line."""
    lines = _COLOUR.sub("", str(error)).replace("↳", " ").splitlines()
    return ": ".join(" ".join(line.split()) for line in lines if line.strip())
