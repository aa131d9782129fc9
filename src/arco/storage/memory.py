"""A store in this process's memory: the reference for the contract suite, and the fastest root for unit tests."""

from bisect import bisect_right

from arco.kernel.clock import Clock
from arco.kernel.errors import InvalidInput
from arco.storage.port import (
    Absent,
    Always,
    Condition,
    Landed,
    Listed,
    Lost,
    Matches,
    Object,
    ObjectInfo,
    Outcome,
    Page,
    SignedMethod,
    Version,
    check_key,
    check_prefix,
    check_range,
)


class MemoryStore:
    """Objects in a dictionary. Versions are a counter, so they never repeat."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[str, Object] = {}
        self._writes = 0

    async def get(self, key: str) -> Object | None:
        return self._objects.get(check_key(key))

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        check_range(start, length)
        found = self._objects.get(check_key(key))
        return None if found is None else found.data[start : start + length]

    async def head(self, key: str) -> ObjectInfo | None:
        found = self._objects.get(check_key(key))
        return None if found is None else found.info

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        current = self._objects.get(check_key(key))
        match condition:
            case Absent() if current is not None:
                return Lost("the object exists")
            case Matches() if current is None:
                return Lost("the object does not exist")
            case Matches(version) if current is not None and current.version != version:
                return Lost("the object has another version")
            case Always() | Absent() | Matches():
                return Landed(self._store(key, data))

    def _store(self, key: str, data: bytes) -> Version:
        self._writes += 1
        version = Version(str(self._writes))
        info = ObjectInfo(key, len(data), version, self._clock.now_ms())
        self._objects[key] = Object(info, bytes(data))
        return version

    async def delete(self, key: str) -> None:
        self._objects.pop(check_key(key), None)

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        check_prefix(prefix)
        keys = sorted(key for key in self._objects if key.startswith(prefix))
        rest = keys[bisect_right(keys, after) :]
        chosen = [self._objects[key].info for key in rest[:limit]]
        entries = tuple(Listed(info.key, info.size_bytes, info.modified_ms) for info in chosen)
        return Page(entries, entries[-1].key if len(rest) > limit else None)

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        raise InvalidInput("a store in memory has no links to sign", hint="serve its files through arco serve")

    async def close(self) -> None:
        return
