"""What an answer about a table rests on: one version of the names, one of its pointer, and a file that is there.

As long as all of that holds, the same question has the same answer. Whether it holds is asked of the store every time, in the
same one look that a warm load takes; nothing is taken for granted because it held a moment ago. What must never enter: the
answer, and anything that waits.
"""

from dataclasses import dataclass

from arco.kernel.errors import ArcoError
from arco.kernel.tallies import Tallied, Tallies
from arco.storage.heads import Looks
from arco.storage.port import Version


@dataclass(frozen=True, slots=True)
class Ground:
    """`versions` of what is looked at, in its order; None for a file that never changes and only has to be there."""

    looks: Looks
    versions: tuple[Version | None, ...]
    tallies: Tallies

    def holds(self) -> bool:
        """Here and now. False also where that takes long or fails: whoever asks the catalog can wait, and hears why."""
        try:
            found = self.looks.now()
        except ArcoError:
            return False
        if found is None:
            return False
        for one, version in zip(found, self.versions, strict=True):
            if one is None or (version is not None and one.version != version):
                return False
        self.tallies.add(Tallied.NAMES_HIT)
        self.tallies.add(Tallied.TABLE_HIT)
        return True
