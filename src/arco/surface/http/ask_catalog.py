"""`GET /api/v1/catalog/…` and `/search`: one snapshot as a whole, what differs between two, and what is meant by some words."""

from typing import Annotated

from msgspec import Meta

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import SnapshotId
from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.read.diff_snapshots import SnapshotDiff, snapshot_diff
from arco.read.library import Binding
from arco.read.search import SearchAnswer, search
from arco.read.snapshot import CatalogSnapshot, catalog_snapshot
from arco.surface.http.asking import Bound, Listed, Question, Sitting, Word
from arco.surface.http.declaring import API

_Ids = Annotated[str, Meta(max_length=64 * ANSWER_PAGE_ITEMS_MAX)]


class SnapshotAsked(Listed, frozen=True, kw_only=True):
    asset_ids: Annotated[_Ids | None, Meta(description="Only these assets, by their ids with commas between them.")] = None

    @property
    def ids(self) -> tuple[str, ...]:
        """InvalidInput if there are more than a page can have."""
        found = tuple(dict.fromkeys(one for one in (self.asset_ids or "").split(",") if one))
        if len(found) > ANSWER_PAGE_ITEMS_MAX:
            raise InvalidInput(f"asset_ids has {len(found)} ids", hint=f"ask for at most {ANSWER_PAGE_ITEMS_MAX} at once")
        if self.asset_ids is not None and not found:
            raise InvalidInput("asset_ids has no ids in it", hint="leave it out for all assets")
        return found


class DiffAsked(Bound, frozen=True, kw_only=True):
    """Two snapshots: `before`, and the state that is asked for."""

    before: Annotated[str, Meta(max_length=64, description="The id of the snapshot to compare with.")]
    limit: Annotated[
        int, Meta(ge=1, le=ANSWER_PAGE_ITEMS_MAX, description="How many rows of each table are shown; all are counted.")
    ] = 100


class SearchAsked(Bound, frozen=True, kw_only=True):
    q: Annotated[str, Meta(max_length=1000, description="Words, beginnings of words, or words that are nearly right.")]
    namespace: Annotated[Word | None, Meta(description="Search in one namespace alone.")] = None
    limit: Annotated[int, Meta(ge=1, le=ANSWER_PAGE_ITEMS_MAX, description="How many hits.")] = 20


async def _snapshot(sitting: Sitting, asked: SnapshotAsked) -> CatalogSnapshot:
    return await catalog_snapshot(sitting.reader, sitting.ingestion, asked.ids, asked.window)


async def _diff(sitting: Sitting, asked: DiffAsked) -> SnapshotDiff:
    before = await sitting.library.open(Binding(snapshot_id=SnapshotId(asked.before)))
    return await snapshot_diff(before.reader, sitting.reader, limit=asked.limit)


async def _search(sitting: Sitting, asked: SearchAsked) -> SearchAnswer:
    return await search(sitting.reader, asked.q, namespace=asked.namespace, limit=asked.limit)


CATALOG_QUESTIONS = (
    Question(
        f"{API}/catalog/snapshot",
        "One snapshot: when it was published, what was folded into it, its tables, and its assets with what each has now",
        SnapshotAsked,
        CatalogSnapshot,
        _snapshot,
    ),
    Question(f"{API}/catalog/diff", "What differs between two snapshots", DiffAsked, SnapshotDiff, _diff),
    Question(f"{API}/search", "Assets and tables by words, best first", SearchAsked, SearchAnswer, _search),
)
