"""Processes that run tests: few of them are given files that need a JVM."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest

from tests import few_sessions
from tests.few_sessions import SESSIONS, FewSessions


class Node:
    """A process that is told which tests to run, by their numbers."""

    shutting_down = False

    def __init__(self, name: str, tests: list[str]) -> None:
        self.gateway, self.tests, self.told = SimpleNamespace(id=name), tests, list[str]()

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.told += [self.tests[number].split("::")[0] for number in numbers]

    def shutdown(self) -> None:
        self.shutting_down = True


def handed_out(monkeypatch: pytest.MonkeyPatch, files: list[str]) -> list[list[str]]:
    """The files that five processes have run when each runs one test at a time, in turns."""
    monkeypatch.setattr(few_sessions, "needs_a_session", lambda file: file.startswith("jvm"))
    tests = [f"{file}::{test}" for file in files for test in ("one", "two")]
    option = SimpleNamespace(loadscopereorder=False)
    config: Any = SimpleNamespace(getvalue=lambda name: ["popen"] * 5, option=option)
    sharing_out = FewSessions(config)
    nodes: list[Any] = [Node(f"gw{number}", tests) for number in range(5)]
    for node in nodes:
        sharing_out.add_node(node)
        sharing_out.add_node_collection(node, tests)
    sharing_out.schedule()
    done = dict.fromkeys(nodes, 0)
    while any(done[node] < len(node.told) for node in nodes):
        for node in nodes:
            if done[node] < len(node.told):
                test = ("one", "two")[done[node] % 2]
                number = tests.index(f"{node.told[done[node]]}::{test}")
                done[node] += 1
                sharing_out.mark_test_complete(node, number)
    return [list(OrderedDict.fromkeys(node.told)) for node in nodes]


def test_files_that_need_a_session_go_to_the_first_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [f"jvm{number}" for number in range(8)] + [f"plain{number}" for number in range(20)]
    found = handed_out(monkeypatch, files)
    assert sorted(file for each in found for file in each) == sorted(files)
    assert all(any(file.startswith("jvm") for file in each) for each in found[:SESSIONS])
    assert not any(file.startswith("jvm") for each in found[SESSIONS:] for file in each)


def test_where_all_files_need_a_session_every_process_has_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [f"jvm{number}" for number in range(12)]
    found = handed_out(monkeypatch, files)
    assert sorted(file for each in found for file in each) == sorted(files)
    assert all(found)
