from millpond.lab.chain import theorem_2


def test_the_bound_is_all_but_reached_by_an_instance_made_for_it() -> None:
    assert theorem_2._tight() == {"queries": [20.0], "chain": [0.95]}
