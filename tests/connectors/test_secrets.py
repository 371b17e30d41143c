"""Secrets are looked up when a connector is opened, and shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from millpond import Engine
from millpond.connectors.secrets import resolved
from millpond.errors import InputError, MillpondError


def test_a_secret_is_used_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden.csv").write_text("t,a\n1,7\n")
    monkeypatch.setenv("MILLPOND_SECRET_FILE", str(tmp_path / "hidden.csv"))
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM csv('env:MILLPOND_SECRET_FILE');"
            "CREATE QUERY q AS SELECT a FROM S"
        )
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == [7]
        shown = str(engine.show("all").to_pylist()) + engine.explain("q").text
        assert "hidden" not in shown
        assert "env:MILLPOND_SECRET_FILE" in shown


def test_other_variables_are_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("env:PATH", "env:MILLPOND_SECRET_NONE", "env:"):
        with pytest.raises(InputError):
            resolved(name)
    with Engine() as engine, pytest.raises(MillpondError, match="begins with"):
        engine.execute("CREATE STREAM S (a INT) FROM csv('env:HOME')")
