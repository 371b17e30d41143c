"""Random queries with expressions that fail on some rows, for ON ERROR SKIP.

What does not fail keeps small values, so that no sum overflows: that would stop the query.
"""

from __future__ import annotations

from tests.query_generator import QueryGenerator

RISKS = {
    "whole": (
        "(({0}) + 9223372036854775806 - 9223372036854775806)",
        "(({0}) * 4611686018427387904 % 7)",
        "(abs(({0}) - 9223372036854775807) % 5)",
        "(CAST(({0}) * 1500000000 AS INT) % 3)",
        "(-(-9223372036854775807 - ({0})) % 3)",
    ),
    "DOUBLE": (
        "(CAST(({0}) * 4000000000000000000.0 AS BIGINT) / 4000000000000000000.0)",
        "(ceil(({0}) * 4000000000000000000.0) / 4000000000000000000.0)",
    ),
    "STRING": ("split_part({0}, 'b', length({0}))", "split_part('x' || {0}, 'a', 1 - length({0}))"),
    "BOOLEAN": ("({0} OR length(split_part('x', 'x', CAST({0} AS INT))) > 5)",),
}
"""Ways to write an expression so that it fails on some values, by type."""


class FailingQueryGenerator(QueryGenerator):
    """Draws queries in which every clause may fail."""

    def risk(self, text, type_name, probability):
        """The text, or with some probability a form of it that fails on some values."""
        whole = type_name in ("INT", "BIGINT")
        risks = RISKS.get("whole" if whole else type_name)
        if not risks or not self.chance(probability):
            return text
        return self.random.choice(risks).format(text)

    def expression(self, type_name, columns, depth):
        text = super().expression(type_name, columns, depth)
        return self.risk(text, type_name, 0.4)

    def key(self, column, columns):
        text, type_name, own = super().key(column, columns)
        risky = self.risk(text, type_name, 0.35)
        return risky, type_name, own if risky == text else None

    def argument(self, type_name, columns):
        return self.risk(super().argument(type_name, columns), type_name, 0.35)

    def aggregate(self, columns):
        text, type_name, own = super().aggregate(columns)
        return self.risk(text, type_name, 0.35), type_name, own

    def simple(self, type_name, columns):
        return self.risk(super().simple(type_name, columns), type_name, 0.35)

    def equality(self, left, right):
        text = super().equality(left, right)
        if text is None:
            return None
        side, other = text.split(" = ")
        (type_name,) = {c.type for c in left if f"{c.qualifier}.{c.name}" == side}
        return f"{self.risk(side, type_name, 0.35)} = {other}"
