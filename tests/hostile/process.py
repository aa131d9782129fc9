"""A real `arco serve` in its own process: its address, its log, and how it ends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Only so that a server that hangs fails the test and not the whole run.
PATIENCE_S = 90


@dataclass(frozen=True)
class ServerProcess:
    """A server that answers at `address`, which is scheme://host:port, on the folder `root`."""

    address: str
    root: Path
    log_file: Path
    popen: "subprocess.Popen[str]"

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def stop(self) -> int:
        """Tell it to stop; its exit code."""
        self.popen.terminate()
        return self.popen.wait(PATIENCE_S)

    def objects(self) -> dict[str, bytes]:
        """Everything under the root, except what the store keeps for itself."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        names = {path.relative_to(self.root).as_posix(): path for path in files}
        return {name: path.read_bytes() for name, path in names.items() if not name.startswith(".arco/")}

    def marks(self) -> dict[str, object]:
        """A mark of every object under the root that changes with each write of it.

        Except where the checkpointer works: it writes the same names in another form, a moment after they were committed.
        """
        found: dict[str, object] = {}
        folders = [str(self.root)]
        while folders:
            for entry in os.scandir(folders.pop()):
                if entry.is_dir() and entry.name != ".arco":
                    folders.append(entry.path)
                elif entry.name == "catalog.manifest.json":
                    found[entry.path] = json.loads(Path(entry.path).read_bytes())["last_commit_id"]
                elif entry.is_file() and "/core/state/" not in entry.path:
                    stat = entry.stat()
                    found[entry.path] = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
        return found


def workers_of(server_pid: int) -> list[int]:
    """The processes of a server that serve: not the one that Python keeps beside them for itself."""
    children = Path(f"/proc/{server_pid}/task/{server_pid}/children").read_text().split()
    return sorted(int(pid) for pid in children if b"spawn_main" in _command_of(pid))


def _command_of(pid: str) -> bytes:
    """How a process was started; nothing of one that has ended since it was listed."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@contextmanager
def server_process(root: Path, *arguments: str, stdin: int | None = None, **environment: str) -> Iterator[ServerProcess]:
    """A server for the length of a block. Its log goes beside the root."""
    command = [str(Path(sys.executable).with_name("arco")), "serve", "--root", str(root), "--port", "0", *arguments]
    log_file = root.with_name(f"{root.name}.log")
    with log_file.open("a") as log:
        popen = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "COLUMNS": "400", **environment},
        )
    try:
        assert popen.stdout is not None
        line = popen.stdout.readline()
        assert " at http" in line, f"the server did not start: {line!r} {log_file.read_text()}"
        address = line.rpartition(" at ")[2].strip().removesuffix("/iceberg")
        yield ServerProcess(address, root, log_file, popen)
    finally:
        popen.terminate()
        popen.wait(PATIENCE_S)
        popen.stdout.close()  # type: ignore[union-attr]
