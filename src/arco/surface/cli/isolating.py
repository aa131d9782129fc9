"""`arco worker --isolate`: what it takes to give every task a process and keys of its own, or in one line why it cannot be had.

Everything is looked at before the worker begins: keys that tasks could find somewhere else would make those of their own worth
nothing. What must never enter: how a task is computed.
"""

import re

from arco.fold.spark_session import SparkSettings
from arco.govern.places import Validation
from arco.kernel.clock import SystemClock
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.own_memory import keep_to_ourselves
from arco.kernel.scope import Scope
from arco.servo.execute.isolated import Isolation
from arco.servo.execute.task_keys import TaskKeys
from arco.servo.execute.task_messages import ProjectSource
from arco.storage.roots import Root, parse_root
from arco.surface.cli.projects import At, ProjectFile, WorkerWords
from arco.surface.cli.running import spark_of
from arco.surface.cli.settings import PROJECT_FILE, Settings, load_settings, read_project_file, tasks_environment
from arco.surface.cli.vending import Mode, VendFlags, assume_role
from arco.surface.http.client_config import SECRETS, base_uri, without_secrets

_CONF_KEY = re.compile(r"fs\.s3[an]?\..*(access\.key|secret\.key|session\.token)$|credential", re.IGNORECASE)
_OWN_VARIABLES = ("AWS_", "ARCO_", "AZURE_", "GOOGLE_")
_FROM_ENVIRONMENT = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the worker instead"


def isolation_of(file: ProjectFile, at: At) -> Isolation:
    """How tasks are kept apart. InvalidInput, in one line, where they cannot be."""
    words, where = file.workers, file.where(at.root, at.options)
    settings = load_settings(where.root, list(where.options), where.folder)
    root = parse_root(settings.root)
    _refuse_what_is_shared(spark_of(file, at.master), root, words)
    _refuse_keys_in_sight(file, at)
    _refuse_variables(file)
    flags = VendFlags(Mode.STS, words.role, words.external_id, words.endpoint, words.duration_s)
    flags.check(root)
    keys = _keys(flags, settings, root, Scope.parse_warehouse(where.warehouse))
    if not keep_to_ourselves():
        raise InvalidInput("--isolate needs Linux: elsewhere tasks could read the keys of the worker", hint="leave it out")
    source = ProjectSource(
        folder=str(file.folder), name=file.name, namespace=file.namespace, assets=file.assets, gate=file.gate
    )
    return Isolation(source=source, keys=keys, environment=tasks_environment(words.variables))


def _refuse_what_is_shared(spark: SparkSettings, root: Root, words: WorkerWords) -> None:
    if root.kind != "s3":
        raise InvalidInput(
            f"--isolate needs a store that makes keys for one task, and {root.kind}:// is none",
            hint="use a root on s3://, or leave --isolate out",
        )
    if spark.is_connect:
        raise InvalidInput(
            f"--isolate gives every task a Spark of its own, and all tasks share {spark.place.shown}",
            hint="use a local master or a cluster, or leave --isolate out",
        )
    if words.role is None:
        raise InvalidInput(
            "--isolate needs a role whose sessions are the tasks' keys",
            hint='write vend_role = "arn:aws:iam::123456789012:role/name" under [workers] in arco.toml',
        )


def _refuse_keys_in_sight(file: ProjectFile, at: At) -> None:
    """Keys that the code of a task could read: it has the project's folder, and sees the list of processes."""
    stored = read_project_file(file.folder).get("store", {})
    if named := sorted(set(stored) & SECRETS):
        raise InvalidInput(
            f"--isolate: [store] in {PROJECT_FILE} has {named[0]}, which every task could read", hint=_FROM_ENVIRONMENT
        )
    if named := sorted({one.partition("=")[0] for one in at.options or ()} & SECRETS):
        raise InvalidInput(
            f"--isolate: {named[0]} is on the command line, which every task could read", hint=_FROM_ENVIRONMENT
        )
    if named := sorted(word for word in file.spark.conf if _CONF_KEY.search(word)):
        raise InvalidInput(
            f"--isolate: [spark] conf in {PROJECT_FILE} has {named[0]}, which every task would have",
            hint="leave it out: tasks get keys of their own",
        )


def _refuse_variables(file: ProjectFile) -> None:
    """Variables for tasks that are none, or that the worker reaches the store and signs with."""
    for name in file.workers.variables:
        if not name.isidentifier():
            raise InvalidInput(
                f"variables in {PROJECT_FILE} has {clip(name)!r}, which is no name of a variable", hint="write names alone"
            )
        if name.upper().startswith(_OWN_VARIABLES) or f"env:{name}" in file.task_keys:
            raise InvalidInput(
                f"--isolate: variables in {PROJECT_FILE} has {name}, which opens what no task is to open",
                hint="leave it out: tasks get keys of their own",
            )


def _keys(flags: VendFlags, settings: Settings, root: Root, scope: Scope) -> TaskKeys:
    known = settings.known
    return TaskKeys(
        validation=Validation(root, base_uri(root, known)),
        vendor=assume_role(flags, settings, SystemClock()),
        scope=scope,
        bucket=root.bucket,
        options_without_keys=without_secrets(known),
        duration_s=flags.duration_s,
    )
