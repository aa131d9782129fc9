"""The tenant and workspace that all names, keys and permissions live in.

A scope's names are strict because they become the first two segments of every object name and one segment of a URL:
no dot (it separates them in the REST prefix), no slash, no upper case, nothing an operating system or a policy language
reads as a pattern.
"""

import re
from dataclasses import dataclass
from typing import Self

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import Identifier, clip

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?")
_FORM = "1 to 63 of a-z, 0-9, _ and -, starting and ending with a letter or digit"


class TenantName(Identifier):
    __slots__ = ()
    what = "tenant name"
    pattern = _NAME
    form = _FORM


class WorkspaceName(Identifier):
    __slots__ = ()
    what = "workspace name"
    pattern = _NAME
    form = _FORM


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Where a caller is. Code above storage can only make names inside its scope."""

    tenant: TenantName
    workspace: WorkspaceName

    @classmethod
    def of(cls, tenant: str = "default", workspace: str = "default") -> Self:
        return cls(TenantName(tenant), WorkspaceName(workspace))

    @classmethod
    def parse_warehouse(cls, text: str) -> Self:
        """The `warehouse` of an Iceberg client: `tenant/workspace`."""
        return cls._split(text, "/", "warehouse")

    @classmethod
    def parse_prefix(cls, text: str) -> Self:
        """The prefix of a REST route: `tenant.workspace`, one path segment."""
        return cls._split(text, ".", "prefix")

    @classmethod
    def _split(cls, text: str, separator: str, what: str) -> Self:
        parts = text.split(separator)
        if len(parts) != 2:
            raise InvalidInput(f"{clip(text)!r} is not a {what}", hint=f"it must be tenant{separator}workspace")
        return cls.of(*parts)

    @property
    def warehouse(self) -> str:
        return f"{self.tenant}/{self.workspace}"

    @property
    def prefix(self) -> str:
        return f"{self.tenant}.{self.workspace}"
