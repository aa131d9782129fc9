"""A secret that does not print itself, and a reference to one that lives elsewhere (hazard 16)."""

from dataclasses import dataclass

from arco.kernel.errors import InvalidInput


class Secret:
    """Holds a secret; only `reveal` shows it, so that logs, tracebacks and dumps cannot."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a Secret is never serialized: pass a SecretRef and resolve it where it is used")


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret is to be found: an environment variable or a mounted file. Safe to store and to print."""

    source: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "SecretRef":
        """`env:NAME` or `file:/path`. The secret itself is refused: what is written down is where it is."""
        source, colon, name = text.partition(":")
        if not colon or source not in {"env", "file"} or not name:
            raise InvalidInput("a secret is named by where it is", hint="write env:NAME or file:/run/secrets/name")
        return cls(source, name)

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"
