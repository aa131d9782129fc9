"""Words that things are found by, and the three letters of each: the same for the fold, for readers and for browsers.

A name is split where its case changes, at digits, and at everything that is no letter; the whole of it is a word too. Words are
in lower case. What must never enter: stemming, stop words, any list of a language.
"""

import re
from collections.abc import Iterator

WORD_CHARS_MAX = 64
WORDS_OF_A_TEXT_MAX = 500

_SPLIT = re.compile(r"[^\W\d_]+|\d+")
_CASE = re.compile(r"(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-ZÀ-ÖØ-Þ])(?=[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ])")


def words_of_name(name: str) -> list[str]:
    """The last part of a dotted name as a whole, then the pieces of all parts; each once."""
    return list(dict.fromkeys([_short(name.rpartition(".")[2]), *_pieces(name)]))


def words_of_text(text: str) -> list[str]:
    """The words of a sentence, each once, as far as they are kept."""
    return list(dict.fromkeys(_pieces(text)))[:WORDS_OF_A_TEXT_MAX]


def trigrams(word: str) -> list[str]:
    """Three letters at a time, with a space before and after the word: `ord` has ` or`, `ord` and `rd `."""
    padded = f" {word} "
    return list(dict.fromkeys(padded[at : at + 3] for at in range(max(1, len(padded) - 2))))


def _pieces(text: str) -> Iterator[str]:
    for found in _SPLIT.findall(text):
        pieces = [piece for piece in _CASE.split(found) if piece]
        for piece in pieces:
            yield _short(piece)
        if len(pieces) > 1:
            yield _short(found)


def _short(word: str) -> str:
    return word.lower()[:WORD_CHARS_MAX]
