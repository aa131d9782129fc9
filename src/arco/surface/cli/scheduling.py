"""`arco schedule`: what there is, when it fires next, what is due now, and pausing."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from arco.kernel.errors import NotFound
from arco.ledger.run_state import RunState
from arco.quality.gates import exit_code
from arco.servo.deploy.deploying import Deployments
from arco.servo.deploy.manifest import DeployedSchedule, Deployment
from arco.servo.execute.pipeline import HowToRun, Pipeline
from arco.servo.execute.scheduled import ScheduledRuns, deadlines_of, known_of
from arco.servo.plan.ticks import next_ticks as ticks_after
from arco.servo.schedule.schedule_state import ScheduleState, Tick
from arco.servo.schedule.starting import Started
from arco.servo.schedule.ticking import Carried, Elsewhere, NothingToDo, Ran, Refused, Schedules
from arco.servo.sdk.cron import Cron
from arco.servo.sdk.project import Project
from arco.servo.sdk.schedules import zone
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, say_aside, when
from arco.surface.cli.projects import At, read_project
from arco.surface.cli.reasons import reason_given
from arco.surface.cli.running import at_work, drive_shown, fold_after


@dataclass(frozen=True, slots=True)
class _Desk:
    """The schedules of a project as it is written, and as far as they are."""

    project: Project
    home: Opened
    deployment: Deployment | None
    schedules: Schedules


@asynccontextmanager
async def _at(at: At) -> AsyncIterator[_Desk]:
    file = read_project(at.folder)
    project = file.load()
    async with opened(file.where(at.root, at.options)) as home:
        parts = home.catalog.parts
        deployments = Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
        schedules = Schedules(parts.tier1.store, parts.scope, project.name, parts.clock, parts.entropy)
        yield _Desk(project, home, await deployments.current(project.name), schedules)


async def list_schedules(at: At, *, json: bool) -> None:
    async with _at(at) as desk:
        known = {} if desk.deployment is None else desk.deployment.schedules
        names = sorted({*desk.project.schedules, *known})
        found = [await _described(desk, known.get(name), name) for name in names]
    if json:
        print_json(found)
    elif not found:
        say(
            'no schedules: write schedule("nightly", cron="0 2 * * *") beside your assets, or [schedules.nightly] in arco.toml'
        )
    else:
        rows = [[one["name"], one["fires"], one["next"], one["state"], one["last"], one["makes"]] for one in found]
        print_grid(["schedule", "fires", "next (UTC)", "state", "last", "makes"], rows, folds=(1, 4, 5))


async def _described(desk: _Desk, deployed: DeployedSchedule | None, name: str) -> dict[str, Any]:
    state = await desk.schedules.state(name)
    written = desk.project.schedules.get(name)
    definition = written.document() if written is not None else {} if deployed is None else deployed.definition
    fires, now_ms = definition["when"], desk.home.catalog.parts.clock.now_ms()
    following = _cron_ticks(fires, now_ms, 1) if written is not None and (state is None or state.paused is None) else []
    last = state.ended[0] if state is not None and state.ended else None
    return {
        "name": name,
        "fires": _fires(fires),
        "next": when(following[0]) if following else "",
        "state": _state(desk, deployed, name, state),
        "waiting": [] if state is None else [tick.cause for tick in state.open],
        "paused": None if state is None or state.paused is None else {"who": state.paused.who, "why": state.paused.why},
        "last": "" if last is None else " ".join(word for word in (last.outcome, last.message, last.run or "") if word),
        "makes": " ".join(definition["make"]) or ("" if fires["kind"] == "freshness" else "everything"),
        "definition": definition,
        "description": "" if written is None else written.description,
    }


def _state(desk: _Desk, deployed: DeployedSchedule | None, name: str, state: ScheduleState | None) -> str:
    written = desk.project.schedules.get(name)
    if written is None:
        return "gone with the next deployment"
    if deployed is None or deployed.version != written.version:
        return "not deployed: arco deploy"
    if state is not None and state.paused is not None:
        return f"paused by {state.paused.who}: {state.paused.why}"
    return counted(len(state.open), "tick") + " waiting" if state is not None and state.open else "ready"


def _fires(fires: dict[str, Any]) -> str:
    match fires["kind"]:
        case "cron":
            return f"{fires['cron']} {fires['timezone']}, catches up {fires['catch_up']}"
        case "source":
            return f"after commits to {', '.join(fires['sources'])}"
        case _:
            return f"to keep {', '.join(fires['assets'])} fresh"


def _cron_ticks(fires: dict[str, Any], after_ms: int, count: int) -> list[int]:
    if fires["kind"] != "cron":
        return []
    return ticks_after(Cron.parse(fires["cron"]), zone(fires["timezone"]), after_ms, count)


async def next_ticks(at: At, names: list[str], *, count: int, json: bool) -> None:
    found: list[dict[str, Any]] = []
    async with at_work(at) as (pipeline, _):
        parts, now_ms = pipeline.catalog.parts, pipeline.catalog.parts.clock.now_ms()
        schedules = Schedules(parts.tier1.store, parts.scope, pipeline.project.name, parts.clock, parts.entropy)
        for name in _chosen(names, pipeline.project.schedules):
            state = await schedules.state(name)
            if state is not None and state.paused is not None:
                say_aside(f"arco: {name} is paused by {state.paused.who}: {state.paused.why}")
                continue
            one = pipeline.project.schedules[name].document()
            fires = one["when"]
            found += [
                {"schedule": name, "at": when(tick), "at_ms": tick, "local": _local(tick, fires["timezone"])}
                for tick in _cron_ticks(fires, now_ms, count)
            ]
            if fires["kind"] == "freshness":
                found += await _begins(pipeline, name, count)
    if json:
        print_json(found)
    elif not found:
        say("nothing fires at a time: they are paused, wait for commits, or nothing of what they keep fresh is published")
    else:
        rows = [[one["schedule"], one["at"], one["local"], one.get("asset", "")] for one in found]
        print_grid(["schedule", "next (UTC)", "by its clock", "to keep fresh"], rows)


async def _begins(pipeline: Pipeline, name: str, count: int) -> list[dict[str, Any]]:
    deployment = await pipeline.deployments.current(pipeline.project.name)
    if deployment is None or name not in deployment.schedules:
        return []
    found = await deadlines_of(pipeline, deployment, deployment.schedules[name])
    return [
        {"schedule": name, "at": when(one.begin_ms), "at_ms": one.begin_ms, "local": "", "asset": str(one.asset)}
        for one in found[:count]
    ]


def _local(tick_ms: int, timezone: str) -> str:
    return datetime.fromtimestamp(tick_ms / 1000, zone(timezone)).strftime("%a %Y-%m-%d %H:%M %Z")


async def tick(at: At, names: list[str], *, parallel: int, fold: bool, json: bool) -> int:
    """Everything that is due. The exit code is the worst of its runs'."""
    async with at_work(at, goes_back=False) as (pipeline, lake):
        parts = pipeline.catalog.parts
        chosen = _chosen(names, pipeline.project.schedules)  # before anything is deployed
        deployment = await pipeline.deploy()  # schedules tick as they are deployed
        schedules = Schedules(parts.tier1.store, parts.scope, pipeline.project.name, parts.clock, parts.entropy)
        endings: list[RunState] = []
        said: list[dict[str, Any]] = []

        async def drive(started: Started) -> RunState:
            endings.append(await drive_shown(pipeline, started, json=json))
            if (asked := asyncio.current_task()) is not None and asked.cancelling():
                raise asyncio.CancelledError  # the run came to an orderly end; nothing else is to begin
            return endings[-1]

        runs = ScheduledRuns(pipeline, HowToRun(parallelism=parallel), drive)
        for name in chosen:
            one = deployment.schedules[name]
            for due, carried in await schedules.tick(one, partial(known_of, pipeline, deployment, one), runs):
                said.append(_document(name, due, carried))
                if not json:
                    say(f"{name}, {due.cause}: {said[-1]['said']}")
        if endings and fold:
            await fold_after(pipeline, lake, json=json)
    if json:
        print_json(said)
    elif not said:
        say("nothing is due")
    return max((exit_code(its.status.value for its in one.tasks.values()) for one in endings), default=0)


