"""Commits that Spark SQL makes by itself, in what Arco knows: there as external, and checked by nobody."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .spark_session import Spark


def arco(lake: Path, *words: str) -> Any:
    command = [str(Path(sys.executable).with_name("arco")), *words, "--root", str(lake), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(600)
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
    # Nothing was checked, and no asset has it.
    for unchecked in ("quality_results", "materializations"):
        counted = arco(lake, "query", f"SELECT count(*) AS n FROM {unchecked}")["rows"]
        assert counted == [{"n": 0}]
