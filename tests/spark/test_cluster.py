"""What a cluster needs, as far as it can be seen without one; with one: tests/cluster."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from millpond.errors import MachineError
from millpond.settings import Settings, is_local, local_cores
from millpond.spark.cluster import address_options, worker_python
from millpond.spark.executors import write_package
from millpond.spark.session import spark_options

WHAT_WORKERS_IMPORT = """
import sys
import numpy, pandas, pyarrow, pyspark.sql
before = {name.split(".")[0] for name in sys.modules}
sys.path.insert(1, sys.argv[1])
import millpond.spark.workers, millpond.kernels.aggregate, millpond.kernels.rows_window
assert millpond.__file__.startswith(sys.argv[1]), millpond.__file__
after = {name.split(".")[0] for name in sys.modules}
print(*sorted(after - before - sys.stdlib_module_names))
"""


def test_local_masters_are_told_from_clusters() -> None:
    assert all(map(is_local, ("local", "local[2]", "local[*]", "local[2,3]")))
    assert not any(map(is_local, ("spark://h:7077", "yarn", "k8s://https://h", "local-cluster[1]")))


def test_a_local_spark_has_the_cores_its_master_names() -> None:
    assert [local_cores(m) for m in ("local", "local[3]", "local[3,2]")] == [1, 3, 3]
    assert local_cores("local[*]") == os.cpu_count()
    options = spark_options(Settings(spark_master="local[3]"))
    assert options["spark.sql.shuffle.partitions"] == options["spark.default.parallelism"] == "3"
    with pytest.raises(MachineError, match=r"local\[two\].*use local\[2\]"):
        spark_options(Settings(spark_master="local[two]"))


def test_a_local_driver_listens_to_its_own_machine_only() -> None:
    assert address_options(Settings()) == {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def test_a_driver_shows_workers_the_address_towards_the_master() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        port = master.getsockname()[1]
        settings = Settings(spark_master=f"spark://127.0.0.1:9,127.0.0.1:{port}")
        assert address_options(settings)["spark.driver.host"] == "127.0.0.1"


def test_a_master_that_does_not_answer_is_an_error_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    settings = Settings(spark_master=f"spark://127.0.0.1:{port}")
    with pytest.raises(MachineError, match=rf"no answer from 127\.0\.0\.1:{port} \(.*refused"):
        address_options(settings)


def test_driver_host_is_what_the_user_says_and_bound_where_that_can_be() -> None:
    here = Settings(spark_master="yarn", driver_host="127.0.0.1")
    assert address_options(here)["spark.driver.bindAddress"] == "127.0.0.1"
    forwarded = Settings(spark_master="yarn", driver_host="192.0.2.77")
    assert address_options(forwarded) == {
        "spark.driver.host": "192.0.2.77",
        "spark.driver.bindAddress": "0.0.0.0",
    }


def test_yarn_leaves_the_address_to_spark() -> None:
    assert address_options(Settings(spark_master="yarn")) == {}


def test_a_cluster_gets_what_was_set_and_otherwise_what_spark_is_configured_to() -> None:
    plain = spark_options(Settings(spark_master="yarn"))
    assert not {"spark.executor.memory", "spark.executor.cores"} & set(plain)
    assert not {"spark.default.parallelism", "spark.sql.shuffle.partitions"} & set(plain)
    chosen = Settings(spark_master="yarn").with_options(
        {"executor_memory": "3 GB", "executor_cores": 4}
    )
    options = spark_options(chosen)
    assert options["spark.executor.memory"] == "3072m"
    assert options["spark.executor.cores"] == "4"


def test_workers_of_a_cluster_run_the_python_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert worker_python("local[2]") == sys.executable
    assert worker_python("spark://h:7077") == "/opt/python"
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert worker_python("yarn") == sys.executable


@pytest.mark.slow
def test_workers_need_no_package_but_those_that_pyspark_needs_too(tmp_path: Path) -> None:
    """The engine's own (sqlglot, rich and so on) are not loaded by what is sent to them."""
    archive = tmp_path / "millpond.zip"
    write_package(archive)
    done = subprocess.run(
        [sys.executable, "-c", WHAT_WORKERS_IMPORT, str(archive)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["millpond"]


def test_private_interfaces_of_spark_stand_in_one_file() -> None:
    package = Path(__file__).parents[2] / "millpond"
    private = re.compile(r"\._j(df|vm|sc|c|sparkSession)\b|_to_seq|_collect_as_arrow|_gateway\b")
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if private.search(path.read_text(encoding="utf-8"))
    }
    assert users == {"spark/internals.py"}
