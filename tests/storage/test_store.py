"""Where files lie, whoever asks first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from millpond.storage.store import Store


def test_several_threads_may_be_the_first_that_memory_has_no_room_for(tmp_path):
    for _ in range(20):
        store = Store(parent=tmp_path)
        with ThreadPoolExecutor(8) as threads:
            names = list(threads.map(lambda _, s=store: s.new_spilled_name(), range(16)))
        assert len(set(names)) == 16
        assert (store.directory / "spilled").is_dir()
        store.close()
