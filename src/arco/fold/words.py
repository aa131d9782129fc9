"""The words of the search index: how a text is cut into words, and a word into trigrams.

Whoever writes the index and whoever asks it must cut alike, so it is said once. Words are compared without case and accents;
names are cut where people see a seam: `orderItems_v2` has `order`, `items`, `v2`. Browsers compute the same.
"""

import re
import unicodedata
from collections.abc import Iterator

_SEAMS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_WORD_CHARS_MAX = 64


def words_of(text: str) -> Iterator[str]:
    """The words of a text in their order, each once."""
    seen: set[str] = set()
    for found in _WORD.findall(_plain(_SEAMS.sub(" ", text))):
        word = found[:_WORD_CHARS_MAX]
        if word not in seen:
            seen.add(word)
            yield word


def trigrams_of(word: str) -> set[str]:
    """Three letters each, with two blanks before the word and one after: beginnings weigh more than ends."""
    padded = f"  {word} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


def _plain(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(one))
