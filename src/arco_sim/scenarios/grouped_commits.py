"""Commits that land together: the promise of `table_commits`, on servers where many requests wait for one table."""

from arco_sim.scenarios.table_commits import TableCommitsScenario


class GroupedCommitsScenario(TableCommitsScenario):
    """The same with servers that work on many requests at once, so that commits wait for one another and land in groups."""

    name = "grouped_commits"
    promise = "commits that land in one swing are each in the table's history exactly once, or not at all"
    at_once = 8
    kinds = ("set", "set", "column", "set", "set", "elsewhere", "set", "never", "set", "load")

    def sizes(self, *, small: bool) -> tuple[int, int, int]:
        return (1, 3, 1) if small else (2, 10, 2)
