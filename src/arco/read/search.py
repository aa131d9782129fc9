"""Search: ranked, by words, beginnings of words and words spelled wrongly, in one namespace or everywhere.

First the words of the index that are meant are found through their trigrams, then what has them, best first. The index only
grows: a word that an asset no longer has still stands there. So every hit is held against what the asset is now, and dropped if
the word is gone. A search in one namespace reads the files of that namespace's bucket and no others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.fold.tables import POSTINGS, TRIGRAMS
from arco.fold.words import trigrams_of, words_of
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.read.answers import Answer
from arco.read.reader import Reader
from arco.read.subjects import Standing, standing_subjects
from arco.read.views import text

_QUERY_WORDS_MAX = 8
_MEANT_MAX = 200
_PREFIX, _TYPO = 0.7, 0.4
_SPARE, _ROUNDS_MAX = 10, 20


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was found. `matched` are the words of the index, after the fields that have them."""

    id: str
    kind: str
    name: str
    namespace: str
    score: float
    matched: tuple[str, ...]
    description: str | None
    owners: tuple[str, ...]
    tags: tuple[str, ...]


class SearchAnswer(Answer, frozen=True, kw_only=True):
    """Best first. `corrected` says which words were taken for which."""

    query: str
    namespace: str | None
    hits: tuple[Hit, ...]
    corrected: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Meant:
    """A word of the index that a word of the query may mean, and how well it fits."""

    number: int
    word: str
    fits: float


async def search(reader: Reader, query: str, *, namespace: str | None = None, limit: int = 20) -> SearchAnswer:
    """What is meant by some words, best first."""
    words = list(words_of(query))[:_QUERY_WORDS_MAX]
    if not words:
        raise InvalidInput("there is no word to search for", hint="write a part of a name, a tag, an owner or a column")
    if not 1 <= limit <= ANSWER_PAGE_ITEMS_MAX:
        raise InvalidInput(f"limit={limit} is not between 1 and {ANSWER_PAGE_ITEMS_MAX}")
    meant = await _meant(reader, words, namespace)
    hits: list[Hit] = []
    size = limit + _SPARE
    for begin in range(0, size * _ROUNDS_MAX, size):
        candidates = await _candidates(reader, meant, namespace, size, begin) if meant else []
        standing = await standing_subjects(reader, candidates)
        hits += [hit for row in candidates if (hit := _hit(row, standing.get((row["namespace"], row["subject_id"]))))]
        if len(hits) >= limit or len(candidates) < size:
            break
    corrected: dict[str, tuple[str, ...]] = {}
    for one in meant:
        if not one.word.startswith(words[one.number]):
            corrected[words[one.number]] = (*corrected.get(words[one.number], ()), one.word)
    return SearchAnswer(
        snapshot_id=reader.cut.snapshot_id,
        query=query,
        namespace=namespace,
        hits=tuple(hits[:limit]),
        corrected=corrected,
    )


async def _meant(reader: Reader, words: list[str], namespace: str | None) -> list[_Meant]:
    """Words of the index for each word of the query: itself and what it begins; else what is spelled nearly so."""
    relation = await reader.relation(TRIGRAMS, namespace)
    asked = ", ".join(
        f"({number}, {text(word)}, {text(trigram)}, {len(trigrams_of(word))}, {1 if len(word) <= 5 else 2})"
        for number, word in enumerate(words)
        for trigram in sorted(trigrams_of(word))
    )
    grams = ", ".join(sorted({text(trigram) for word in words for trigram in trigrams_of(word)}))
    rows = await reader.rows(
        f"""SELECT number, asked, word, CASE WHEN starts_with(word, asked) THEN 0 ELSE damerau_levenshtein(word, asked) END AS off
            FROM (SELECT DISTINCT trigram, word FROM {relation} WHERE trigram IN ({grams})) found
            JOIN (VALUES {asked}) AS q(number, asked, trigram, grams, most) USING (trigram)
            GROUP BY number, asked, word, grams, most
            HAVING starts_with(word, asked) OR (count(*) >= 0.3 * grams AND damerau_levenshtein(word, asked) <= most)
            ORDER BY number, off, length(word), word"""
    )
    return [one for number, word in enumerate(words) for one in _chosen(number, word, rows)]


def _chosen(number: int, word: str, rows: list[dict[str, Any]]) -> Iterator[_Meant]:
    here = [row for row in rows if row["number"] == number]
    begun = [row for row in here if row["word"].startswith(word)]
    nearest = [row for row in here if row["off"] == here[0]["off"]]
    for row in (begun or nearest)[:_MEANT_MAX]:
        found = row["word"]
        if begun:
            fits = 1.0 if found == word else _PREFIX * len(word) / len(found)
        else:
            fits = _TYPO * (1 - row["off"] / max(len(word), len(found)))
        yield _Meant(number, found, fits)


async def _candidates(
    reader: Reader, meant: list[_Meant], namespace: str | None, size: int, begin: int
) -> list[dict[str, Any]]:
    """What has the words, by how many words of the query it has, then by how well."""
    relation = await reader.relation(POSTINGS, namespace)
    values = ", ".join(f"({one.number}, {text(one.word)}, {one.fits!r})" for one in meant)
    words = f"word IN ({', '.join(sorted({text(one.word) for one in meant}))})"
    ranked = await reader.rows(
        f"""WITH best AS (
                SELECT number, namespace, subject_id, min(subject) AS subject, max(weight * fits) AS fits
                FROM (SELECT namespace, word, subject_id, subject, weight FROM {relation} WHERE {words})
                JOIN (VALUES {values}) AS m(number, word, fits) USING (word) GROUP BY number, namespace, subject_id)
            SELECT namespace, subject_id, count(*) AS words, sum(fits) AS score FROM best GROUP BY namespace, subject_id
            ORDER BY words DESC, score DESC, min(subject), subject_id LIMIT {size} OFFSET {begin}"""
    )
    ids = ", ".join(text(row["subject_id"]) for row in ranked) or "NULL"
    places = await reader.rows(
        f"""SELECT namespace, subject_id, any_value(subject_kind) AS subject_kind, any_value(subject) AS subject,
            list(field || ':' || word) AS places FROM {relation} WHERE {words} AND subject_id IN ({ids})
            GROUP BY namespace, subject_id"""
    )
    found = {(row["namespace"], row["subject_id"]): row for row in places}
    return [row | found[row["namespace"], row["subject_id"]] for row in ranked]


def _hit(row: dict[str, Any], now: Standing | None) -> Hit | None:
    """The hit, if what it was found by still stands."""
    if now is None:
        return None
    matched = sorted({place for place in row["places"] if now.has(*place.split(":", 1))})
    if not matched:
        return None
    return Hit(
        id=row["subject_id"],
        kind=row["subject_kind"] or "asset",
        name=now.name,
        namespace=row["namespace"],
        score=round(row["score"], 4),
        matched=tuple(matched),
        description=now.description,
        owners=now.owners,
        tags=now.tags,
    )
