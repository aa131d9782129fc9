"""What other systems call the ends of their lineage, as a table of state: a set of names, of which readers make sense."""

from arco.fold.vocabulary import Column, Group, Kind, Table, Wins
from arco.storage.keys import Head

DATASETS = Table(
    "datasets",
    Head.LINEAGE,
    "one row a name of something that another system has lineage of; readers find out which table it is",
    (
        Column("dataset_id", Kind.TEXT, "the end of an edge"),
        Column("namespace", Kind.TEXT, "the other system's; empty where it has none"),
        Column("name", Kind.TEXT, ""),
    ),
    (Group("called", Wins.FIRST, (Column("first_called_at", Kind.MOMENT, ""),)),),
    "dataset_id",
)
