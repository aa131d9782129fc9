"""A transaction of a hundred tables through a real server that was told to take so many."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from .arco_server import arco_server

TABLES = [f"t{number}" for number in range(100)]
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


def ask(address: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{address}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(asked) as reply:
            said = reply.read()
            return reply.status, json.loads(said) if said else None
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def change(table: str, value: str, *requirements: dict[str, Any]) -> dict[str, Any]:
    return {
        "identifier": {"namespace": ["db"], "name": table},
        "requirements": list(requirements),
        "updates": [{"action": "set-properties", "updates": {"p": value}}],
    }


def values(address: str, prefix: str) -> set[str | None]:
    """What the tables say, all of them at one moment, and each by itself."""
    names = [{"namespace": ["db"], "name": table} for table in TABLES]
    status, cut = ask(address, "POST", "/api/v1/tables/together", {"tables": names})
    assert (status, len(cut["tables"])) == (200, 100)
    loads = [ask(address, "GET", f"{prefix}/namespaces/db/tables/{table}")[1] for table in TABLES]
    assert [one["metadata_location"] for one in cut["tables"]] == [one["metadata-location"] for one in loads]
    return {one["metadata"]["properties"].get("p") for one in loads}


def test_a_hundred_tables_change_at_once_where_the_server_says_so(tmp_path: Path) -> None:
    with arco_server(tmp_path / "lake", "--transaction-tables", "100") as served:
        address = served.rstrip("/").removesuffix("/iceberg")
        prefix = "/iceberg/v1/default.default"
        assert ask(address, "POST", f"{prefix}/namespaces", {"namespace": ["db"]})[0] == 200
        for table in TABLES:
            assert ask(address, "POST", f"{prefix}/namespaces/db/tables", {"name": table, "schema": SCHEMA})[0] == 200
        path = f"{prefix}/transactions/commit"
        assert ask(address, "POST", path, {"table-changes": [change(table, "1") for table in TABLES]}) == (204, None)
        assert values(address, prefix) == {"1"}
        never = {"type": "assert-current-schema-id", "current-schema-id": 77}
        changes = [change(table, "2") for table in TABLES[:-1]]
        assert ask(address, "POST", path, {"table-changes": [*changes, change(TABLES[-1], "2", never)]})[0] == 409
        assert values(address, prefix) == {"1"}
        changes = [change(table, "3") for table in (*TABLES, "one_more")]
        status, said = ask(address, "POST", path, {"table-changes": changes})
        assert (status, "more than 100" in said["error"]["message"]) == (400, True)
