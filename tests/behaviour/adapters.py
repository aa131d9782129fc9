"""The stores that the contract runs against, and how to get a ground on each."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from behaviour.ground import Contention, Ground, ground_of
from behaviour.store_contract import CASES, NETWORK_CASES, NO_SIGNING_CASES, SIGNING_CASES, Case
from servers import fault_proxy, launch

IN_PROCESS = ("memory", "local")
WITH_PIP = ("seaweedfs",)
WITH_NODE_OR_GO = ("versitygw", "gcsd", "azurite")
ADAPTERS = (*IN_PROCESS, *WITH_PIP, *WITH_NODE_OR_GO)

_LAUNCHERS = {
    "seaweedfs": launch.seaweedfs,
    "versitygw": launch.versitygw,
    "gcsd": launch.gcsd,
    "azurite": launch.azurite,
}
# SeaweedFS waits in steps of a second when writers meet; azurite is one process of JavaScript.
_CONTENTION = {
    "seaweedfs": Contention(creators=3, keys=4, workers=2, increments_each=5),
    "azurite": Contention(creators=32, keys=40, workers=16, increments_each=4),
}


def cases_of(adapter: str) -> tuple[Case, ...]:
    """The cases that mean something for a store: no network, no lost replies; no keys, no signed links."""
    if adapter in IN_PROCESS:
        return (*CASES, *NO_SIGNING_CASES)
    signing = NO_SIGNING_CASES if adapter == "gcsd" else SIGNING_CASES
    return (*CASES, *signing, *NETWORK_CASES)


@contextmanager
def grounds(adapter: str) -> Iterator[Callable[[], Ground]]:
    """Start what the store needs, give grounds on it, and stop it."""
    contention = _CONTENTION.get(adapter, Contention())
    with tempfile.TemporaryDirectory(prefix=f"arco-{adapter}-") as folder:
        if adapter == "memory":
            with ground_of(adapter, "memory://test", {}, contention) as give:
                yield give
        elif adapter == "local":
            with ground_of(adapter, folder, {}, contention) as give:
                yield give
        else:
            with (
                _LAUNCHERS[adapter](Path(folder)) as server,
                fault_proxy.running(server.endpoint) as proxy,
                ground_of(adapter, server.url, server.options, contention, proxy) as give,
            ):
                yield give
