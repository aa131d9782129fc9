"""Servers on one store, and upkeep beside them, for tests that say which request meets what."""

from collections.abc import Collection, Sequence

from arco.kernel.errors import ArcoError
from arco.storage.port import Object, ObjectInfo, Version
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.report import Report
from arco.upkeep.sweep import Setting
from unit.catalog.ground import Ground, Server

HOUR_S = 3600
DAY_S = 24 * HOUR_S


def put_by_client(ground: "UpkeepGround", key: str) -> None:
    """What a client writes to a bucket by itself, under a name of which Arco makes none."""
    info = ObjectInfo(key, 4, Version("of a client"), ground.clock.now_ms())
    ground.store._objects[key] = Object(info, b"rows")


def mark_folder(ground: "UpkeepGround", folder: str) -> None:
    """An empty object whose name ends in a slash, as a listing of a bucket shows it: without."""
    info = ObjectInfo(folder, 0, Version("of a client"), ground.clock.now_ms())
    ground.store._objects[f"{folder}/"] = Object(info, b"")


class UpkeepGround(Ground):
    def later(self, seconds: float) -> None:
        self.clock.at_ms += round(seconds * 1000)

    async def upkeep(
        self, *kinds: str, by: Server | None = None, dry_run: bool = False, asked: Collection[str] = ()
    ) -> dict[str, Report]:
        """One pass of a process of its own. A job that fails is an error here."""
        keeper = by or self.server()
        reports = await upkeep_pass(Setting(keeper.ws, dry_run=dry_run, asked=frozenset(asked)), jobs_named(kinds))
        failed = [report.failed for report in reports if report.failed]
        if failed:
            raise ArcoError(failed[0])
        return {report.kind: report for report in reports}

    def objects(self, part: str = "") -> list[str]:
        return sorted(key for key in self.store._objects if part in key)

    def gone(self, keys: Sequence[str]) -> bool:
        return not any(key in self.objects() for key in keys)
