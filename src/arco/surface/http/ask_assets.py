"""`GET /api/v1/assets/…`: the list, and what there is to know of one asset: its page, schemas, partitions, versions, checks."""

from typing import Annotated

from msgspec import Meta

from arco.quality.compatibility import Compatibility
from arco.read import assets, checks, partitions, schemas
from arco.read.assets import AssetLine, AssetPage, Filter
from arco.read.checks import CheckResult, LatestChecks
from arco.read.diff_schemas import SchemaDiff, schema_diff
from arco.read.diff_versions import VersionDiff, version_diff
from arco.read.pages import Page
from arco.read.partitions import Partition, Version, Versions
from arco.read.schemas import CurrentColumns, SchemaHistory
from arco.surface.http.asking import Listed, ListedOfAsset, OfAsset, PartitionName, Question, Sitting, Word
from arco.surface.http.declaring import API

ASSETS = f"{API}/assets"
ASSET = f"{ASSETS}/{{asset}}"


class Filtered(Listed, frozen=True, kw_only=True):
    """Assets that fit all of what is given; and tables that no project made, where they do."""

    namespace: Annotated[Word | None, Meta(description="This namespace, and those below it.")] = None
    tag: Annotated[Word | None, Meta(description="A tag.")] = None
    owner: Annotated[Word | None, Meta(description="An owner.")] = None
    kind: Annotated[
        Word | None, Meta(description="What makes it, such as python, sql or source; table or view where no project does.")
    ] = None
    project: Annotated[Word | None, Meta(description="The project that deploys it.")] = None
    retired: Annotated[bool, Meta(description="Also assets that were retired and tables that were dropped.")] = False

    @property
    def filter(self) -> Filter:
        return Filter(self.namespace, self.tag, self.owner, self.kind, self.project, self.retired)


class OfPartition(OfAsset, frozen=True, kw_only=True):
    partition: PartitionName


class History(ListedOfAsset, frozen=True, kw_only=True):
    check: Annotated[Word | None, Meta(description="One check, by its name or its id.")] = None


class SchemasCompared(OfAsset, frozen=True, kw_only=True):
    before: Annotated[
        str, Meta(max_length=64, description="The number of a schema of the table, or the hash of a declared one.")
    ]
    after: Annotated[str, Meta(max_length=64, description="The same for the schema to compare it with.")]
    mode: Annotated[Compatibility | None, Meta(description="Judge the change by this mode, not by the asset's.")] = None


class VersionsCompared(OfPartition, frozen=True, kw_only=True):
    before: Annotated[str, Meta(max_length=64, description="The number of a version, or its materialization id.")]
    after: Annotated[str, Meta(max_length=64, description="The same for the version to compare it with.")]


async def _assets(sitting: Sitting, asked: Filtered) -> Page[AssetLine]:
    return await assets.assets(sitting.reader, asked.filter, asked.window)


async def _asset(sitting: Sitting, asked: OfAsset) -> AssetPage:
    return await assets.asset(sitting.reader, asked.asset, sitting.now_ms)


async def _columns(sitting: Sitting, asked: OfAsset) -> CurrentColumns:
    return await schemas.current_columns(sitting.reader, asked.asset)


async def _schemas(sitting: Sitting, asked: OfAsset) -> SchemaHistory:
    return await schemas.schema_history(sitting.reader, asked.asset)


async def _schema_diff(sitting: Sitting, asked: SchemasCompared) -> SchemaDiff:
    return await schema_diff(sitting.reader, asked.asset, asked.before, asked.after, mode=asked.mode)


async def _partitions(sitting: Sitting, asked: ListedOfAsset) -> Page[Partition]:
    return await partitions.partitions(sitting.reader, asked.asset, asked.window)


async def _versions(sitting: Sitting, asked: OfPartition) -> Versions:
    return await partitions.versions(sitting.reader, asked.asset, asked.partition)


async def _version_diff(sitting: Sitting, asked: VersionsCompared) -> VersionDiff:
    return await version_diff(sitting.reader, asked.asset, asked.partition, asked.before, asked.after)


async def _materializations(sitting: Sitting, asked: ListedOfAsset) -> Page[Version]:
    return await partitions.materializations(sitting.reader, asked.asset, asked.window)


async def _checks(sitting: Sitting, asked: OfAsset) -> LatestChecks:
    return await checks.latest_checks(sitting.reader, asked.asset)


async def _check_history(sitting: Sitting, asked: History) -> Page[CheckResult]:
    return await checks.check_history(sitting.reader, asked.asset, check=asked.check, window=asked.window)


ASSET_QUESTIONS = (
    Question(ASSETS, "Assets, and tables that no project made, by name", Filtered, Page[AssetLine], _assets),
    Question(ASSET, "Everything about one asset", OfAsset, AssetPage, _asset, by_clock=True),
    Question(f"{ASSET}/columns", "The columns that it has now", OfAsset, CurrentColumns, _columns),
    Question(f"{ASSET}/schemas", "Every schema that it had, newest first", OfAsset, SchemaHistory, _schemas),
    Question(f"{ASSET}/schemas/diff", "What differs between two schemas", SchemasCompared, SchemaDiff, _schema_diff),
    Question(f"{ASSET}/partitions", "Its current partitions, by key", ListedOfAsset, Page[Partition], _partitions),
    Question(f"{ASSET}/versions", "The versions of one partition, newest first", OfPartition, Versions, _versions),
    Question(f"{ASSET}/versions/diff", "What differs between two versions", VersionsCompared, VersionDiff, _version_diff),
    Question(
        f"{ASSET}/materializations",
        "Everything that was ever published of it, newest first",
        ListedOfAsset,
        Page[Version],
        _materializations,
    ),
    Question(f"{ASSET}/checks", "The newest result of every check", OfAsset, LatestChecks, _checks),
    Question(f"{ASSET}/checks/history", "Results of checks, newest first", History, Page[CheckResult], _check_history),
)
