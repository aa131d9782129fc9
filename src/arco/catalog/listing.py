"""Which names a listing holds, and in which order: pure questions to a state that somebody read."""

from dataclasses import dataclass

from arco.catalog.model import Dropped, Entry, Format, Kind, Levels
from arco.catalog.names import Names

SEPARATOR = "\x1f"
"""No name can hold it, so that joined names keep apart and sort level by level."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What is asked for. A namespace stands for itself and everything below it; None asks for all."""

    namespace: Levels | None = None
    kind: Kind | None = None
    format: Format | None = None

    def matches(self, entry: Entry) -> bool:
        levels = self.namespace or ()
        return (
            entry.namespace[: len(levels)] == levels
            and self.kind in {None, entry.kind}
            and self.format in {None, entry.format}
        )


def tables(names: Names, wanted: Filter) -> list[Entry]:
    """Tables of every format, and views, in the order of their full names."""
    if wanted.namespace is not None:
        names.namespace(wanted.namespace)
    names.need_decided(wanted.matches)
    return sorted((entry for entry in names.entries.values() if wanted.matches(entry)), key=order_of)


def dropped(names: Names, wanted: Filter) -> list[Dropped]:
    """What was dropped and can be restored, in the order of the names it had. Its namespace may be gone as well."""
    return sorted((one for one in names.dropped.values() if wanted.matches(one.entry)), key=order_of_dropped)


def namespaces(names: Names, within: Levels | None) -> list[Levels]:
    """The namespaces below one, or all."""
    levels = within or ()
    return sorted(one for one in names.namespaces if one[: len(levels)] == levels)


def order_of(entry: Entry) -> str:
    return SEPARATOR.join((*entry.namespace, entry.name))


def order_of_dropped(dropped: Dropped) -> str:
    return SEPARATOR.join((order_of(dropped.entry), dropped.drop_id))
