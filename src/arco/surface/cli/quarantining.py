"""`arco quarantine`: what is held back, why, and what becomes of it."""

from collections.abc import Mapping
from typing import Any

from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import clip
from arco.ledger.payloads import SERVO
from arco.ledger.quality_events import CHECK_EXECUTED, CheckExecuted
from arco.ledger.reading import events
from arco.quality.results import CheckResult
from arco.servo.execute.desk import Desk
from arco.servo.execute.desk_decisions import Verdict
from arco.servo.execute.held import Held, decisions, held_outputs, published, rows_set_aside, still_open
from arco.servo.plan.recorded import OUTPUT
from arco.storage.keys import Domain
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import print_facts, print_grid, print_json, say, when
from arco.surface.cli.projects import At
from arco.surface.cli.reasons import reason_given
from arco.surface.cli.running import where_of
from arco.surface.cli.settings import load_settings

_ASIDE = "__quarantine"
_ID_CHARS_MIN = 4


async def list_held(at: At, *, everything: bool, json: bool) -> None:
    async with opened(where_of(at)) as home:
        found = await _everything(home)
    shown = found if everything else still_open(found)
    if json:
        print_json([_document(one) for one in shown])
    elif not shown:
        say("nothing is held back" if not found else "nothing is held back any more: arco quarantine list --all")
    else:
        rows = [
            [
                one.id,
                one.asset,
                when(one.held_ms),
                one.action,
                "" if one.rows is None else f"{one.rows:,}",
                ", ".join(one.reasons),
                "" if one.settled is None else f"{one.settled.verdict} by {one.settled.who}: {one.settled.why}",
            ]
            for one in shown
        ]
        print_grid(["id", "asset", "since (UTC)", "action", "rows", "why", "settled"], rows, folds=(1, 5, 6))


async def show(at: At, name: str, *, json: bool) -> None:
    async with opened(where_of(at)) as home:
        one = _meant(await _everything(home), name)
        checks = await _checks(home, one)
    if json:
        print_json(_document(one) | {"checks": [check.document() for check in checks]})
        return
    settled = one.settled
    print_facts(
        [
            ("id", one.id),
            ("asset", one.asset),
            ("action", one.action),
            ("since", f"{when(one.held_ms)} UTC"),
            ("rows", None if one.rows is None else f"{one.rows:,}"),
            ("partitions", "; ".join(map(in_words, filter(None, one.partitions))) or None),
            ("run", one.run_id),
            ("task", one.task_id),
            ("branch", one.branch),
            ("settled", None if settled is None else f"{settled.verdict} by {settled.who}: {settled.why}"),
        ]
    )
    if checks:
        failed = [[check.check, "passed" if check.passed else "failed", check.message or ""] for check in checks]
        print_grid(["check", "", ""], failed, folds=(0, 2), paint={1: {"failed": "bold red", "passed": "green"}})
    for line in _ways_out(one):
        say(line)


async def decide(at: At, name: str, verdict: str, why: str | None, *, json: bool) -> None:
    why = reason_given(why, "a decision", "the source was mended")
    where = where_of(at)
    options = load_settings(where.root, list(where.options), where.folder).known
    async with opened(where) as home:
        one = _meant(await _everything(home), name)
        who = home.author.principal
        outcome = await Desk(home.catalog, who, options).decide(one, Verdict(verdict), who, why)
    done = outcome.decision
    if json:
        said = {"id": one.id, "verdict": done.verdict.value, "who": done.who, "why": done.why}
        print_json({**said, "snapshot_id": outcome.snapshot_id})
    elif done.verdict is Verdict.RELEASE:
        say(f"{one.asset}: released by {done.who}, as snapshot {outcome.snapshot_id} of main")
    else:
        kept = "its files go with arco upkeep" if one.what == OUTPUT else "the rows stay where they are, for the record"
        say(f"{one.asset}: discarded by {done.who}; {kept}")


async def _everything(home: Opened) -> list[Held]:
    """What was ever held back, the oldest first."""
    parts = home.catalog.parts
    # Others may say what they like of outputs; what is held back only Servo knows.
    said = [one for one in await events(parts.tier1.store, parts.scope, Domain.EXECUTION) if one.source == SERVO]
    found = held_outputs(said)
    decided, made = decisions(said), published(said)
    names = (await parts.tier1.current()).names
    for levels, name in sorted(names.entries):
        if name.endswith(_ASIDE):
            _, base = await home.catalog.tables.load(levels, name)
            found += rows_set_aside(base.metadata, decided, made)
    return sorted(found, key=lambda one: (one.held_ms, one.id))


async def _checks(home: Opened, one: Held) -> list[CheckResult]:
    parts = home.catalog.parts
    said = await events(parts.tier1.store, parts.scope, Domain.QUALITY)
    found = (CheckExecuted.of(event) for event in said if event.type == CHECK_EXECUTED and event.source == SERVO)
    results = [CheckResult.from_document(it.result) for it in found if it.materialization_id == one.materialization_id]
    return sorted(results, key=lambda result: (result.passed, result.check))


def in_words(box: Mapping[str, Any]) -> str:
    """Partitions as a document has them: a range of time without its end, or the values of a list."""
    said = []
    for name, spans in box.items():
        match spans:
            case [list(values)]:
                said.append(f"{name} {', '.join(map(str, values))}")
            case [first, end]:
                said.append(f"{name} from {first} to before {end}")
            case _:
                said.append(f"{name} {spans}")
    return ", ".join(said)


def _meant(found: list[Held], name: str) -> Held:
    """One by its id, or by the end of it where that is enough."""
    exact = [one for one in found if one.id == name] or [one for one in found if one.id.endswith(name)]
    if len(exact) == 1 and len(name) < _ID_CHARS_MIN:
        raise InvalidInput(f"{clip(name)!r} is too short for an id", hint=f"its last {_ID_CHARS_MIN} characters, or more")
    if len(exact) == 1:
        return exact[0]
    if exact:
        raise InvalidInput(f"{clip(name)!r} is the end of several", hint=f"such as {exact[0].id} and {exact[1].id}")
    raise NotFound(f"nothing that was held back is called {clip(name)!r}", hint="arco quarantine list --all")


def _ways_out(one: Held) -> list[str]:
    if one.settled is not None:
        return []
    short = one.id
    refused = "publish it though its checks refused it" if one.what == OUTPUT else "put the rows back into its table"
    ways = [
        f"  arco quarantine release {short} --why …      {refused}",
        f"  arco quarantine discard {short} --why …      give it up",
    ]
    return [*ways, f"  arco run {one.asset}      make it again, when its code or its inputs are mended"]


def _document(one: Held) -> dict[str, Any]:
    settled = one.settled
    return {
        "id": one.id,
        "what": one.what,
        "asset": one.asset,
        "asset_id": one.asset_id,
        "materialization_id": one.materialization_id,
        "run": one.run_id,
        "task": one.task_id,
        "partitions": one.partitions,
        "held_ms": one.held_ms,
        "action": one.action,
        "reasons": list(one.reasons),
        "branch": one.branch,
        "rows": one.rows,
        "settled": None
        if settled is None
        else {"verdict": settled.verdict, "who": settled.who, "why": settled.why, "at_ms": settled.at_ms},
    }
