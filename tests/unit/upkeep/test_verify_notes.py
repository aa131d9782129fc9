"""What upkeep notes for itself is looked at by `arco verify`, and what is damaged of it is named."""

import pytest

from arco.storage.findings import Finding, Report
from arco.storage.looking import Look
from arco.storage.port import Always
from arco.upkeep.verify_notes import verify_notes
from unit.catalog.ground import SCOPE, story
from unit.upkeep.ground import DAY_S, UpkeepGround

NOTES = "/_catalog/upkeep/"


async def noted() -> UpkeepGround:
    """A store with notes of every kind."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    await server.settle()
    (receipt,) = ground.objects("/committed/")
    await ground.store.put(receipt, b"not a receipt", Always())
    ground.later(2 * DAY_S)
    await ground.upkeep()
    return ground


async def looked_at(ground: UpkeepGround) -> Report:
    report = Report()
    await verify_notes(Look(ground.store, SCOPE, report))
    return report


@story
async def test_what_upkeep_writes_is_read_and_counted():
    ground = await noted()
    notes = ground.objects(NOTES)
    names = {key.rpartition("/")[2] for key in notes}
    assert {"clock.json", "reconcile.json", "receipts_told.json"} <= names
    report = await looked_at(ground)
    assert (report.findings, report.counts) == ([], {"upkeep_notes": len(notes)})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "no note of upkeep"),
        (b'{"format":"arco.pointer","format_version":1}', "no note of upkeep"),
        (b'{"format":"arco.upkeep_clock","format_version":2}', "format version 2"),
        (b'{"format":"arco.upkeep_clock","format_version":1,"x":"\xff"}', "does not parse"),
    ],
)
def test_a_damaged_note_is_named_with_the_way_out(data: bytes, says: str):
    @story
    async def tell() -> None:
        ground = await noted()
        (key,) = ground.objects(f"{NOTES}clock.json")
        await ground.store.put(key, data, Always())
        (finding,) = (await looked_at(ground)).findings
        assert isinstance(finding, Finding)
        assert (finding.code, finding.subject) == ("upkeep_note_unreadable", key)
        assert says in finding.what
        assert finding.todo

    tell()
