"""Telling the ledger of deployments whose deployer died: whoever folds looks at the head of every project first.

The failure this prevents, in order:
  1. a process swings the head of a project and dies before it has told the ledger
  2. runs use the new deployment, and its assets are in no catalog until somebody deploys that project again
So the head keeps what is not told (`head.py`), and the fold, which runs anyway, tells it. Told by two at once it is one: ids
follow from the swing. A look without anything new is one listing, and one request a project.

What must never enter: what is told (`announcing.py`).
"""

from arco.kernel.errors import ArcoError
from arco.servo.deploy.deploying import Deployments
from arco.storage.keys import DeploymentHeadKey, parse, prefix_of
from arco.storage.paging import walk


async def tell_all(deployments: Deployments) -> int:
    """Tell what no deployer told, project by project; how many swings those were.

    A project that cannot be read does not keep the others waiting: its error is raised when they are told.
    """
    told, trouble = 0, list[ArcoError]()
    prefix = prefix_of(deployments.scope, "_catalog", "deployments", "heads")
    for key in [parse(entry.key) async for entry in walk(deployments.store, prefix)]:
        if not isinstance(key, DeploymentHeadKey):
            continue
        try:
            told += await deployments.tell(key.project)
        except ArcoError as error:
            trouble.append(error)
    if trouble:
        raise trouble[0]
    return told
