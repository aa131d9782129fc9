"""`arco spark`: plain Spark on a lake, by the commands that people type. The server that it needs ends with each of them."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import arco
from fixtures.servo.frames import MARKS
from tests.quick_java import QUICK

from .spark_session import RUNTIME, jars

pytestmark = MARKS

ARCO = str(Path(sys.executable).with_name("arco"))
AT_THE_PROMPT = """
spark.sql("CREATE NAMESPACE shop")
spark.sql("CREATE TABLE shop.orders USING iceberg AS SELECT id, CAST(id AS DECIMAL(9, 2)) AS amount FROM range(10)")

def doubled():
    return lake.table("shop.orders").to_spark(spark).selectExpr("id + 10 AS id", "amount * 2 AS amount")

doubled().writeTo("arco.shop.orders").append()
print(spark.table("shop.orders").count(), lake.tables())
"""
PROGRAM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
print("found", spark.table("shop.orders").count(), sys.argv[1:], spark.conf.get("spark.sql.catalog.arco.uri"))
sys.exit(7)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake, and a project's file with nothing in it but where Spark runs."""
    folder = tmp_path_factory.mktemp("plain")
    conf = f'"spark.driver.extraJavaOptions" = "{QUICK}", "spark.sql.shuffle.partitions" = 2'
    (folder / "arco.toml").write_text(f'root = "lake"\n[spark]\nmaster = "local[2]"\nconf = {{ {conf} }}\n')
    (folder / "job.py").write_text(PROGRAM)
    runtime = Path(jars(RUNTIME))
    (folder / "jars").mkdir()
    (folder / "jars" / runtime.name).symlink_to(runtime)  # others may have fetched jars for another Spark beside it
    return folder


def arco_spark(folder: Path, *words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ARCO_JARS": str(folder / "jars")}
    found = subprocess.run(
        [ARCO, "spark", *words], cwd=folder, capture_output=True, text=True, env=environment, check=False, **more
    )
    assert found.returncode == code, found.stdout + found.stderr
    return found


def test_a_prompt_a_statement_and_a_program_work_on_one_lake(folder: Path) -> None:
    said = arco_spark(folder, "shell", input=AT_THE_PROMPT)
    assert said.stdout == "20 ['shop.orders']\n"
    assert arco.connect(str(folder / "lake")).table("shop.orders").to_arrow().num_rows == 20

    answer = arco_spark(folder, "sql", "--json", "--limit", "1", "SELECT id, amount FROM shop.orders ORDER BY id DESC")
    assert json.loads(answer.stdout) == {"columns": ["id", "amount"], "rows": [{"id": 19, "amount": "18.00"}], "more": True}

    ran = arco_spark(folder, "submit", "--spark", "local[1]", "job.py", "2025-01-31", "--deep", code=7)
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("found ")]
    assert line.startswith("found 20 ['2025-01-31', '--deep'] http://127.0.0.1:")
    address = urlsplit(line.rpartition(" ")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((str(address.hostname), address.port or 0), 5)


def test_a_server_for_one_program_ends_when_the_program_does(tmp_path: Path) -> None:
    command = [ARCO, "serve", "--root", str(tmp_path / "lake"), "--port", "0", "--until-stdin-ends"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert " at http://127.0.0.1:" in server.stdout.readline()
        server.stdin.close()  # as when whoever held it is killed
        assert server.wait(60) == 0
