"""Files of a publish, where they were few: told in its event, folded, and shown with the partition that they are of."""

from pathlib import Path
from typing import Any

from arco.fold.file_table import FILES
from arco.ledger.execution_events import ColumnFacts, FileFacts
from arco.read.partitions import versions
from arco.storage.keys import Domain
from unit.read.test_read_library import ASSET, made
from unit.read.test_read_plain_tables import Ground, run

TWO_DAYS = [{"date": ["2025-01-01", "2025-01-03"]}]
TOTAL = ColumnFacts(column="total", nulls=1, lower="2", upper="30")


def file(path: str, day: str | None) -> FileFacts:
    return FileFacts(path=path, rows=5, bytes=100, partition={"date": day}, columns=(TOTAL,))


def published(name: str, *files: FileFacts, **more: Any) -> Any:
    draft = made(name)
    counts = [{"partition": dict(one.partition), "rows": 5, "files": 1, "bytes": 100} for one in files]
    words = {"partitions": TWO_DAYS, "counts": counts, "file_stats": [_plain(one) for one in files], "files": len(files)}
    draft.data.update(words | more)
    return draft


def _plain(one: FileFacts) -> dict[str, Any]:
    column = {"column": TOTAL.column, "nulls": TOTAL.nulls, "lower": TOTAL.lower, "upper": TOTAL.upper}
    return {"path": one.path, "rows": one.rows, "bytes": one.bytes, "partition": one.partition, "columns": [column]}


def test_the_files_of_the_current_version_are_shown_with_their_partition(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.deploy("shop.orders", ASSET)
        first = published("m1", file("a", "2025-01-01"), file("b", "2025-01-02"), sequence_number=1)
        await ground.ledger.append(Domain.EXECUTION, [first])
        for reader in (await ground.reader(fresh=True), None):
            if reader is None:
                await ground.fold()
                reader = await ground.reader()  # noqa: PLW2901 - the same of what is folded
            found = await versions(reader, "shop.orders", "date=d:2025-01-02")
            (one,) = found.files
            assert (one.path, one.rows, one.bytes) == ("b", 5, 100)
            assert one.columns == [{"column": "total", "nulls": 1, "lower": "2", "upper": "30"}]
        # The next version wrote ten files or more: of those nothing is told, and the files before are not its files.
        await ground.ledger.append(Domain.EXECUTION, [published("m2", sequence_number=2, published_ms=9, files=12)])
        await ground.fold()
        found = await versions(await ground.reader(), "shop.orders", "date=d:2025-01-02")
        assert ([one.materialization_id for one in found.versions], found.files) == (["m2", "m1"], ())

    run(test, tmp_path)


def test_a_file_of_a_table_that_is_laid_out_otherwise_is_of_no_partition(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.deploy("shop.orders", ASSET)
        await ground.ledger.append(Domain.EXECUTION, [published("m1", file("a", None))])
        await ground.fold()
        found = await versions(await ground.reader(), "shop.orders", "date=d:2025-01-01")
        assert (found.files, found.versions[0].rows) == ((), None), "a null in a dimension of time is no partition"
        rows = await (await ground.reader()).rows(
            f"SELECT path, partition_id FROM {await (await ground.reader()).relation(FILES)}"
        )
        assert rows == [{"path": "a", "partition_id": None}]

    run(test, tmp_path)
