"""What whoever folds a workspace looks at before it folds. Spark is not started for any of it."""

import asyncio
from pathlib import Path

import pytest

from arco import asset
from arco.catalog.catalog import Catalog
from arco.catalog.workspace import Workspace
from arco.fold.folding import Settings
from arco.fold.spark_home import SparkHome
from arco.kernel.entropy import SeededEntropy
from arco.kernel.limits import READY_WORKSPACES_MAX
from arco.kernel.scope import Scope
from arco.ledger.reading import events
from arco.servo.deploy.declaration import declared
from arco.servo.deploy.deploying import Deployments
from arco.servo.sdk.project import assembled
from arco.storage.keys import Domain, UpkeepKey, Word
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent
from arco.surface.folds import EveryFold, FoldedRoot, Lake, folding_of, own_session
from stand_ins.hand_clock import HandClock


@pytest.mark.parametrize("listing", [True, False])
def test_an_asset_is_known_though_its_deployer_died_before_it_said_so(*, listing: bool) -> None:
    """Who may not list does not look: it would find neither the head of a project nor what is told of it."""

    async def story() -> list[str]:
        clock = HandClock()
        store = MemoryStore(clock)
        deployments = Deployments(store, Scope.of(), clock, SeededEntropy("deployer"))

        @asset(name="a")
        def function() -> object: ...

        project = declared(assembled([function.written], folder=Path(), name="shop", namespace="shop"))
        found, held = await deployments._prepared(project, "ann", {})
        await deployments._write(found.after)
        await deployments._swing(deployments._head("shop"), held, found.after.id, "ann")
        # Here it dies.
        parts = Catalog.open(store, "file:///lake", Scope.of(), clock, SeededEntropy("folder")).parts
        home = SparkHome(own_session("nothing"))
        async with folding_of(parts, Lake("file:///lake", {}), home, Settings(listing=listing)) as folding:
            await folding.hear_names()
        assert not home.is_open
        return [str(event.subject) for event in await events(store, Scope.of(), Domain.CATALOG)]

    assert asyncio.run(story()) == (["shop", "shop.a"] if listing else [])


def test_the_java_of_a_fold_is_there_soon_and_has_room_for_its_code():
    """The first compiler alone gets 48 MB unless told otherwise. Once they are full everything is interpreted."""
    options = own_session("arco fold").conf["spark.driver.extraJavaOptions"].split()
    assert {"-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"} <= set(options)


def test_every_workspace_of_a_root_is_folded_however_many_there_are() -> None:
    async def story() -> None:
        clock = HandClock()
        store = MemoryStore(clock)
        scopes = {Scope.of("t", f"w{number:03}") for number in range(READY_WORKSPACES_MAX + 6)}
        for scope in scopes:
            await store.put(str(UpkeepKey(scope, Word("clock"))), b"{}", Absent())

        def parts(scope: Scope) -> Workspace:
            return Catalog.open(store, "file:///lake", scope, clock, SeededEntropy("folder")).parts

        root = FoldedRoot(store, clock, Lake("file:///lake", {}), parts)
        folds = EveryFold(root, SparkHome(own_session("nothing")), 60, lambda *_: None)
        assert {scope async for scope, _ in folds.once()} == scopes

    asyncio.run(story())
