"""A campaign of requests from Iceberg's description, without that description."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SAYS = "set ICEBERG_OPENAPI to the path of Iceberg's rest-catalog-open-api.yaml"


@pytest.mark.parametrize("named", ["", "/no/such/file.yaml"])
def test_a_campaign_that_could_make_no_request_fails_and_says_what_it_needs(named: str) -> None:
    wanted = {**os.environ, "SCHEMATHESIS_REQUESTS": "20", "ICEBERG_OPENAPI": named}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(HERE / "test_schemathesis.py")]
    ended = subprocess.run(command, cwd=HERE.parents[1], env=wanted, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stdout
    assert SAYS in ended.stdout


def test_make_says_so_before_anything_else() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ICEBERG_OPENAPI"}
    ended = subprocess.run(
        ["make", "--no-print-directory", "description"],
        cwd=HERE.parents[1],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"{SAYS}\n")
    makefile = (HERE.parents[1] / "Makefile").read_text()
    assert "\nsoak: setup description " in makefile
    assert "\ndescribed: setup description " in makefile
