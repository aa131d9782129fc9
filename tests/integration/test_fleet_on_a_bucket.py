"""Schedulers and workers as processes: on a bucket as on a folder, and what workers staged is published by whoever is left."""

import asyncio
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import requests

import arco
from arco.govern.aws_signature import AwsKeys, signed_form
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.secret import Secret
from arco.storage.paging import walk
from arco.storage.roots import open_root
from arco.surface.cli.opening import opened
from arco.surface.cli.projects import read_project
from fixtures.servo.frames import MARKS
from servers.fault_proxy import FaultProxy
from servers.fault_proxy import running as proxied
from tests.servers.launch import (
    ACCESS_KEY_ID,
    BUCKET,
    REGION,
    SEAWEEDFS_ROLE_ARN,
    SECRET_ACCESS_KEY,
    Server,
    seaweedfs,
)

from .servo_fleet import COMMAND_S_MAX, Fleet

# Of the test alone: the first of them would pay for a whole run that all of them are compared with, and its own time would be up.
pytestmark = [pytest.mark.timeout(900, func_only=True), *MARKS, pytest.mark.conformance]

REPOSITORY = Path(__file__).resolve().parents[2]
JARS = REPOSITORY / ".tools" / "jars-s3"
ACTIONS = [
    f"s3:{one}" for one in ("GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload", "ListMultipartUploadParts")
]
TABLES = ("db.days", "db.named", "db.named__quarantine", "db.total")
TOML = """
root = "{root}"

[project]
name = "db"

[schedules.someday]
cron = "0 0 29 2 *"

[spark]
master = "local[1]"
jars = "{jars}"
conf = {{ "spark.sql.shuffle.partitions" = "1", "spark.ui.enabled" = "false", "spark.driver.memory" = "512m" }}

[store]
"""
ASSETS = """
from arco import asset, daily, not_null

@asset(partitions=daily("date", start="2025-01-01", end="2025-01-05"), partitions_per_task=1)
def days(run):
    (day,) = run.values("date")
    return run.spark.range(3).selectExpr("id", f"date '{day}' date")

@asset(checks=[not_null("name", quarantine_rows=True)])
def named(days):
    return days.selectExpr("id", "if(id = 1, null, concat('n', id)) name", "date")

@asset
def total(named):
    return named.groupBy("date").count()
"""


def fleet_at(folder: Path, root: str, options: dict[str, str]) -> Fleet:
    lines = "".join(f'{word} = "{value}"\n' for word, value in options.items())
    fleet = Fleet(folder)
    fleet.write(TOML.format(root=root, jars=JARS if options else "") + lines, ASSETS)
    return fleet


