"""How many examples a property test tries, and whether they are the same ones every time.

Fixed by default, so that a run says the same on every machine, and half as many as the test names:
the same ones again find little. With `MILLPOND_EXAMPLES=10` they are drawn anew, ten times as many
as it names: that finds what nobody thought of, and is for `make fuzz`.
"""

from __future__ import annotations

import math
import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("MILLPOND_EXAMPLES", "0"))
FIXED_SHARE = 0.5
USUAL = 100
SUPPRESSED = [HealthCheck.too_slow]
"""Says more of the machine than of the test."""


def _number(count: int) -> int:
    """How many a test tries that names so many."""
    return count * TIMES if TIMES else math.ceil(count * FIXED_SHARE)


settings.register_profile(
    "fixed",
    max_examples=_number(USUAL),
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=SUPPRESSED,
)
settings.register_profile(
    "drawn",
    settings.get_profile("fixed"),
    derandomize=False,
)


def load_profile() -> None:
    """Makes all property tests of this run fixed or drawn, as the environment says."""
    settings.load_profile("drawn" if TIMES else "fixed")


def examples(count: int, *suppressed: HealthCheck) -> settings:
    """Decorates a test whose examples are dearer than usual: so many, where others try 100."""
    return settings(max_examples=_number(count), suppress_health_check=[*SUPPRESSED, *suppressed])
