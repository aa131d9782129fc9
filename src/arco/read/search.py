"""Search: ranked, by words, beginnings of words and words spelled wrongly, in one namespace or everywhere.

First the words of the index that are meant are found, by how they begin or by their trigrams, then what has them, best first.
The index only grows: a word that an asset no longer has still stands there. So every hit is held against what the asset is now,
and dropped if the word is gone. A search in one namespace reads the files of that namespace's bucket; and, where people said
something of tables by their identity, the bucket of that.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from arco.fold.search_tables import POSTINGS, TRIGRAMS
from arco.fold.shredding_search import ANYWHERE
from arco.fold.vocabulary import Table
from arco.fold.words import trigrams, words_of_text
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.read.answers import Answer
from arco.read.plain_tables import plain_tables
from arco.read.reader import Reader
from arco.read.subjects import standing_subjects
from arco.read.views import text

_QUERY_WORDS_MAX = 8
_MEANT_MAX = 50
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
    words = words_of_text(query)[:_QUERY_WORDS_MAX]
    if not words:
        raise InvalidInput("there is no word to search for", hint="write a part of a name, a tag, an owner or a column")
    if not 1 <= limit <= ANSWER_PAGE_ITEMS_MAX:
        raise InvalidInput(f"limit={limit} is not between 1 and {ANSWER_PAGE_ITEMS_MAX}")
    meant = await _meant(reader, words, namespace)
    hits: list[tuple[int, Hit]] = []
    size = limit + _SPARE
    for begin in range(0, size * _ROUNDS_MAX, size):
        candidates = await _candidates(reader, meant, namespace, size, begin) if meant else []
        hits += await _standing_hits(reader, candidates, meant, namespace)
        if len(hits) >= limit or len(candidates) < size:
            break
    hits.sort(key=lambda one: (-one[0], -one[1].score, one[1].name, one[1].id))
    corrected: dict[str, tuple[str, ...]] = {}
    for one in meant:
        if not one.word.startswith(words[one.number]):
            corrected[words[one.number]] = (*corrected.get(words[one.number], ()), one.word)
    return SearchAnswer(
        snapshot_id=reader.cut.snapshot_id,
        query=query,
        namespace=namespace,
        hits=tuple(hit for _, hit in hits[:limit]),
        corrected=corrected,
    )


async def _meant(reader: Reader, words: list[str], namespace: str | None) -> list[_Meant]:
    """Words of the index for each word of the query: itself and what it begins; else what is spelled nearly so."""
    known = await _words(reader, namespace)
    begun = await _begun(reader, known, words)
    found: list[_Meant] = []
    for number, word in enumerate(words):
        if here := [one for one in begun if one.startswith(word)][:_MEANT_MAX]:
            found += [_Meant(number, one, 1.0 if one == word else _PREFIX * len(word) / len(one)) for one in here]
        else:
            found += [_Meant(number, one, fits) for one, fits in await _near(reader, known, word)]
    return found


async def _words(reader: Reader, namespace: str | None) -> str:
    """Every word of the index once, as a relation. Those of everywhere are asked for often and are few: they are held."""

    async def select() -> str:
        return f"SELECT DISTINCT word FROM {await reader.relation(TRIGRAMS, _spaces(reader, TRIGRAMS, namespace))}"

    return await reader.kept("words", select) if namespace is None else f"({await select()})"


def _spaces(reader: Reader, table: Table, namespace: str | None) -> list[str] | None:
    """Where the index is looked at for a namespace: there, and where there is something said of tables wherever they are."""
    if namespace is None:
        return None
    return [namespace, ANYWHERE] if reader.may_have(table, [ANYWHERE]) else [namespace]


async def _begun(reader: Reader, known: str, words: list[str]) -> list[str]:
    """The words of the index that begin with one of these, shortest first."""
    fitting = " OR ".join(f"starts_with(word, {text(word)})" for word in words)
    rows = await reader.rows(
        f"""SELECT word FROM {known} WHERE {fitting}
            ORDER BY length(word), word LIMIT {_MEANT_MAX * len(words) * 4}"""
    )
    return [row["word"] for row in rows]


async def _near(reader: Reader, known: str, word: str) -> list[tuple[str, float]]:
    """The words of the index that are nearest to a word that it does not have, with how well they fit."""
    wrong = 0 if len(word) <= 2 else 1 if len(word) <= 5 else 2
    shared = " OR ".join(f"contains(' ' || word || ' ', {text(three)})" for three in trigrams(word))
    # Comparing letters is dear, and DuckDB takes conditions in any order: only a CASE keeps it for the few words that are of
    # about the same length and share three letters.
    rows = await reader.rows(
        f"""SELECT word, CASE WHEN length(word) BETWEEN {len(word) - wrong} AND {len(word) + wrong} THEN
                CASE WHEN {shared} THEN damerau_levenshtein(word, {text(word)}) END END AS off
            FROM {known} WHERE off <= {wrong} ORDER BY off, word LIMIT {_MEANT_MAX}"""
    )
    return [
        (row["word"], _TYPO * (1 - row["off"] / max(len(word), len(row["word"]))))
        for row in rows
        if row["off"] == rows[0]["off"]
    ]


async def _candidates(
    reader: Reader, meant: list[_Meant], namespace: str | None, size: int, begin: int
) -> list[dict[str, Any]]:
    """What has the words, by how many words of the query it has, then by how well."""
    spaces = _spaces(reader, POSTINGS, namespace)
    relation, here = await reader.relation(POSTINGS, spaces), ""
    if namespace is not None and spaces and ANYWHERE in spaces:
        tables = f"SELECT asset_id FROM {await plain_tables(reader)} WHERE namespace = {text(namespace)}"
        here = f" AND (namespace <> {text(ANYWHERE)} OR subject_id IN ({tables}))"
    values = ", ".join(f"({one.number}, {text(one.word)}, {one.fits!r})" for one in meant)
    words = ", ".join(sorted({text(one.word) for one in meant}))
    return await reader.rows(
        f"""WITH best AS (
                SELECT number, subject_id, max(weight * fits) AS fits
                FROM (SELECT word, subject_id, weight FROM {relation} WHERE word IN ({words}){here})
                JOIN (VALUES {values}) AS m(number, word, fits) USING (word) GROUP BY number, subject_id)
            SELECT subject_id, count(*) AS words, sum(fits) AS score FROM best GROUP BY subject_id
            ORDER BY words DESC, score DESC, subject_id LIMIT {size} OFFSET {begin}"""
    )


async def _standing_hits(
    reader: Reader, candidates: list[dict[str, Any]], meant: list[_Meant], namespace: str | None
) -> list[tuple[int, Hit]]:
    """The candidates that are there and still have a word that is meant, each with how many words of the query it has."""
    wanted = {one.word for one in meant}
    asked = [{one.word for one in meant if one.number == number} for number in sorted({one.number for one in meant})]
    standing = await standing_subjects(reader, candidates, asked)
    hits = []
    for row in candidates:
        now = standing.get(row["subject_id"])
        if now is None or namespace not in {None, now.namespace} or not (places := now.places(wanted)):
            continue
        here = {word for _, word in places}
        hit = Hit(
            id=row["subject_id"],
            kind=now.kind,
            name=now.name,
            namespace=now.namespace,
            score=round(row["score"], 4),
            matched=tuple(f"{field}:{word}" for field, word in places),
            description=now.description,
            owners=now.owners,
            tags=now.tags,
        )
        hits.append((len({one.number for one in meant if one.word in here}), hit))
    return hits
