"""A stored root is whole, byte for byte, in the eyes of today's verification; and damage to it is seen."""

from arco.catalog.verify import verify
from arco.storage.findings import Report
from tests.compat.roots import Root, chain, with_catalog
from tests.compat.story import SCOPE


def verified(root: Root) -> Report:
    report: Report = with_catalog(root, lambda catalog: verify(catalog, deep=True))
    # The story's one snapshot names a list that nobody ever wrote.
    (missing,) = [one for one in report.findings if one.code == "snapshot_list_missing"]
    assert "elsewhere/snap-1.avro" in missing.what
    report.findings.remove(missing)
    return report


def test_a_stored_root_is_whole(root: Root) -> None:
    report = verified(root)
    assert report.findings == []
    assert report.notes == []
    assert report.counts["commits"] == len(chain(root))
    assert report.counts["state_files"] > 0


def test_a_byte_of_a_stored_commit_is_missed(root: Root) -> None:
    first = chain(root)[-1]
    path = root.folder / f"{SCOPE.warehouse}/_catalog/core/commits/{first.id}.json"
    path.write_bytes(path.read_bytes().replace(b'"sequence":1', b'"sequence": 1'))
    assert [one.code for one in verified(root).findings] == ["commit_altered"]
