"""`arco runs take`: start what was asked for from outside, and drive it to its end, one run after the other."""

import asyncio
from typing import Any

from arco.ledger.run_state import RunState
from arco.quality.gates import exit_code
from arco.servo.execute.asking import start_asked
from arco.surface.cli.printing import print_json, say
from arco.surface.cli.projects import At
from arco.surface.cli.running import at_work, drive_shown, fold_after


async def take(at: At, *, json: bool) -> int:
    """Everything that waits now. The exit code is the worst of its runs'."""
    endings: list[RunState] = []
    said: list[dict[str, Any]] = []
    async with at_work(at) as (pipeline, lake):
        for started in await start_asked(pipeline):
            endings.append(await drive_shown(pipeline, started, json=json))
            said.append({"run": str(started.log.run), "status": endings[-1].run.status.value})
            if not json:
                say(f"run {started.log.run} {endings[-1].run.status.value}")
            if (task := asyncio.current_task()) is not None and task.cancelling():
                break  # the run came to an orderly end; the others wait for the next who takes them
        if endings:
            await fold_after(pipeline, lake, json=json)
    if json:
        print_json(said)
    elif not said:
        say("nothing that was asked for is to be run: POST /api/v1/runs/trigger asks for a run")
    return max((exit_code(its.status.value for its in one.tasks.values()) for one in endings), default=0)
