"""What Spark SQL does by itself, in what Arco knows: tables under their names, commits as external, and checked by nobody."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from .spark_session import Spark


def arco(lake: Path, *words: str) -> Any:
    command = [str(Path(sys.executable).with_name("arco")), *words, "--root", str(lake), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def _listed(lake: Path, namespace: str, *words: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = arco(lake, "assets", "--namespace", namespace, *words)["items"]
    return items


def test_what_spark_sql_commits_is_external_and_unchecked(spark: Spark, db: str, lake: Path) -> None:
    t = f"{db}.t"
    spark(f"CREATE TABLE {t} (id BIGINT, note STRING)")
    spark(f"INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    spark(f"DELETE FROM {t} WHERE id = 1")
    location = spark(f"SELECT file FROM {t}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")[0][0]
    arco(lake, "fold", "--spark", "local[1]")
    (table,) = arco(lake, "query", f"SELECT * FROM iceberg_tables WHERE metadata_location = '{location}'")["rows"]
    assert (table["asset_id"], table["total_rows"]) == (None, 1)
    assert table["external_sequence_number"] == table["sequence_number"] == 2
    asked = f"SELECT * FROM iceberg_commits WHERE table_uuid = '{table['table_uuid']}' ORDER BY commit_number"
    commits = arco(lake, "query", asked)["rows"]
    assert [one["operation"] for one in commits] == [None, "append", "delete"]
    assert {one["source"] for one in commits} == {"external"}
    assert {(one["run_id"], one["materialization_id"]) for one in commits} == {(None, None)}
    # It is there under its name, which no project gave it, until the name is gone.
    namespace = db.removeprefix("arco.")  # what Spark calls the catalog is no part of the name
    (line,) = _listed(lake, namespace)
    assert (line["asset"], line["asset_id"]) == (f"{namespace}.t", table["table_uuid"])
    assert (line["kind"], line["made_by_project"]) == ("table", False)
    assert [one["name"] for one in arco(lake, "search", "t", "--namespace", namespace)["hits"]] == [f"{namespace}.t"]
    spark(f"ALTER TABLE {t} RENAME TO {namespace}.u")
    assert [one["asset"] for one in _listed(lake, namespace, "--fresh")] == [f"{namespace}.u"]
    spark(f"DROP TABLE {db}.u")
    arco(lake, "fold", "--spark", "local[1]")
    assert _listed(lake, namespace) == []
    assert [one["retired"] for one in _listed(lake, namespace, "--retired")] == [True]
    # Nothing was checked, and no asset has it.
    for unchecked in ("quality_results", "materializations"):
        counted = arco(lake, "query", f"SELECT count(*) AS n FROM {unchecked}")["rows"]
        assert counted == [{"n": 0}]
