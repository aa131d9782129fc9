"""The head of a project: which deployment counts, those before it, and the swings that the ledger was not told of yet."""

from typing import Any

import msgspec

from arco.kernel.errors import CorruptObject, UnknownFormat

_HISTORY_MAX = 1000


class Swing(msgspec.Struct, frozen=True):
    """One time that the head was swung. Numbers grow by one; a project's first is 1."""

    number: int
    deployment: str
    before: str | None
    at_ms: int | None = None
    by: str | None = None


class DeploymentHead(msgspec.Struct, frozen=True):
    """`history` is newest first, without what counts. `untold` are swings, oldest first."""

    deployment: str
    history: tuple[str, ...] = ()
    swings: int = 0
    untold: tuple[Swing, ...] = ()


def swung(before: DeploymentHead | None, deployment: str, at_ms: int, by: str) -> DeploymentHead:
    """The head after a swing to a deployment."""
    if before is None:
        return DeploymentHead(deployment, (), 1, (Swing(1, deployment, None, at_ms, by),))
    earlier = (before.deployment, *before.history)
    number = before.swings + 1
    return DeploymentHead(
        deployment,
        tuple(one for one in earlier if one != deployment)[:_HISTORY_MAX],
        number,
        (*before.untold, Swing(number, deployment, before.deployment, at_ms, by)),
    )


class HeadCodec:
    format = "arco.deployment_head"

    def encode(self, value: DeploymentHead) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> DeploymentHead:
        if format_version != 1:
            raise UnknownFormat(f"the head of a project has format version {format_version}")
        try:
            found = msgspec.convert(fields, DeploymentHead)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"the head of a project has wrong fields: {error}") from error
        if found.swings:
            return found
        # Written before swings were counted: nothing of it was told.
        return msgspec.structs.replace(found, swings=1, untold=(Swing(1, found.deployment, None),))
