from millpond.lab.path_capacity import table_2


def test_every_cell_of_table_2_is_reproduced() -> None:
    claims = table_2.check(table_2.run([0]))
    assert len(claims) == 6
    assert all(claim.holds for claim in claims)


def test_a_wrong_cell_of_table_2_is_noticed() -> None:
    tables = table_2.run([0])
    tables["queue size"]["fifo"][3] += 0.1
    assert [claim.holds for claim in table_2.check(tables)].count(False) == 1
