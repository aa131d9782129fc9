"""Every version of a format that today's code writes is in a stored root or lake; and one that it does not know is refused."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arco.fold.notifying import hinted
from arco.fold.passes import fold_pass
from arco.kernel.errors import ArcoError, CorruptObject, UnknownFormat
from arco.ledger import reading
from arco.servo.deploy.dynamic_values import DynamicDimensions
from arco.servo.execute.gathering import load_snapshot
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.starting import RunRequest, start_run
from arco.storage.keys import Domain, Head
from tests.compat import lake_story, story
from tests.compat.make import HERE
from tests.compat.opened_lake import Lake, Process, with_lake
from tests.compat.story import SCOPE

SOURCE = HERE.parents[1] / "src" / "arco"
_DECLARED = re.compile(r'(?:FORMAT|format|"format") ?[=:] "(arco\.[a-z_]+)"|\b[A-Z_]\w*\(\s*"(arco\.[a-z_]+)",')
Version = tuple[str, int]


def versions_of(data: bytes) -> Iterator[Version]:
    """The format and version that an object says; in a segment of the ledger the first line does. A plan has a number alone."""
    try:
        found = json.loads(data.partition(b"\n")[0])
    except ValueError:
        return
    if isinstance(found, dict) and "format_version" in found:
        yield found.get("format", "planning snapshot"), found["format_version"]
    elif isinstance(found, dict) and isinstance(found.get("spec"), dict):
        yield "plan", found["spec"]["format"]


def stored() -> set[Version]:
    kept = [path for path in HERE.rglob("*") if path.is_file() and path.suffix in {".json", ".jsonl"}]
    return {version for path in kept for version in versions_of(path.read_bytes())}


def test_every_version_that_is_written_today_is_stored() -> None:
    objects = [*asyncio.run(story.tell()).objects.values(), *asyncio.run(lake_story.tell()).objects.values()]
    today = {version for data in objects for version in versions_of(data)}
    missing = today - stored()
    assert not missing, (
        f"{missing}: keep a root or a lake of it (make.py, make_lake.py), and leave the old ones as they are"
    )


def test_every_format_that_the_code_declares_is_stored() -> None:
    declared = {one or other for path in SOURCE.rglob("*.py") for one, other in _DECLARED.findall(path.read_text())}
    assert len(declared) > 15
    assert declared <= {name for name, _ in stored()}


# Versions that are not known


def raised(path: Path) -> None:
    """The object as a later version would leave it."""
    first, newline, rest = path.read_bytes().partition(b"\n")
    document = json.loads(first)
    if "format_version" in document:
        document["format_version"] = 99
    else:
        document["spec"]["format"] = 99
    path.write_bytes(json.dumps(document).encode() + newline + rest)


async def current(process: Process) -> Any:
    return await process.reader()


async def deployment(process: Process) -> Any:
    return await process.deployments.current("shop")


async def earlier(process: Process) -> Any:
    return await process.deployments.load(process.known.deployments[0])


async def values(process: Process) -> Any:
    found = await process.deployments.current("shop")
    assert found is not None
    dimensions = DynamicDimensions(process.store, SCOPE, process.clock, process.entropy)
    return await dimensions.values(found.assets["shop.prices"].asset_id, "market")


async def facts(process: Process) -> Any:
    return await load_snapshot(process.catalog, process.known.planning_snapshot)


async def nightly(process: Process) -> Any:
    return await (await process.run("nightly")).log.read_all()


async def claim(process: Process) -> Any:
    run = await process.run("nightly")
    claims = Claims(process.store, SCOPE, run.log.run, "another", process.clock, process.entropy)
    return await claims.read(run.plan.spec.tasks[0].id)


async def keyed(process: Process) -> Any:
    plan = (await process.run("lost")).plan
    asked = RunRequest(who="ann", idempotency_key=lake_story.RUN_KEY)
    return await start_run(process.store, SCOPE, plan, asked, process.clock, process.entropy)


async def events(process: Process) -> Any:
    return await reading.events(process.store, SCOPE, Domain.EXECUTION)


async def hint(process: Process) -> Any:
    return await hinted(process.store, SCOPE, Domain.EXECUTION, process.clock, process.entropy)


@pytest.mark.parametrize(
    ("part", "use"),
    [
        ("/manifests/root.manifest", current),
        ("/deployments/heads/", deployment),
        ("/deployments/", earlier),
        ("/dynamic", values),
        ("/planning/", facts),
        ("/log/00000001", nightly),
        ("/plan.json", nightly),
        ("/claims/", claim),
        ("/run_requests/", keyed),
        ("/ledger/execution/", events),
        ("/hints/", hint),
    ],
)
def test_a_version_that_is_not_known_is_refused(lake: Lake, part: str, use: Callable[[Process], Awaitable[Any]]) -> None:
    with_lake(lake, use)
    raised(lake.one(part))
    with pytest.raises(UnknownFormat):
        with_lake(lake, use)


@pytest.mark.parametrize("part", ["/manifests/root/", "/manifests/quality/", "/consumed/quality/"])
def test_what_is_named_by_its_checksum_cannot_change_its_version(lake: Lake, part: str) -> None:
    """What a manifest or a head names is held against its checksum before anything else."""

    async def fold(process: Process) -> None:
        await current(process)
        failed: dict[Head, ArcoError] = (await fold_pass(process.folding())).failed
        for error in failed.values():
            raise error

    for path in lake.folder.rglob("*"):
        if path.is_file() and part in path.as_posix():
            raised(path)
    with pytest.raises(CorruptObject):
        with_lake(lake, fold)
