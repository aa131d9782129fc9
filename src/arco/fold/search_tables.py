"""The index that people search by, as tables of state: words and their letters, which a page can read alone."""

from arco.fold.vocabulary import Column, Group, Kind, Table, Wins
from arco.storage.keys import Head


def _text(name: str, about: str = "") -> Column:
    return Column(name, Kind.TEXT, about)


POSTINGS = Table(
    "postings",
    Head.SEARCH,
    "one row a word of something that can be found; readers look whether it still has that word",
    (_text("namespace"), _text("word"), _text("subject_id"), _text("field")),
    (
        Group(
            "found",
            Wins.FIRST,
            (_text("subject_kind"), _text("subject", "its name at the time"), Column("weight", Kind.REAL, "")),
        ),
    ),
    "namespace",
)

TRIGRAMS = Table(
    "trigrams",
    Head.SEARCH,
    "one row three letters of a word, for words that are spelled wrongly",
    (_text("namespace"), _text("trigram"), _text("word")),
    (Group("found", Wins.FIRST, (Column("length", Kind.LONG, ""),)),),
    "namespace",
)
