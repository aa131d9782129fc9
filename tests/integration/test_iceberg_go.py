"""The page of Go, built and run as it stands: on a folder, and on S3 with vended credentials. Needs Go and its module proxy."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from tests.servers.launch import SEAWEEDFS_ROLE_ARN, seaweedfs

from .arco_server import arco_server
from .test_client_documents import ADDRESS, blocks

PINNED = Path(__file__).resolve().parents[1] / "conformance" / "clients" / "iceberg_go"

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1800)]  # what it is made of is large, and built once


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, with the address left as the page has it: it is the same in every run."""
    folder = tmp_path_factory.mktemp("go")
    for name in ("go.mod", "go.sum"):
        shutil.copy(PINNED / name, folder)
    (block,) = blocks("go.md", "go", ADDRESS)
    (folder / "main.go").write_text(block.replace(f'"{ADDRESS}"', 'os.Getenv("ARCO_ADDRESS")'))
    subprocess.run(["go", "build", "-o", "garden", "."], cwd=folder, check=True)
    return folder / "garden"


def run(program: Path, address: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [program], env={**environment, "ARCO_ADDRESS": address}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(address: str) -> list[str]:
    return sorted(
        load_catalog("arco", type="rest", uri=address).load_table("garden.plants").scan().to_arrow()["name"].to_pylist()
    )


def test_the_page_of_go_on_a_folder(program: Path, tmp_path: Path) -> None:
    with arco_server(tmp_path / "lake") as address:
        assert run(program, address) == "garden.plants has 2 rows\n"
        assert rows(address) == ["fern", "ivy"]


def test_the_page_of_go_on_s3_with_vended_credentials(program: Path, tmp_path: Path) -> None:
    with seaweedfs(tmp_path / "s3") as store:
        options = [part for word, value in store.options.items() for part in ("-o", f"{word}={value}")]
        role = ("--vend", "sts", "--vend-role", SEAWEEDFS_ROLE_ARN, "--vend-endpoint", store.endpoint)
        with arco_server(f"{store.url}/lake", *options, *role) as address:
            assert run(program, address) == "garden.plants has 2 rows\n"
            assert rows(address) == ["fern", "ivy"]


def test_the_page_and_the_pins_name_the_same_version() -> None:
    (shell,) = blocks("go.md", "sh", ADDRESS)
    wanted = re.search(r"iceberg-go@(\S+)", shell)
    assert wanted is not None
    assert f"github.com/apache/iceberg-go {wanted[1]}" in (PINNED / "go.mod").read_text()
