"""What a process says to folds that do not list: one request a time, whoever else says something."""

from arco.fold.notifying import Notifier, hinted
from arco.kernel.limits import FOLD_HINTED_SEGMENTS_MAX
from arco.storage.keys import Domain
from unit.catalog.ground import story
from unit.fold.ground import SCOPE, Ground


def notifier(ground: Ground) -> Notifier:
    return Notifier(ground.store, SCOPE, ground.clock, ground.entropy)


async def said(ground: Ground) -> tuple[str, ...]:
    return await hinted(ground.store, SCOPE, Domain.ICEBERG, ground.clock, ground.entropy)


@story
async def test_a_notification_is_one_request_after_the_first():
    ground = Ground()
    process, names = notifier(ground), [await ground.append(f"a{number}") for number in range(4)]
    await process.notify(names[:1])
    assert [what for what, _ in ground.store.requests] == ["get", "put"]
    ground.store.requests.clear()
    for name in names[1:]:
        await process.notify([name])
    assert [what for what, _ in ground.store.requests] == ["put", "put", "put"]
    assert await said(ground) == tuple(names)


@story
async def test_what_others_said_meanwhile_stays():
    ground = Ground()
    one, other = notifier(ground), notifier(ground)
    names = [await ground.append(f"a{number}") for number in range(4)]
    for process, name in zip((one, other, one, other), names, strict=True):
        await process.notify([name])
    assert await said(ground) == tuple(names)


@story
async def test_the_oldest_fall_out_and_what_is_said_again_is_the_newest():
    ground = Ground()
    process, first = notifier(ground), await ground.append("a")
    names = [first.replace(first[-9:-6], f"{number:03}") for number in range(FOLD_HINTED_SEGMENTS_MAX)]
    await process.notify([first])
    await process.notify(names[:-1])
    await process.notify([first])
    await process.notify(names[-1:])
    assert await said(ground) == (*names[:-1], first, names[-1])[-FOLD_HINTED_SEGMENTS_MAX:]