def _document(name: str, due: Tick, carried: Carried) -> dict[str, Any]:
    run, status, said = _outcome(carried)
    return {"schedule": name, "tick": due.id, "cause": due.cause, "run": run, "status": status, "said": said}


def _outcome(carried: Carried) -> tuple[str | None, str, str]:
    match carried:
        case Ran(run, status):
            return run, status, f"run {run} {status}"
        case NothingToDo():
            return None, "nothing to do", "nothing to do"
        case Refused(message, run):
            return run, "refused", f"refused: {message}"
        case Elsewhere(run):
            return run, "elsewhere", f"run {run} is driven elsewhere"


async def pause(at: At, name: str, why: str | None) -> None:
    async with _at(at) as desk:
        deployed = _of_deployment(desk, name)
        why = reason_given(why, "a pause", "the source is being moved")
        is_new = await desk.schedules.pause(deployed, desk.home.author.principal, why)
        say(f"{name} is paused: arco schedule resume {name} lets it go on" if is_new else f"{name} was paused before")


async def resume(at: At, name: str) -> None:
    async with _at(at) as desk:
        _of_deployment(desk, name)
        say(f"{name} goes on from now" if await desk.schedules.resume(name) else f"{name} was not paused")


def _of_deployment(desk: _Desk, name: str) -> DeployedSchedule:
    known = {} if desk.deployment is None else desk.deployment.schedules
    if name in known:
        return known[name]
    _chosen([name], {*known, *desk.project.schedules})
    raise NotFound(f"no schedule {name!r} is deployed", hint="it is written and not deployed: arco deploy")


def _chosen(names: list[str], known: Iterable[str]) -> list[str]:
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise NotFound(f"there is no schedule {unknown[0]!r}", hint=_listed(known))
    return names or sorted(known)


def _listed(known: Iterable[str]) -> str:
    return f"there are {', '.join(sorted(known))}" if list(known) else "the project has none: docs/schedules.md"
