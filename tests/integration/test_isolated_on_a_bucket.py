"""Tasks in processes of their own, on a store that enforces what their keys open: they work with them, and with nothing else.

The keys of the whole root stay with the worker: they are in its environment, and nowhere that a task's code can look.
"""

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import arco
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.ledger.run_state import RunState
from arco.storage.paging import walk
from arco.storage.roots import open_root
from fixtures.servo.frames import MARKS
from tests.servers.launch import ACCESS_KEY_ID, BUCKET, SEAWEEDFS_ROLE_ARN, SECRET_ACCESS_KEY, Server, seaweedfs

from .servo_fleet import COMMAND_S_MAX, Fleet
from .test_fleet_on_a_bucket import ASSETS, JARS, REPOSITORY, TOML, rows_of, undisturbed  # noqa: F401 - a fixture

pytestmark = [pytest.mark.timeout(900, func_only=True), *MARKS, pytest.mark.conformance]

WIDE = {"AWS_ACCESS_KEY_ID": ACCESS_KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY}
SECRETS = {"access_key_id", "secret_access_key"}
NOSY = """
import json
import os
from pathlib import Path

import obstore
from obstore.store import S3Store
from pyarrow.fs import S3FileSystem

from arco import asset

TOLD = json.loads((Path(__file__).parent.parent / "told.json").read_text())
BUCKET, ELSEWHERE = TOLD["bucket"], TOLD["elsewhere"]


def outcome(act):
    try:
        act()
    except Exception as error:
        said = str(error)
        refused = any(word in said for word in ("AccessDenied", "ACCESS_DENIED", "Access Denied", "403", "Forbidden"))
        return "refused" if refused else said[:500]
    return "done"


@asset
def tried(run, total):
    spark = run.spark
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    found = {word: conf.get(f"fs.s3a.bucket.{BUCKET}.{word}") for word in ("access.key", "secret.key", "session.token")}
    keys = {
        "access_key_id": found["access.key"], "secret_access_key": found["secret.key"], "session_token": found["session.token"]
    }
    store = S3Store(
        BUCKET, config={"endpoint": TOLD["endpoint"], "region": "us-east-1", **keys},
        client_options={"allow_http": True}, retry_config={"max_retries": 0},
    )
    arrow = S3FileSystem(
        access_key=keys["access_key_id"], secret_key=keys["secret_access_key"], session_token=keys["session_token"],
        endpoint_override=TOLD["endpoint"].removeprefix("http://"), scheme="http", region="us-east-1",
    )
    ambient = S3FileSystem(endpoint_override=TOLD["endpoint"].removeprefix("http://"), scheme="http", region="us-east-1")
    rows = []
    for name, key in ELSEWHERE.items():
        folder, uri = key.rpartition("/")[0], f"s3://{BUCKET}/{key}"
        rows += [
            (f"read {name} with its keys", outcome(lambda: obstore.get(store, key))),
            (f"write {name} with its keys", outcome(lambda: obstore.put(store, f"{folder}/evil", b"x"))),
            (f"overwrite {name} with its keys", outcome(lambda: obstore.put(store, key, b"x"))),
            (f"delete {name} with its keys", outcome(lambda: obstore.delete(store, key))),
            (f"list {name} with its keys", outcome(lambda: obstore.list(store, f"{folder}/").collect())),
            (f"read {name} with Arrow", outcome(lambda: arrow.open_input_file(f"{BUCKET}/{key}").read())),
            (f"read {name} with what is around", outcome(lambda: ambient.open_input_file(f"{BUCKET}/{key}").read())),
            (f"read {name} with Spark", outcome(lambda: spark.read.format("binaryFile").load(uri).collect())),
            (f"write {name} with Spark", outcome(lambda: spark.range(1).write.parquet(f"s3://{BUCKET}/{folder}/evil"))),
        ]
    own = [one for one in total.inputFiles()]
    rows += [("read its input", outcome(lambda: obstore.get(store, own[0].partition(f"{BUCKET}/")[2])))]
    rows += [("overwrite its input", outcome(lambda: obstore.put(store, own[0].partition(f"{BUCKET}/")[2], b"x")))]
    words = " ".join(f"{name}={value}" for name, value in os.environ.items())
    shown = b" ".join(one.read_bytes() for one in Path("/proc").glob("[0-9]*/cmdline") if one.exists())
    rows += [
        ("wide keys around", "none" if not any(one in words for one in TOLD["secrets"]) else "some"),
        ("names around", " ".join(sorted(name for name in os.environ if name.startswith(("AWS", "ARCO", "GOOGLE", "AZURE"))))),
        ("keys in the list of processes", "some" if keys["session_token"].encode() in shown else "none"),
    ]
    return spark.createDataFrame(rows, "what string, outcome string")
"""
LYING = """
import sys

from arco import asset
from arco.servo.execute import task_messages

THEIRS = "{theirs}"


@asset
def liar(run, total):
    itself = sys.modules["__main__"]  # whoever says what was written
    itself.files = lambda stored: task_messages.Files(new=[THEIRS], kept=[], aside=None, removed=None, results=[])
    return total
"""
WAITING = """
import os
import time
from pathlib import Path

from arco import asset

HERE = Path(__file__).parent.parent


@asset
def slow(run, total):
    (HERE / f"attempt-{run.attempt}").write_text(str(os.getpid()))
    while not (HERE / "go").exists():
        time.sleep(0.1)
    return total
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    subprocess.run([str(REPOSITORY / "tools" / "s3_jars.sh")], check=False, timeout=COMMAND_S_MAX)
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        yield server


def fleet_at(folder: Path, root: str, store: Server) -> Fleet:
    """A project whose file has no keys; its processes have those of the whole root in their environment."""
    lines = "".join(f'{word} = "{value}"\n' for word, value in store.options.items() if word not in SECRETS)
    workers = f'\n[workers]\nvend_role = "{SEAWEEDFS_ROLE_ARN}"\nvend_endpoint = "{store.endpoint}"\n'
    fleet = Fleet(folder, environment=dict(WIDE), options=[f"{word}={store.options[word]}" for word in sorted(SECRETS)])
    fleet.write(TOML.format(root=root, jars=JARS) + lines + workers, ASSETS)
    return fleet


@pytest.fixture(scope="module")
def made(store: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, str, RunState]:
    """The project made by a worker that keeps tasks apart."""
    root = f"{store.url}/apart"
    fleet = fleet_at(tmp_path_factory.mktemp("apart") / "p", root, store)
    return fleet, root, run_apart(fleet)


def run_apart(fleet: Fleet, *words: str) -> RunState:
    """A run that a worker with --isolate makes, with a scheduler that signs."""
    run = fleet.begin(
        "--parallel", "2", *words
    )  # first: a scheduler deploys too, and of two that do it at once one is refused
    fleet.start("scheduler")
    fleet.start("worker", "--isolate", "--slots", "2")
    try:
        return fleet.ended(run)
    finally:
        codes = fleet.stop()
        assert codes == [0, 0], fleet.lines()


def told(root: str, store: Server, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = arco.connect(root, **store.options).table(name).to_arrow().to_pylist()
    return rows


def keys_of(root: str, store: Server) -> list[str]:
    async def found() -> list[str]:
        whole = open_root(root, store.options, SystemClock(), SystemEntropy())
        return [one.key async for one in walk(whole, "")]

    return asyncio.run(found())


def elsewhere(root: str, store: Server) -> dict[str, str]:
    """A file of a table that a task does not read, one of the same table's that it writes, and one of the catalog's."""
    keys = keys_of(root, store)
    data = next(one for one in keys if "/data/days-" in one and one.endswith(".parquet"))
    catalog = next(one for one in keys if one.endswith("catalog.manifest.json"))
    folder = root.removeprefix(f"s3://{BUCKET}/")
    return {"another table": f"{folder}/{data}", "the catalog": f"{folder}/{catalog}"}


def test_a_worker_that_keeps_tasks_apart_makes_what_one_process_makes_on_a_folder(
    made: tuple[Fleet, str, RunState],
    store: Server,
    undisturbed: dict[str, Counter[tuple[Any, ...]]],  # noqa: F811
) -> None:
    fleet, root, state = made
    assert Counter(its.status.value for its in state.tasks.values()) == {"succeeded": 6}, fleet.lines()
    assert rows_of(root, store.options) == undisturbed
    assert any("each in a process of its own with keys of its own" in line for line in fleet.lines())


def test_the_code_of_a_task_can_touch_nothing_but_its_inputs_and_its_own_output(
    made: tuple[Fleet, str, RunState], store: Server
) -> None:
    fleet, root, _ = made
    before = dict.fromkeys(keys_of(root, store))
    words = {
        "bucket": BUCKET,
        "endpoint": store.endpoint,
        "elsewhere": elsewhere(root, store),
        "secrets": [SECRET_ACCESS_KEY, fleet.environment["AWS_ACCESS_KEY_ID"]],
    }
    (fleet.folder / "told.json").write_text(json.dumps(words))
    (fleet.folder / "assets" / "nosy.py").write_text(NOSY)
    state = run_apart(fleet, "tried")
    assert {its.status.value for its in state.tasks.values()} == {"succeeded"}, fleet.lines()
    found = {one["what"]: one["outcome"] for one in told(root, store, "db.tried")}
    print(json.dumps(found, indent=1))
    assert found.pop("wide keys around") == "none"
    assert found.pop("names around") == "AWS_CONFIG_FILE AWS_EC2_METADATA_DISABLED AWS_SHARED_CREDENTIALS_FILE"
    assert found.pop("keys in the list of processes") == "none"
    assert found.pop("read its input") == "done"
    assert len(found) == 19
    assert set(found.values()) == {"refused"}
    assert not [one for one in keys_of(root, store) if "evil" in one]
    assert set(before) <= set(keys_of(root, store))


def test_a_process_that_names_the_files_of_another_table_publishes_nothing(
    made: tuple[Fleet, str, RunState], store: Server
) -> None:
    fleet, root, _ = made
    theirs = f"s3://{BUCKET}/{elsewhere(root, store)['another table']}"
    (fleet.folder / "assets" / "lying.py").write_text(LYING.format(theirs=theirs))
    state = run_apart(fleet, "liar")
    (its,) = state.tasks.values()
    assert its.status.value == "failed"
    assert its.failure is not None
    assert "is not in the directory of this attempt" in its.failure.message
    assert "db.liar" not in str(arco.connect(root, **store.options).tables())


def test_killing_the_process_of_a_task_leaves_what_was_published_and_the_task_is_tried_again(
    made: tuple[Fleet, str, RunState], store: Server
) -> None:
    fleet, root, _ = made
    (fleet.folder / "assets" / "waiting.py").write_text(WAITING)
    run = fleet.begin("slow")
    fleet.start("scheduler")
    fleet.start("worker", "--isolate", "--slots", "1")
    try:
        first = fleet.folder / "attempt-1"
        fleet.until(run, lambda _: first.exists() and bool(first.read_text()))
        os.kill(int(first.read_text()), signal.SIGKILL)
        second = fleet.folder / "attempt-2"
        state = fleet.until(run, lambda _: second.exists())
        assert any("ended with signal SIGKILL" in str(one) for one in state.tasks.values()), state.tasks
        (fleet.folder / "go").touch()
        state = fleet.ended(run)
    finally:
        fleet.stop()
    (its,) = state.tasks.values()
    assert (its.status.value, its.attempt) == ("succeeded", 2)
    assert told(root, store, "db.slow") == told(root, store, "db.total")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "--isolate needs a role whose sessions are the tasks' keys"),
        (f'vend_role = "{SEAWEEDFS_ROLE_ARN}"', "which every task could read"),
    ],
)
def test_what_would_make_it_worth_nothing_is_refused_in_one_line(
    store: Server, tmp_path: Path, line: str, said: str
) -> None:
    fleet = Fleet(tmp_path / "p", environment=dict(WIDE))
    options = "".join(f'{word} = "{value}"\n' for word, value in store.options.items())
    fleet.write(TOML.format(root=f"{store.url}/no", jars=JARS) + options + f"\n[workers]\n{line}\n", ASSETS)
    process = fleet.start("worker", "--isolate", "--once")
    assert process.wait(120) == 2
    assert said in "\n".join(fleet.lines())
