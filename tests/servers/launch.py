# SPDX-License-Identifier: Apache-2.0
"""Start and stop real store servers on loopback, for fixtures and for scripts.

    with versitygw(folder) as server:        # one server for the length of a block
        store = open_store(server.url, server.options)

    with process("versitygw", folder) as running:   # one that a test may kill and start again
        running.kill()
        running.start()

Nothing here knows a test framework, and nothing here builds a server: build.sh does that.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

BUCKET = "arco-test"
REGION = "us-east-1"
ACCESS_KEY_ID = "arco-test-key"
SECRET_ACCESS_KEY = "arco-test-secret"
# The role that SeaweedFS lets a test assume; STS answers on the S3 port.
SEAWEEDFS_ROLE_ARN = "arn:aws:iam::role/vend"
# Azurite's account and key are fixed and public: its documentation prints them.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

READY_TIMEOUT_S = 90.0  # SeaweedFS needs 4 s on an idle machine and many times that on a busy one
STOP_TIMEOUT_S = 5.0
POLL_S = 0.05
LOG_TAIL_CHARS = 3000
GUARD = "import os, sys; sys.stdin.read(); os.killpg(int(sys.argv[1]), 9)"

# Below the range from which the kernel gives out client ports: a server that was killed must find its own
# port free again. SeaweedFS puts each gRPC port 10000 higher, which must stay below that range as well.
PORTS = range(10000, 20000)
GRPC_OFFSET = 10000

HERE = Path(__file__).resolve().parent
TOOLS = HERE.parent.parent / ".tools"


class ServerMissing(Exception):
    """The server is not on this machine; the message says which make target brings it."""


class ServerFailed(Exception):
    """The server did not get ready; the message ends with the tail of its log."""


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    url: str
    endpoint: str
    options: dict[str, str]
    pid: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that differs from one server to another."""

    name: str
    command: tuple[str, ...]
    url: str
    endpoint: str
    options: Mapping[str, str]
    ready: Callable[[], bool]
    survives_kill: bool
    litter: tuple[Path, ...] = ()  # what the server leaves outside its folder


class ServerProcess:
    """One server with a fixed folder and port. Start it, stop it, or kill it and start it again."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self._recipe = recipe
        self._folder = folder
        self._log = folder / f"{recipe.name}.log"
        self._child: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def server(self) -> Server:
        if self._child is None:
            raise RuntimeError(f"{self._recipe.name} is not running")
        recipe = self._recipe
        return Server(recipe.name, recipe.url, recipe.endpoint, dict(recipe.options), self._child.pid)

    def start(self) -> Server:
        """Return when the server answers and its bucket exists."""
        if self._child is not None:
            raise RuntimeError(f"{self._recipe.name} is running already")
        # The servers take options from variables such as AWS_ACCESS_KEY_ID, S3_BUCKET, VGW_PORT or
        # AZURITE_ACCOUNTS. What the developer has in the shell must not change a test.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._folder)}
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                self._recipe.command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a process group of its own, so that a signal reaches its children
            )
        try:
            self._guard = _start_guard(self._child.pid)
            self._wait_until_ready(self._child)
        except BaseException:
            self._end()
            raise
        return self.server

    def stop(self) -> None:
        """Ask the server to end, and kill it when it takes longer than STOP_TIMEOUT_S."""
        if self._child is None:
            return
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(STOP_TIMEOUT_S)
        self._end()

    def kill(self) -> None:
        """End the server with no warning: no signal handler runs, nothing that it still holds is written."""
        if not self._recipe.survives_kill:
            raise RuntimeError(f"{self._recipe.name} loses acknowledged writes when killed: use versitygw")
        self._end()

    def _end(self) -> None:
        if self._child is None:
            return
        if self._guard is not None:
            self._guard.kill()  # before the server is reaped and its number may belong to somebody else
            self._guard.communicate()
            self._guard = None
        self._signal(signal.SIGKILL)
        self._child.wait()
        self._child = None
        for path in self._recipe.litter:
            path.unlink(missing_ok=True)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, number)

    def _wait_until_ready(self, child: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if child.poll() is not None:
                raise ServerFailed(self._report(f"ended with status {child.returncode}"))
            with suppress(OSError, http.client.HTTPException):
                if self._recipe.ready():
                    return
            time.sleep(POLL_S)
        raise ServerFailed(self._report(f"was not ready after {READY_TIMEOUT_S:.0f} s"))

    def _report(self, what: str) -> str:
        tail = self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]
        return f"{self._recipe.name} {what}\n{' '.join(self._recipe.command)}\n{tail}"


def _start_guard(group: int) -> subprocess.Popen[bytes]:
    """Kill the server when this process dies without cleaning up: its end of the pipe closes then."""
    return subprocess.Popen(
        (sys.executable, "-ISc", GUARD, str(group)),
        stdin=subprocess.PIPE,
        start_new_session=True,  # so that it outlives a signal to the tests, which is what it waits for
    )


def process(name: str, folder: Path) -> ServerProcess:
    """The named server, not started yet. Its data and its log stay in the folder."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return ServerProcess(RECIPES[name](folder), folder)


