"""The name of an asset defined in code: `namespace.name`.

The strict pattern binds assets that code defines. Tables that other engines create may have any Iceberg name and appear by
their table uuid; nothing here is used for them.
"""

import re
from dataclasses import dataclass
from typing import Self

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import ASSET_NAME_CHARS_MAX

_PART = re.compile(rf"[a-z][a-z0-9_]{{0,{ASSET_NAME_CHARS_MAX - 1}}}")


@dataclass(frozen=True, slots=True, order=True)
class AssetKey:
    namespace: str
    name: str

    def __post_init__(self) -> None:
        for part, what in ((self.namespace, "namespace"), (self.name, "name")):
            if _PART.fullmatch(part) is None:
                raise InvalidInput(
                    f"{clip(part)!r} is not an asset {what}",
                    hint=f"a lower-case letter, then up to {ASSET_NAME_CHARS_MAX - 1} of a-z, 0-9 and _",
                )

    @classmethod
    def parse(cls, text: str) -> Self:
        namespace, dot, name = text.partition(".")
        if not dot:
            raise InvalidInput(f"{clip(text)!r} is not an asset key", hint="it must be namespace.name")
        return cls(namespace, name)

    def canonical(self) -> str:
        return f"{self.namespace}.{self.name}"

    def __str__(self) -> str:
        return self.canonical()
