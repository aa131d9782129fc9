"""The floor for the benchmark of reads: the same rows as tables with indexes in a DuckDB file, asked in plain SQL."""

from pathlib import Path
from typing import Any

import duckdb

from arco.fold.words import words_of_text
from arco.read.cut import Cut

INDEXES = {
    "assets": ("asset", "asset_id"),
    "partitions": ("asset_id",),
    "materializations": ("asset_id",),
    "held_outputs": ("asset_id",),
    "quality_results": ("asset_id",),
    "runs": ("run_id",),
    "tasks": ("run_id", "asset_id"),
    "lineage_edges": ("source_id", "target_id"),
    "iceberg_tables": ("asset_id",),
    "postings": ("word",),
    "trigrams": ("trigram",),
}
"""What the questions ask. Lineage executions are in none of them."""


def opened(cut: Cut, folder: Path) -> "Floor":
    """The database of a world, made if it is not there yet."""
    place = folder / "floor.duckdb"
    made = place.exists()
    session = duckdb.connect(str(place))
    session.execute("SET memory_limit='4GB'")
    if not made:
        for table, columns in INDEXES.items():
            if table in cut.tables:
                session.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{folder}/{table}-*.parquet')")
                for column in columns:
                    session.execute(f"CREATE INDEX {table}_{column} ON {table}({column})")
        session.execute("CHECKPOINT")
    return Floor(session)


class Floor:
    """The questions as a service on a database would ask them."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def _ask(self, sql: str, *values: Any) -> list[Any]:
        found: list[Any] = self._session.execute(sql, values or None).fetchall()
        return found

    def page(self, name: str) -> Any:
        (row,) = self._ask("SELECT * FROM assets WHERE asset = ?", name)
        asset_id = row[1]
        return (
            row,
            self._ask("SELECT * FROM iceberg_tables WHERE asset_id = ?", asset_id),
            self._ask(
                """SELECT table_uuid, count(*), sum(rows), sum(bytes), min(partition_key), max(partition_key), max(published_at)
                   FROM partitions WHERE asset_id = ? GROUP BY table_uuid""",
                asset_id,
            ),
            self._ask(
                """SELECT * FROM quality_results WHERE asset_id = ?
                   QUALIFY row_number() OVER (PARTITION BY check_id ORDER BY checked_at DESC) = 1""",
                asset_id,
            ),
            self._ask("SELECT * FROM held_outputs WHERE asset_id = ?", asset_id),
            self._ask("SELECT * FROM tasks WHERE asset_id = ? ORDER BY run_id DESC LIMIT 1", asset_id),
        )

    def lineage(self, name: str) -> Any:
        return self._ask(
            """WITH RECURSIVE above(id, depth) AS (
                 SELECT asset_id, 0 FROM assets WHERE asset = ?
                 UNION SELECT e.source_id, a.depth + 1 FROM above a JOIN lineage_edges e ON e.target_id = a.id WHERE a.depth < 10)
               SELECT e.*, a.depth FROM (SELECT id, min(depth) AS depth FROM above GROUP BY id) a
               JOIN lineage_edges e ON e.target_id = a.id WHERE a.depth < 10""",
            name,
        )

    def explain(self, name: str) -> Any:
        page = self.page(name)
        last = page[-1]
        recent = self._ask(
            "SELECT * FROM materializations WHERE asset_id = ? ORDER BY published_at DESC LIMIT 10", page[0][1]
        )
        if not last or last[0][8] == "succeeded":
            return page, recent
        return (
            page,
            recent,
            self._ask(
                """WITH RECURSIVE waiting(id, state, depth) AS (
                     SELECT t.asset_id, t.state, 0 FROM tasks t WHERE t.run_id = $1 AND t.asset_id = $2
                     UNION SELECT t.asset_id, t.state, w.depth + 1 FROM waiting w
                     JOIN lineage_edges e ON e.target_id = w.id
                     JOIN (SELECT * FROM tasks WHERE run_id = $1) t ON t.asset_id = e.source_id
                     WHERE w.state = 'skipped' AND t.state <> 'succeeded' AND w.depth < 20)
                   SELECT w.id, min(w.depth), h.reasons FROM waiting w LEFT JOIN held_outputs h ON h.asset_id = w.id
                   WHERE w.state <> 'skipped' GROUP BY ALL""",
                last[0][1],
                page[0][1],
            ),
        )

    def search(self, query: str, namespace: str | None = None) -> Any:
        where = "" if namespace is None else f" AND namespace = '{namespace}'"
        found = []
        for word in words_of_text(query):
            found = self._ask(
                f"""SELECT subject_id, any_value(subject), sum(weight) AS score FROM postings
                    WHERE word >= $1 AND word < $1 || chr(65535){where} GROUP BY subject_id ORDER BY score DESC LIMIT 50""",
                word,
            )
            if not found:
                near = self._ask(
                    f"""SELECT word FROM trigrams WHERE trigram IN (SELECT substr(' ' || $1 || ' ', i, 3) FROM
                        range(1, length($1) + 1) AS r(i)){where}
                        GROUP BY word HAVING damerau_levenshtein(word, $1) <= 2 LIMIT 5""",
                    word,
                )
                for (one,) in near:
                    found = self._ask(
                        f"SELECT subject_id, subject, weight FROM postings WHERE word = ?{where} LIMIT 50", one
                    )
        ids = [row[0] for row in found[:20]]
        return self._ask("SELECT * FROM assets WHERE list_contains(?, asset_id)", ids) if ids else []
