"""One pass of upkeep: some jobs, one after the other, each with its report; then the ledger is told of what was done, and of
what a person should look at.

A job that fails does not keep the others from their work. Any number of processes may do the same at once: what one has deleted
another does not find.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from arco.kernel.errors import ArcoError, InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.ledger.audit_events import UPKEEP_COMPLETED, UpkeepCompleted
from arco.ledger.drafts import Draft
from arco.storage.keys import Domain, UpkeepKey, Word
from arco.storage.port import Always
from arco.upkeep.jobs import JOBS, Job
from arco.upkeep.report import Report
from arco.upkeep.store_time import store_now_ms
from arco.upkeep.sweep import Setting, Sweep

SOURCE = "arco/upkeep"
_DONE = b'{"format":"arco.upkeep_done","format_version":1}'
_TOLD = b'{"format":"arco.upkeep_told","format_version":1,"said":"%s"}'
_TOLD_AGAIN_S = 24 * 3600


def jobs_named(kinds: Sequence[str]) -> tuple[Job, ...]:
    """The jobs of these kinds, in their own order; all of them if none is named."""
    known = {job.kind: job for job in JOBS}
    strange = [kind for kind in kinds if kind not in known]
    if strange:
        raise InvalidInput(f"there is no kind {strange[0]!r} of upkeep", hint=f"one of {', '.join(known)}")
    return tuple(job for job in JOBS if job.kind in kinds) if kinds else JOBS


async def upkeep_pass(
    setting: Setting, jobs: Sequence[Job] = JOBS, told: Callable[[Report], None] | None = None
) -> list[Report]:
    """Do some jobs. `told` hears of each when it is done."""
    reports = []
    for job in jobs:
        report = await run_job(setting, job.kind, job.collect)
        if job.rhythm_s and not report.failed and not setting.dry_run and not setting.asked:
            with suppress(ArcoError):
                await setting.store.put(_note(setting, job), _DONE, Always())
        if told is not None:
            told(report)
        reports.append(report)
    return await announced(setting, reports)


async def due(setting: Setting, jobs: Sequence[Job] = JOBS) -> tuple[Job, ...]:
    """The jobs that have to be done again, for those who go on and on: some read much, and once in their rhythm is enough.

    Tables that somebody asks for are due each time: the note speaks of those that ask for themselves, and is another's perhaps.
    Nothing depends on the note: a job that is done too often, or a little late, does no harm.
    """
    if setting.asked:
        return tuple(jobs)
    return tuple([job for job in jobs if not await _is_done(setting, job)])


async def _is_done(setting: Setting, job: Job) -> bool:
    if not job.rhythm_s:
        return False
    with suppress(ArcoError):
        info = await setting.store.head(_note(setting, job))
        if info is not None:
            return await store_now_ms(setting.store, setting.scope) - info.modified_ms < job.rhythm_s * 1000
    return False


def _note(setting: Setting, job: Job) -> str:
    return str(UpkeepKey(setting.scope, Word(job.kind)))


async def run_job(setting: Setting, kind: str, collect: Callable[[Sweep], Awaitable[None]]) -> Report:
    """One job, by the store's time of its beginning. What it had done when it failed is in the report too.

    What it had decided about when it failed goes: it was proved to be garbage, whatever was wrong with what came next.
    """
    sweep: Sweep | None = None
    try:
        sweep = Sweep(setting, kind, await store_now_ms(setting.store, setting.scope))
        await collect(sweep)
        await sweep.settle()
        return sweep.tally.report()
    except ArcoError as error:
        failed = error.one_line()
        if sweep is None:
            return Report(kind=kind, dry_run=setting.dry_run, failed=failed)
        with suppress(ArcoError):
            await sweep.settle()
        return sweep.tally.report(failed)


async def announced(setting: Setting, reports: list[Report]) -> list[Report]:
    """Tell the ledger of what was really done and of what went wrong; the reports, with one more if that failed.

    A pass that found nothing says nothing, and what was wrong before is told again only after a day: there are many passes.
    """
    parts = setting.parts
    try:
        news = [one for one in reports if not one.dry_run and not one.is_well and await _is_news(setting, one)]
        told = [one for one in reports if not one.dry_run and (one.did_something or one in news)]
        if told:
            drafts = [_draft(one) for one in told]
            await parts.appender().append(Domain.AUDIT, drafts)
        for one in news:
            await setting.store.put(_told(setting, one), _said(one), Always())
    except ArcoError as error:
        return [*reports, Report(kind="ledger", dry_run=False, failed=error.one_line())]
    return reports


async def _is_news(setting: Setting, report: Report) -> bool:
    note = await setting.store.get(_told(setting, report))
    if note is None or note.data != _said(report):
        return True
    info = await setting.store.head(_told(setting, report))
    return info is None or await store_now_ms(setting.store, setting.scope) - info.modified_ms > _TOLD_AGAIN_S * 1000


def _said(report: Report) -> bytes:
    """What is wrong, for who asks whether it is the same as before. Nothing depends on it."""
    digest = fingerprint("trouble", report.kind, report.failed or "", *sorted(report.trouble))
    return _TOLD % digest.encode()


def _told(setting: Setting, report: Report) -> str:
    return str(UpkeepKey(setting.scope, Word(f"{report.kind}_told")))


def _draft(report: Report) -> Draft:
    said = UpkeepCompleted(
        kind=report.kind,
        looked_at=report.looked_at,
        deleted=report.deleted,
        bytes=report.bytes,
        changed=report.changed,
        why=report.why,
        kept=report.kept,
        oldest_s=report.oldest_s,
        youngest_s=report.youngest_s,
        trouble=report.trouble[:100],
        failed=report.failed,
    )
    return Draft(type=UPKEEP_COMPLETED, source=SOURCE, subject=report.kind, data=said.data())