def rows_of(root: str, options: dict[str, Any]) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of every table; of those that were set aside without the run and the moment."""
    lake = arco.connect(root, **options)
    return {one: Counter(tuple(row.values())[:4] for row in lake.table(one).to_arrow().to_pylist()) for one in TABLES}


async def transactions_of(fleet: Fleet) -> set[str | None]:
    """The transactions of the last commits of all tables."""
    async with opened(read_project(str(fleet.folder)).where(None, [])) as home:
        parts = home.catalog.parts
        names = (await parts.tier1.current()).names
        pointers = [await parts.pointers.read(entry.uuid) for entry in names.entries.values()]
        return {None if one is None else one.value.published[-1].transaction for one in pointers}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[tuple[Any, ...]]]:
    """What `arco run` makes of the project on a folder, in one process."""
    folder = tmp_path_factory.mktemp("alone")
    fleet_at(folder / "p", f"{folder}/lake", {}).do("run", "--no-fold")
    return rows_of(f"{folder}/lake", {})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # Without Maven the jars are not copied, and Spark fetches them itself when it starts.
    subprocess.run([str(REPOSITORY / "tools" / "s3_jars.sh")], check=False, timeout=COMMAND_S_MAX)
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def bucket(store: Server) -> Iterator[tuple[str, dict[str, str], FaultProxy]]:
    """A store behind somebody who counts what it is asked."""
    with proxied(store.endpoint) as proxy:
        yield f"{store.url}/lake", {**store.options, "endpoint": proxy.endpoint}, proxy


def session_of(store: Server, folder: str) -> dict[str, str]:
    """The options of a store for whoever may read and write one folder and nothing else, as docs/workers.md has it."""
    everything = f"arn:aws:s3:::{BUCKET}"
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ACTIONS, "Resource": f"{everything}/{folder}/*"},
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": everything,
             "Condition": {"StringLike": {"s3:prefix": f"{folder}/*"}}},
        ],
    }  # fmt: skip
    form = {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": SEAWEEDFS_ROLE_ARN,
        "RoleSessionName": "workers-of-dev",
        "Policy": json.dumps(policy),
    }
    body, url = urlencode(form), f"{store.endpoint}/"
    keys = AwsKeys(ACCESS_KEY_ID, Secret(SECRET_ACCESS_KEY))
    headers = signed_form(url, body.encode(), keys, region=REGION, service="sts", at_ms=round(time.time() * 1000))
    answer = requests.post(url, body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    words = {"access_key_id": "AccessKeyId", "secret_access_key": "SecretAccessKey", "session_token": "SessionToken"}
    found = {ours: re.search(f"<{theirs}>(.+?)</{theirs}>", answer.text) for ours, theirs in words.items()}
    return store.options | {ours: one[1] for ours, one in found.items() if one is not None}


def requests_an_hour(fleet: Fleet) -> list[int]:
    """What each process says that waiting costs, in the order in which they were started."""
    said = [re.search(r"([\d,]+) requests an hour while nothing is open", line) for line in fleet.lines()]
    return [int(one[1].replace(",", "")) for one in said if one is not None]


def counted_while_idle(proxy: FaultProxy, looks: int) -> tuple[int, int]:
    """How often processes looked for open runs, until they have so often, and what else they asked for meanwhile."""
    begun = len(proxy.requests)
    while True:
        asked = [path for _, path in proxy.requests[begun:]]
        found = sum("open_runs" in path for path in asked)
        if found >= looks:
            return found, len(asked) - found
        time.sleep(0.5)


def test_a_scheduler_and_two_workers_on_a_bucket_make_what_one_process_makes_on_a_folder(
    bucket: tuple[str, dict[str, str], FaultProxy], undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    root, options, proxy = bucket
    fleet = fleet_at(tmp_path / "p", root, options)
    fleet.start("scheduler")
    for _ in range(2):
        fleet.start("worker", "--slots", "1")
    try:
        state = fleet.ended(fleet.begin("--parallel", "2"))
        assert Counter(its.status.value for its in state.tasks.values()) == {"succeeded": 6}
        assert not state.ignored
        assert rows_of(root, options) == undisturbed

        again = fleet.ended(fleet.begin("--parallel", "2", "--force", "--atomic"))
        assert again.run.published
        assert Counter(its.status.value for its in again.tasks.values()) == {"succeeded": 6}
        aside = undisturbed["db.named__quarantine"]
        assert rows_of(root, options) == undisturbed | {"db.named__quarantine": aside + aside}, (
            "each run sets its rows aside"
        )
        (transaction,) = asyncio.run(transactions_of(fleet))
        assert transaction is not None

        said, *of_workers = requests_an_hour(fleet)
        assert of_workers == [1800, 1800]
        assert [fleet.dismiss(one) for one in fleet.processes[1:]] == [0, 0]
        looks, others = counted_while_idle(proxy, 20)
        print(
            f"a scheduler that waits: {looks} looks and {others} other requests; it says {said} an hour, 1800 of them looks"
        )
        # Counted, not timed: a busy machine stretches both, not quite alike. A round may be early.
        assert 0 < others <= 1.5 * looks * (said - 1800) / 1800 + (said - 1800) / 360
    finally:
        codes = fleet.stop()
    assert codes == [0], fleet.lines()
    assert not [line for line in fleet.lines() if "Traceback" in line]


def test_credentials_of_one_workspace_are_enough_to_work_there_and_open_no_other(
    store: Server, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    root, options = f"{store.url}/narrow", session_of(store, "narrow/default/dev")
    fleet = fleet_at(tmp_path / "p", root, options)
    fleet.do("run", "--workspace", "dev", "--no-fold")
    assert rows_of(root, options | {"warehouse": "default/dev"}) == undisturbed
    for words in (("deploy",), ("plan", "--workspace", "prod"), ("run", "--workspace", "prod", "--no-fold")):
        with pytest.raises(subprocess.CalledProcessError) as refused:
            fleet.do(*words)
        assert refused.value.returncode == 2

    async def elsewhere() -> list[str]:
        whole = open_root(root, store.options, SystemClock(), SystemEntropy())
        return [one.key async for one in walk(whole, "") if not one.key.startswith("default/dev/")]

    assert asyncio.run(elsewhere()) == []


def test_what_a_worker_staged_before_it_died_is_published_at_once_by_a_scheduler_that_has_no_spark(
    undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    root = f"{tmp_path}/lake"
    fleet = fleet_at(tmp_path / "p", root, {})
    try:
        fleet.start("scheduler")
        # It kills itself when the last of the six is staged: from then on nobody is left but the scheduler.
        worker = fleet.start("worker", "--slots", "2", by=("-m", "tests.integration.run_killed", "run.output_staged", "6"))
        state = fleet.ended(fleet.begin("--atomic"))
        assert worker.wait() == -9
        assert state.run.published
        assert Counter(its.status.value for its in state.tasks.values()) == {"succeeded": 6}
        assert {its.attempt for its in state.tasks.values()} == {1}
        assert rows_of(root, {}) == undisturbed
        (transaction,) = asyncio.run(transactions_of(fleet))
        assert transaction is not None
    finally:
        fleet.stop()
