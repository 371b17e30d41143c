from millpond.lab.words import CLEARLY, about, nearly


def test_about_is_relative() -> None:
    assert about(109.0, 100.0)
    assert not about(111.0, 100.0)
    assert not about(103.0, 100.0, 0.02)


def test_what_is_nearly_alike_is_not_clearly_apart() -> None:
    assert nearly(1.0, 1.19)
    assert nearly(1.19, 1.0)
    assert not nearly(CLEARLY, 1.0)
    assert not nearly(1.0, CLEARLY)