@contextmanager
def seaweedfs(folder: Path) -> Iterator[Server]:
    with process("seaweedfs", folder) as running:
        yield running.server


@contextmanager
def versitygw(folder: Path) -> Iterator[Server]:
    with process("versitygw", folder) as running:
        yield running.server


@contextmanager
def gcsd(folder: Path) -> Iterator[Server]:
    with process("gcsd", folder) as running:
        yield running.server


@contextmanager
def azurite(folder: Path) -> Iterator[Server]:
    with process("azurite", folder) as running:
        yield running.server


def _seaweedfs(folder: Path) -> Recipe:
    weed = Path(sysconfig.get_path("scripts")) / "weed"
    if not weed.is_file():
        raise ServerMissing("seaweedfs comes with the development packages: make setup")
    data = folder / "data"
    data.mkdir(exist_ok=True)
    identities = folder / "s3.json"
    identities.write_text(json.dumps(_seaweedfs_identities()))
    iam = folder / "iam.json"
    iam.write_text(json.dumps(_seaweedfs_iam()))
    s3, master, volume, filer, admin = _free_ports(5)
    endpoint = f"http://127.0.0.1:{s3}"
    command = (
        *(str(weed), "mini", f"-dir={data}", f"-bucket={BUCKET}"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1"),  # binds every interface unless told
        "-master.telemetry=false",  # on unless told
        *("-s3.port.iceberg=0", "-s3.port.lance=0"),  # its own Iceberg catalog would stand where ours is meant
        *("-webdav=false", "-admin.ui=false"),
        *(f"-s3.port={s3}", f"-master.port={master}", f"-volume.port={volume}"),
        *(f"-filer.port={filer}", f"-admin.port={admin}"),
        # Relative to the folder, because the path of a socket may not be longer than about 100 bytes.
        *("-filer.localSocket=filer.sock", "-s3.localSocket=s3.sock"),
        *(f"-s3.config={identities}", f"-s3.iam.config={iam}"),
    )
    # Named in its code, with no option to move them.
    litter = tuple(
        Path(f"/tmp/seaweedfs-{part}-grpc-{port + GRPC_OFFSET}.sock")
        for part, port in (("s3", s3), ("master", master), ("volume", volume), ("filer", filer), ("admin", admin))
    )
    return replace(_s3_recipe("seaweedfs", command, endpoint), litter=litter)


def _seaweedfs_identities() -> dict[str, object]:
    credentials = [{"accessKey": ACCESS_KEY_ID, "secretKey": SECRET_ACCESS_KEY}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {"identities": [{"name": "arco", "credentials": credentials, "actions": actions}]}


def _seaweedfs_iam() -> dict[str, object]:
    """One role that may do everything: what a session may do is then what its session policy says."""
    everything = {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"]}
    anybody = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}
    signing_key = base64.b64encode(b"arco-test-signing-key-of-32-byte").decode()
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "arco-test",
            "signingKey": signing_key,
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [{"name": "everything", "document": {"Version": "2012-10-17", "Statement": [everything]}}],
        "roles": [
            {
                "roleName": SEAWEEDFS_ROLE_ARN.rpartition("/")[2],
                "roleArn": SEAWEEDFS_ROLE_ARN,
                "trustPolicy": {"Version": "2012-10-17", "Statement": [anybody]},
                "attachedPolicies": ["everything"],
            }
        ],
    }


def _versitygw(folder: Path) -> Recipe:
    program = _tool("versitygw-v1.8.0", "versitygw")
    data, iam = folder / "data", folder / "iam"
    (data / BUCKET).mkdir(parents=True, exist_ok=True)  # a bucket is a folder
    iam.mkdir(exist_ok=True)
    (port,) = _free_ports(1)
    command = (
        *(str(program), "--port", f"127.0.0.1:{port}", "--region", REGION),
        *("--access", ACCESS_KEY_ID, "--secret", SECRET_ACCESS_KEY),
        # Closes the connection after every answer unless told; the real S3 does not.
        *("--iam-dir", str(iam), "--quiet", "--keep-alive", "posix", str(data)),
    )
    return _s3_recipe("versitygw", command, f"http://127.0.0.1:{port}")


def _s3_recipe(name: str, command: tuple[str, ...], endpoint: str) -> Recipe:
    options = {
        "endpoint": endpoint,
        "region": REGION,
        "access_key_id": ACCESS_KEY_ID,
        "secret_access_key": SECRET_ACCESS_KEY,
        "path_style": "true",
        "allow_http": "true",
    }
    ready = partial(_s3_bucket_answers, endpoint)
    return Recipe(name, command, f"s3://{BUCKET}", endpoint, options, ready, survives_kill=True)


def _gcsd(folder: Path) -> Recipe:
    program = _tool(f"gcsd-{_gcsd_fingerprint()}", "gcsd")
    (port,) = _free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    # In memory: on disk the engine makes one file name of the whole key, and long keys do not fit.
    command = (str(program), "-addr", f"127.0.0.1:{port}", "-bucket", BUCKET)
    # A bearer token, because without one obstore asks the metadata service of the cloud for it.
    options = {"endpoint": endpoint, "bearer_token": "test", "allow_http": "true"}
    ready = partial(_gcs_bucket_answers, endpoint)
    return Recipe("gcsd", command, f"gs://{BUCKET}", endpoint, options, ready, survives_kill=False)


def _gcsd_fingerprint() -> str:
    sources = [*sorted((HERE / "gcsd").glob("*.go")), HERE / "gcsd" / "go.mod", HERE / "gcsd" / "go.sum"]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


def _azurite(folder: Path) -> Recipe:
    program = _tool("azurite-3.35.0", "node_modules/azurite/dist/src/blob/main.js")
    node = shutil.which("node")
    if node is None:
        raise ServerMissing("azurite needs Node 18 or newer on the path; then: make stores")
    data = folder / "data"
    data.mkdir(exist_ok=True)
    (port,) = _free_ports(1)
    endpoint = f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"
    command = (
        *(node, str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(data)),
        *("--silent", "--skipApiVersionCheck", "--disableTelemetry"),
    )
    options = {
        "endpoint": endpoint,
        "account_name": AZURE_ACCOUNT,
        "account_key": AZURE_KEY,
        "allow_http": "true",
    }
    ready = partial(_azure_container_exists, endpoint)
    return Recipe("azurite", command, f"az://{BUCKET}", endpoint, options, ready, survives_kill=False)


RECIPES: Mapping[str, Callable[[Path], Recipe]] = {
    "seaweedfs": _seaweedfs,
    "versitygw": _versitygw,
    "gcsd": _gcsd,
    "azurite": _azurite,
}


def _tool(folder: str, program: str) -> Path:
    path = TOOLS / folder / program
    if not path.is_file():
        raise ServerMissing(f"{folder} is not built: make stores")
    return path


def _free_ports(count: int) -> tuple[int, ...]:
    """Ports that are free now, and whose gRPC neighbours are; random, so that test processes rarely meet."""
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if _is_free(port) and _is_free(port + GRPC_OFFSET):
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise ServerFailed(f"no {count} free ports in {PORTS}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _status(method: str, endpoint: str, path: str, headers: Mapping[str, str] | None = None) -> int:
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=STOP_TIMEOUT_S)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        return connection.getresponse().status
    finally:
        connection.close()


def _s3_bucket_answers(endpoint: str) -> bool:
    """A signed HEAD of the bucket (Signature Version 4), so that keys and bucket are proved, not only the port."""
    path = f"/{BUCKET}"
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    no_body = hashlib.sha256(b"").hexdigest()
    headers = {"host": urlsplit(endpoint).netloc, "x-amz-content-sha256": no_body, "x-amz-date": stamp}
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"HEAD\n{path}\n\n{lines}\n{names}\n{no_body}"
    scope = (stamp[:8], REGION, "s3", "aws4_request")
    message = "\n".join(("AWS4-HMAC-SHA256", stamp, "/".join(scope), hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{SECRET_ACCESS_KEY}".encode()
    for part in (*scope, message):
        key = hmac.digest(key, part.encode(), "sha256")
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/{'/'.join(scope)}, SignedHeaders={names}, Signature={key.hex()}"
    )
    return _status("HEAD", endpoint, path, headers) == 200


def _gcs_bucket_answers(endpoint: str) -> bool:
    return _status("GET", endpoint, f"/{BUCKET}?list-type=2&max-keys=1") == 200


def _azure_container_exists(endpoint: str) -> bool:
    """Create the container (Shared Key), or find it there already."""
    headers = {
        "x-ms-date": datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "x-ms-version": "2021-12-02",
    }
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    path = f"/{AZURE_ACCOUNT}/{BUCKET}"
    # The eleven empty lines are the standard headers, all absent. The resource names the account twice,
    # because an emulator has it in the path as well.
    message = "PUT\n" + "\n" * 11 + lines + f"/{AZURE_ACCOUNT}{path}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(AZURE_KEY), message.encode(), "sha256")).decode()
    headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{signature}"
    headers["Content-Length"] = "0"
    return _status("PUT", endpoint, f"{path}?restype=container", headers) in {201, 409}
