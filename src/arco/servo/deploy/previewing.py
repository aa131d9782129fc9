"""What a plan stands on when the project was changed and not deployed: the deployment that there would be.

Identities that a deployment would draw are made of names here. So a plan of what is not deployed yet is the same each time it is
made; its task ids change once, when the project is deployed. Nothing is written.
"""

import msgspec

from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import encode_ulid
from arco.servo.deploy.deploying import Prepared
from arco.servo.deploy.manifest import DeployedAsset, Deployment

NOT_DEPLOYED = "not deployed"


def preview(prepared: Prepared) -> Deployment:
    """The deployment that counts, or the one that deploying would make."""
    if not prepared.is_news and prepared.before is not None:
        return prepared.before
    after = prepared.after
    kept = set() if prepared.before is None else {one.asset_id for one in prepared.before.assets.values()}
    kept |= {one.asset_id for one in after.retired.values()}
    assets = {
        key: one if one.asset_id in kept or one.former_keys else _named(after.project, key, one)
        for key, one in after.assets.items()
    }
    return msgspec.structs.replace(after, id=NOT_DEPLOYED, created_ms=0, assets=assets)


def _named(project: str, key: str, one: DeployedAsset) -> DeployedAsset:
    drawn = int(fingerprint("asset that is not deployed", project, key)[:32], 16) >> 3
    return msgspec.structs.replace(one, asset_id=encode_ulid(drawn))


def remarks(prepared: Prepared) -> list[str]:
    """What somebody who plans should know of the deployment, a line each."""
    if prepared.before is None:
        return ["not deployed yet: arco run deploys it"]
    if not prepared.is_news:
        return []
    said = ["code differs from the deployment: arco run deploys it"]
    if prepared.after.breaking:
        said.append(f"deploying it would be refused: {'; '.join(prepared.after.breaking)}")
    return said
