"""The governance fields as people may set them: their types, their limits, and what clearing one means.

Stored rows are read without these limits, so that a limit can change and old rows stay readable. What must never enter: who
may set a field.
"""

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from arco.catalog.model import ColumnNote, Governance, Sensitivity
from arco.iceberg.requests import check_name
from arco.iceberg.shape import Count, read_with_nulls
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import (
    COLUMN_PATH_CHARS_MAX,
    COLUMN_TYPE_CHARS_MAX,
    DESCRIPTION_CHARS_MAX,
    OWNER_CHARS_MAX,
    PII_COLUMNS_MAX,
    PII_KIND_CHARS_MAX,
    TAG_CHARS_MAX,
    TAGS_MAX,
)

_Owner = Annotated[str, Meta(min_length=1, max_length=OWNER_CHARS_MAX)]
_Description = Annotated[str, Meta(max_length=DESCRIPTION_CHARS_MAX)]
_Tag = Annotated[str, Meta(min_length=1, max_length=TAG_CHARS_MAX)]
_Tags = Annotated[tuple[_Tag, ...], Meta(max_length=TAGS_MAX)]
_ColumnPath = Annotated[str, Meta(min_length=1, max_length=COLUMN_PATH_CHARS_MAX)]
_PiiKind = Annotated[str, Meta(min_length=1, max_length=PII_KIND_CHARS_MAX)]
_PiiColumns = Annotated[dict[_ColumnPath, _PiiKind], Meta(max_length=PII_COLUMNS_MAX)]


class GovernanceForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Each field as it may be sent: absent, null to clear it, or a value."""

    owner: _Owner | UnsetType | None = UNSET
    description: _Description | UnsetType | None = UNSET
    tags: _Tags | UnsetType | None = UNSET
    sensitivity: Sensitivity | UnsetType | None = UNSET
    pii_columns: _PiiColumns | UnsetType | None = UNSET
    row_count: Count | UnsetType | None = UNSET
    size_bytes: Count | UnsetType | None = UNSET
    last_modified_ms: Count | UnsetType | None = UNSET


FIELDS = GovernanceForm.__struct_fields__


def given_fields(fields: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The fields that are given, as tier 1 keeps them; a cleared one has the value of a table of which nothing was said."""
    form = read_with_nulls(dict(fields), GovernanceForm, what)
    _check_texts(form, what)
    empty = Governance()
    given = {name: getattr(form, name) for name in FIELDS if getattr(form, name) is not UNSET}
    if given.get("tags"):
        given["tags"] = tuple(dict.fromkeys(given["tags"]))
    kept: dict[str, Any] = msgspec.to_builtins(
        {name: getattr(empty, name) if value is None else value for name, value in given.items()}
    )
    return kept


def check_columns(columns: tuple[ColumnNote, ...]) -> None:
    """The columns that somebody says a table has."""
    seen: set[str] = set()
    for place, column in enumerate(columns):
        check_name(column.name, f"columns[{place}].name")
        if not 0 < len(column.type) <= COLUMN_TYPE_CHARS_MAX:
            raise InvalidInput(
                f"columns[{place}].type: it has {len(column.type)} characters, not 1 to {COLUMN_TYPE_CHARS_MAX}"
            )
        if len(column.description or "") > DESCRIPTION_CHARS_MAX:
            raise InvalidInput(f"columns[{place}].description: it has more than {DESCRIPTION_CHARS_MAX} characters")
        _check_text(column.type, f"columns[{place}].type")
        _check_text(column.description or "", f"columns[{place}].description", "\n\t")
        if column.name in seen:
            raise InvalidInput(f"columns[{place}].name: {clip(column.name)!r} is named twice")
        seen.add(column.name)


def _check_texts(form: GovernanceForm, what: str) -> None:
    if isinstance(form.owner, str):
        _check_text(form.owner, f"{what}: owner")
    if isinstance(form.description, str):
        _check_text(form.description, f"{what}: description", "\n\t")
    for tag in form.tags or ():
        _check_text(tag, f"{what}: tags")
    for column, kind in (form.pii_columns or {}).items():
        _check_text(column + kind, f"{what}: pii_columns")


def _check_text(text: str, what: str, but: str = "") -> None:
    """What would break a line of a listing is refused."""
    bad = next((char for char in text if unicodedata.category(char) in {"Cc", "Cs"} and char not in but), None)
    if bad is not None:
        raise InvalidInput(f"{what}: it holds a control character or half a character (U+{ord(bad):04X})")
