"""What a kernel is."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa


class Kernel(Protocol):
    """A keyed operator as a function of tables; see ``kernels``."""

    @property
    def keys(self) -> list[str]:
        """The names of its key columns."""
        ...

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of its state."""
        ...

    @property
    def output_schema(self) -> pa.Schema:
        """The columns it puts out."""
        ...

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The output of a step and the new state of the keys it touched."""
        ...
