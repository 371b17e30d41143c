from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from millpond.lab.unified import areas


def test_a_path_that_is_broken_takes_longer() -> None:
    for seed in range(5):
        whole, broken = areas._broken(np.random.default_rng(seed))
        assert broken > whole


def test_what_is_broken_fails() -> None:
    tables = {name: dict(table) for name, table in areas.run([0]).items()}
    areas.plot(tables, Figure())
    assert {claim.verdict for claim in areas.check(tables)} == {"holds"}
    tables["pairs"]["A first"] = [each + 1 for each in tables["pairs"]["A first"]]
    tables["single"]["latency"] = [1.1 * each for each in tables["single"]["latency"]]
    tables["single"]["memory"] = [1.1 * each for each in tables["single"]["memory"]]
    tables["broken path"]["broken"] = tables["broken path"]["whole"]
    tables["dependencies"]["violated"] = [True]
    tables["figure 10"]["queue"] = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    failing = [claim.text for claim in areas.check(tables) if claim.verdict == "fails"]
    assert len(failing) >= 8
