"""A process that keeps to itself cannot be read by others of its user."""

import subprocess
import sys
from pathlib import Path

import pytest

KEEPS = "from arco.kernel.own_memory import keep_to_ourselves; print(keep_to_ourselves(), flush=True); input()"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone has it")
def test_its_files_in_proc_belong_to_root() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KEEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "True"
        assert Path(f"/proc/{process.pid}/environ").stat().st_uid == 0
        process.communicate("\n")
