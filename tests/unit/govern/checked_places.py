"""Places as validation gives them, on roots whose names are as unkind as an operator can make them."""

from dataclasses import dataclass, field

from arco.govern.places import ValidatedPlace, Validation
from arco.kernel.ids import TableUuid
from arco.kernel.scope import Scope
from arco.storage.keys import Slug, table_folder
from arco.storage.roots import Root

UUID = "0193e2a4-6d6e-7c1e-9f0a-5a1c0d2e3f40"
OTHER = "0193e2a4-6d6e-7c1e-9f0a-5a1c0d2e3f41"
SCOPE = Scope.of("acme", "sales")


@dataclass(frozen=True)
class Described:
    """As much of metadata as says where a table lies."""

    location: str
    properties: dict[str, str] = field(default_factory=dict)


def base_of(root: Root) -> str:
    return f"{root.kind}://{root.bucket}{f'/{root.path}' if root.path else ''}"


def location_of(root: Root, uuid: str = UUID, slug: str = "orders") -> str:
    return f"{base_of(root)}/{table_folder(SCOPE, Slug(slug), TableUuid(uuid))}".rstrip("/")


def place_of(root: Root, uuid: str = UUID) -> ValidatedPlace:
    validation = Validation(root, base_of(root))
    return validation.table(SCOPE, uuid, Described(location_of(root, uuid)))
