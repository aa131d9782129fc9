"""Two servers on one root: what one of them remembers must never become an answer after the other has changed it."""

from typing import Any

import pytest

from .catalog_costs import PREFIX, SCHEMA, TABLES, Ground, property_commit, rename

Asked = tuple[str, str, Any]

COMMIT: Asked = ("POST", f"{TABLES}/t", property_commit("new"))
DROP: Asked = ("DELETE", f"{TABLES}/t", None)
RENAME: Asked = ("POST", f"{PREFIX}/tables/rename", rename("t", "u"))
CREATE: Asked = ("POST", TABLES, {"name": "t", "schema": SCHEMA})
MOVE_AWAY: Asked = ("POST", f"{PREFIX}/tables/rename", rename("t", "elsewhere"))
CREATE_NAMESPACE: Asked = ("POST", f"{PREFIX}/namespaces", {"namespace": ["more"]})
DROP_NAMESPACE: Asked = ("DELETE", f"{PREFIX}/namespaces/more", None)


@pytest.mark.parametrize("key", [True, False], ids=["key", "no key"])
@pytest.mark.parametrize("gone", [DROP, MOVE_AWAY], ids=["dropped", "renamed"])
@pytest.mark.parametrize("asked", [COMMIT, DROP, RENAME], ids=["commit", "drop", "rename"])
def test_a_table_that_another_server_created_anew_under_a_known_name_is_found(asked: Asked, gone: Asked, key: bool) -> None:
    ground = Ground()

    async def run() -> int:
        one, other = ground.server(), ground.server()
        await one.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
        await one.ask(*CREATE)
        assert (await other.ask("POST", f"{TABLES}/t", property_commit("old"))).status == 200
        await one.ask(*gone)
        assert (await one.ask(*CREATE)).status == 200
        return (await other.ask(*asked, key=key)).status

    assert ground.run(run()) in {200, 204}


@pytest.mark.parametrize(
    "asked",
    [CREATE_NAMESPACE, DROP_NAMESPACE, CREATE, COMMIT, RENAME, DROP],
    ids=["create namespace", "drop namespace", "create", "commit", "rename", "drop"],
)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same server", "another server"])
def test_a_request_sent_again_at_once_is_answered_alike(asked: Asked, elsewhere: bool) -> None:
    """The answer is out, and its marker not yet finished."""
    ground = Ground()

    async def run() -> tuple[Any, Any]:
        one, other = ground.server(), ground.server()
        await one.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["db"]})
        if asked is DROP_NAMESPACE:
            await one.ask(*CREATE_NAMESPACE)
        if asked not in (CREATE, CREATE_NAMESPACE):
            await one.ask(*CREATE)
        await one.settle()
        key = one.new_key()
        first = await one.ask(*asked, key=False, idempotency_key=key)
        again = await (other if elsewhere else one).ask(*asked, key=False, idempotency_key=key)
        return (first.status, first.body), (again.status, again.body)

    first, again = ground.run(run())
    assert first[0] in {200, 204}
    assert again == first
