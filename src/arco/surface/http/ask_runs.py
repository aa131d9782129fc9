"""`GET /api/v1/runs/…`: runs, their tasks, and exactly what each published."""

from typing import Annotated

from msgspec import Meta

from arco.read import runs
from arco.read.pages import Page
from arco.read.runs import Run, RunOutputs, RunPage, Task
from arco.surface.http.asking import Bound, Listed, Question, RunName, Sitting, Word
from arco.surface.http.declaring import API

RUNS = f"{API}/runs"
RUN = f"{RUNS}/{{run}}"


class RunsAsked(Listed, frozen=True, kw_only=True):
    project: Annotated[Word | None, Meta(description="Runs of one project.")] = None
    state: Annotated[Word | None, Meta(description="Runs in one state: running, succeeded, failed or cancelled.")] = None


class OfRun(Bound, frozen=True, kw_only=True):
    run: RunName


class TasksAsked(Listed, frozen=True, kw_only=True):
    run: RunName
    state: Annotated[Word | None, Meta(description="Tasks in one state, such as failed or skipped.")] = None


async def _runs(sitting: Sitting, asked: RunsAsked) -> Page[Run]:
    return await runs.runs(sitting.reader, project=asked.project, state=asked.state, window=asked.window)


async def _run(sitting: Sitting, asked: OfRun) -> RunPage:
    return await runs.run(sitting.reader, asked.run)


async def _tasks(sitting: Sitting, asked: TasksAsked) -> Page[Task]:
    return await runs.run_tasks(sitting.reader, asked.run, state=asked.state, window=asked.window)


async def _outputs(sitting: Sitting, asked: OfRun) -> RunOutputs:
    return await runs.run_outputs(sitting.reader, asked.run)


ONE_RUN = Question(RUN, "One run with its tasks", OfRun, RunPage, _run)
"""As it is folded; while it goes on, `runs.py` answers from its log."""

RUN_QUESTIONS = (
    Question(RUNS, "Runs, newest first", RunsAsked, Page[Run], _runs),
    Question(f"{RUN}/tasks", "The tasks of a run, by asset", TasksAsked, Page[Task], _tasks),
    Question(f"{RUN}/outputs", "Exactly what a run published, and what was held back", OfRun, RunOutputs, _outputs),
)
