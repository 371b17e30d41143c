"""The commit log: what was appended is read again; what a death cut short is not."""

from __future__ import annotations

import pytest

from millpond.errors import StateError
from millpond.storage import log as log_module
from millpond.storage.log import CommitLog

FIRST, SECOND = [{"kind": "a", "n": 1}], [{"kind": "b"}, {"kind": "c", "text": "mlp1"}]


@pytest.fixture
def path(tmp_path):
    """A log of two groups of records."""
    log = CommitLog(tmp_path / "commits.log")
    log.append(FIRST)
    log.append(SECOND)
    log.close()
    return tmp_path / "commits.log"


def records(path):
    log = CommitLog(path)
    try:
        return list(log.read())
    finally:
        log.close()


def test_what_was_appended_is_read(path):
    assert records(path) == FIRST + SECOND


def test_a_group_cut_short_at_any_byte_is_cut_off(path):
    whole = path.read_bytes()
    path.write_bytes(b"")
    only_first = CommitLog(path)
    only_first.append(FIRST)
    end = only_first.bytes
    for length in range(end, len(whole)):
        path.write_bytes(whole[:length])
        assert records(path) == FIRST
        assert path.stat().st_size == end


def test_a_log_goes_on_behind_what_was_cut_off(path):
    path.write_bytes(path.read_bytes()[:-1])
    log = CommitLog(path)
    assert list(log.read()) == FIRST
    log.append(SECOND)
    log.close()
    assert records(path) == FIRST + SECOND


def test_damage_before_other_records_is_refused(path):
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"mlp2", 1) + 30] ^= 1  # in the second record
    path.write_bytes(whole)
    with pytest.raises(StateError, match=r"damaged at byte \d+, with records behind it"):
        records(path)


def test_another_version_of_the_format_is_refused(path, monkeypatch):
    monkeypatch.setattr(log_module, "FORMAT", log_module.FORMAT + 1)
    with pytest.raises(
        StateError, match=r"written in format \d+ by Millpond .*, and Millpond .* reads \d+"
    ):
        records(path)


def test_a_log_that_begins_anew_has_the_new_records_only(path):
    log = CommitLog(path)
    log.rewrite([{"kind": "all", "n": n} for n in range(2_500)])
    log.append(FIRST)
    log.close()
    assert [r.get("n") for r in records(path)] == [*range(2_500), 1]
    assert [file.name for file in path.parent.iterdir()] == ["commits.log"]


def test_a_log_that_was_about_to_begin_anew_is_the_old_one(path):
    path.with_suffix(".new").write_bytes(b"half of a lo")
    assert records(path) == FIRST + SECOND
    log = CommitLog(path)
    log.rewrite(FIRST)
    log.close()
    assert records(path) == FIRST
