"""A Spark cluster on this machine: a standalone master and two workers, each at a loopback address of its own; Spark Connect.

Spark starts no second copy of a task on the host that runs the first, so the two workers must look like two hosts.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.quick_java import QUICK

HOSTS = ("127.0.0.1", "127.0.0.2")
_HOME = Path(pyspark.__file__).parent
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_ADDRESS = "Starting Spark master at "
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_CONNECT_ADDRESS = "Spark Connect server started at: "
_FREE = ("--port", "0", "--webui-port", "0")


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """The address of a master with one worker a host, of one core each. All of them end with the block."""
    with ExitStack() as running:
        log = running.enter_context(_started("master", HOSTS[0], folder, _MASTER, "--host", HOSTS[0], *_FREE))
        master = _said(log, _ADDRESS)
        limits = ("--cores", "1", "--memory", "1g", *_FREE)
        logs = [
            running.enter_context(
                _started(
                    f"worker-{host}", host, folder, _WORKER, master, "--host", host, "--work-dir", f"{folder}", *limits
                )
            )
            for host in HOSTS
        ]
        for one in logs:
            _said(one, "Successfully registered with master")
        yield master


@contextmanager
def spark_connect(folder: Path) -> Iterator[str]:
    """The address of a Spark Connect server. It is a Spark of its own, with this Python for its workers."""
    conf = (
        "spark.connect.grpc.binding.address=127.0.0.1",
        "spark.connect.grpc.binding.port=0",
        "spark.driver.host=127.0.0.1",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.ui.enabled=false",
        f"spark.driver.extraJavaOptions={QUICK}",
    )
    given = [word for one in conf for word in ("--conf", one)]
    submit = ("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--class", _CONNECT, *given, "spark-internal")
    with _started("connect", HOSTS[0], folder, *submit, memory="1g") as log:
        yield f"sc://{_said(log, _CONNECT_ADDRESS)}"


class _Log:
    """What a process says, and whether it is still there to say more."""

    def __init__(self, process: subprocess.Popen[bytes], file: Path) -> None:
        self.process = process
        self.file = file


@contextmanager
def _started(name: str, host: str, folder: Path, *command: str, memory: str = "256m") -> Iterator[_Log]:
    file = folder / f"{name}.log"
    environment = {
        **os.environ,
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": host,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        # The port for submissions is always the same one, and nobody submits anything here.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    with file.open("wb") as log:
        process = subprocess.Popen(
            [f"{_HOME}/bin/spark-class", *command],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        yield _Log(process, file)
    finally:
        process.terminate()
        process.wait()


def _said(log: _Log, words: str) -> str:
    """The rest of the line that begins with these words, as soon as it is there."""
    while True:
        text = log.file.read_text()
        _, found, rest = text.partition(words)
        if found and "\n" in rest:
            return rest.partition("\n")[0].strip()
        assert log.process.poll() is None, text
        time.sleep(0.05)
