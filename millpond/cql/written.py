"""What a part of a plan is called in the script, so that errors can use the user's words."""

from dataclasses import dataclass

from millpond.errors import Position


@dataclass(frozen=True)
class Written:
    """An expression as it stands in a clause of a script.

    >>> str(Written("WHERE", "a * b > 1", Position(3, 9)))
    'line 3, column 9: WHERE a * b > 1'
    """

    clause: str
    text: str
    position: Position

    def __str__(self) -> str:
        place = f"line {self.position.line}, column {self.position.column}"
        return f"{place}: {self.clause} {self.text}"
