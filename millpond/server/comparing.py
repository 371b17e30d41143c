"""What a demo shows beside its traffic: the same burst under several strategies."""

from typing import Any, Protocol


class Comparing(Protocol):
    """Somebody who has strategies work on the same burst."""

    def begin(self) -> None:
        """Begins, unless that is under way."""

    def told(self) -> dict[str, Any]:
        """What has waited under each strategy so far: ``is_running``, ``seconds``, ``courses``."""
