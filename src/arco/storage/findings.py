"""What a verification found: each finding with what is wrong and what to do about it, in one line."""

from collections.abc import Callable

import msgspec

from arco.kernel.errors import ArcoError, AskOperator, CorruptObject

Progress = Callable[[str, int, int], None]
"""Told of what is being looked at, how much of it is done, and how much there is."""


class Finding(msgspec.Struct, frozen=True):
    """`code` is stable and only ever added to; `subject` is the object or the table it is about."""

    code: str
    subject: str
    what: str
    todo: str

    def one_line(self) -> str:
        return " ".join(f"{self.what}: {self.todo}".split())


class Report:
    """Findings, what is on its way to be finished by whoever comes next, and what could not be looked at."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self._told: set[tuple[str, str]] = set()
        self.counts: dict[str, int] = {}

    @property
    def clean(self) -> bool:
        return not self.findings

    def find(self, code: str, subject: str, what: str, todo: str) -> None:
        self.findings.append(Finding(code, subject, what, todo))
        self._told.add((code, subject))

    def tells(self, code: str, subject: str) -> bool:
        """Whether this was found already."""
        return (code, subject) in self._told

    def take(self, other: "Report") -> None:
        """All that another look found."""
        for one in other.findings:
            self.find(one.code, one.subject, one.what, one.todo)
        self.notes += other.notes
        for word, number in other.counts.items():
            self.count(word, number)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def count(self, word: str, by: int = 1) -> None:
        self.counts[word] = self.counts.get(word, 0) + by


def way_out(error: ArcoError, todo: str) -> str:
    """What to do about an object that could not be read. Only damage is for a backup: over an object that a newer version
    wrote, or that the store does not show us, an older copy would itself be the damage. Then the error knows the way out.
    """
    return error.hint if isinstance(error, AskOperator) and not isinstance(error, CorruptObject) else todo


def nobody(_what: str, _done: int, _in_all: int) -> None:
    """For those who watch no progress."""
