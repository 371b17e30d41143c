"""A server in a process of its own meets attacks of every kind, and is well afterwards.

`make fuzz` makes all of them; here every third one is made, and all that are no proper HTTP.
"""

from __future__ import annotations

import pytest

from tests import attacks

pytestmark = pytest.mark.slow

STRIDE = 3


def test_no_attack_breaks_a_server() -> None:
    with attacks.target() as attacked:
        listed = attacks.attacks_on(attacked)
        made = [a for number, a in enumerate(listed) if number % STRIDE == 0 or a.may_close]
        assert len(made) >= 500
        found = {attack.name: attacks.broken(attacked, attack) for attack in made}
        assert {name: fault for name, fault in found.items() if fault} == {}
        assert attacks.wrong_afterwards(attacked) == []
