"""The name of what a task of a run publishes: derived, so that everybody who looks at the run finds the same.

It is in the summary of the snapshot, in the name of the folder that its files are written to, and in the names of its manifests.
"""

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import MaterializationId, RunId, TaskId, encode_ulid

MATERIALIZATION = "arco.materialization-id"
"""The word of a snapshot's summary that says which materialization made it."""

INPUT_SNAPSHOTS = "arco.input-snapshots"
"""The word that says which snapshots it read: only what a task published has it."""

_HASH_BITS = 80
_HELD = "held-"


def materialization_id(run: RunId, task: TaskId) -> MaterializationId:
    """One for all attempts of a task in a run: an attempt that finds it in the table's history has nothing left to do."""
    drawn = int(fingerprint("materialization", run, task)[:20], 16)
    return MaterializationId(encode_ulid(run.time_ms << _HASH_BITS | drawn))


def held_branch(made: MaterializationId) -> str:
    """The branch of an output that was held back. It is there until somebody decides: every decision takes it away."""
    return f"{_HELD}{made}"


def is_held_branch(name: str) -> bool:
    try:
        return name == held_branch(MaterializationId(name.removeprefix(_HELD)))
    except InvalidInput:
        return False
