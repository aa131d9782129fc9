"""Answers kept as bytes, plain and packed: what did not change is neither written as JSON nor packed again.

Whether an answer still holds is not decided here. That of a table is kept under the tag of one metadata file and one choice of
snapshots, a list of names under one version of the manifest, and neither ever changes: whoever asks for it has just heard from
the store that this is the current one. What must never enter: an answer that another request could make different, such as one
with credentials in it.
"""

from collections.abc import Callable, Mapping
from functools import partial

from arco.catalog.ground import Ground
from arco.kernel.kept import Kept
from arco.kernel.limits import ANSWERS_KEPT_BYTES_MAX, ANSWERS_KEPT_MAX
from arco.kernel.tallies import UNCOUNTED, Tallied, Tallies
from arco.surface.http.exchange import Again, Response
from arco.surface.http.packing import gzip_packed

_Key = tuple[str, str]


class KeptAnswers:
    """The answers that one server keeps, those asked for last, within so many and so many bytes."""

    def __init__(self, bytes_max: int = ANSWERS_KEPT_BYTES_MAX, tallies: Tallies = UNCOUNTED) -> None:
        self._bytes_max = bytes_max
        self._tallies = tallies
        self._kept: Kept[_Key, bytes] = Kept(bytes_max=bytes_max, things_max=ANSWERS_KEPT_MAX)

    @property
    def size_bytes(self) -> int:
        return self._kept.size_bytes

    def response(
        self, tag: str, make: Callable[[], bytes], headers: Mapping[str, str], ground: Ground | None = None
    ) -> Response:
        """The answer of a tag, made if it is not kept. The same request gets it again as long as its ground holds."""
        body = self._get((tag, "plain"), make)
        again = None if ground is None else partial(self._again, tag, headers, ground)
        return self._answer(tag, body, headers, again)

    def _again(self, tag: str, headers: Mapping[str, str], ground: Ground) -> Response | None:
        body = self._kept.get((tag, "plain"))
        if body is None or not ground.holds():
            return None
        self._tallies.add(Tallied.ANSWER_HIT)
        return self._answer(tag, body, headers)

    def _answer(self, tag: str, body: bytes, headers: Mapping[str, str], again: Again | None = None) -> Response:
        def packed(data: bytes) -> bytes:
            return self._get((tag, "gzip"), lambda: gzip_packed(data))

        return Response(200, body, headers, pack=packed, again=again)

    def _get(self, key: _Key, make: Callable[[], bytes]) -> bytes:
        found = self._kept.get(key)
        self._tallies.add(Tallied.ANSWER_MISS if found is None else Tallied.ANSWER_HIT)
        if found is not None:
            return found
        made = make()
        if len(made) <= self._bytes_max:
            self._kept.put(key, made, len(made))
        return made
