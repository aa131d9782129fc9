"""What `make spec` explores: every model with all its guards, then every guard by itself without the others' help.

A case with all guards must hold; a case without one must fail, or the guard guards nothing. `SHORT` are the cases that take a
second or so, for the test suite. How an exploration is done is not said here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from specs import collector
from specs.explorer import Model, Result, explore
from specs.transaction_world import GUARDS, Case
from specs.transactions import Transactions


@dataclass(frozen=True)
class Row:
    """One line of the table: a model, how far it is explored, and the guard that is missing."""

    model: str
    what: str
    make: Callable[[], Model]
    replies_lost_max: int = 0
    depth_max: int | None = None
    fused: bool = False
    may_not_return: bool = False
    without: str = ""
    attempts: int = 0

    def run(self) -> Result:
        return explore(
            self.make(),
            replies_lost_max=self.replies_lost_max,
            depth_max=self.depth_max,
            fused=self.fused,
            may_not_return=self.may_not_return,
        )

    def is_as_expected(self, result: Result) -> bool:
        return bool(result.broken) == bool(self.without)


ONE = Case(transactions=1, seats=1)
AGAIN = replace(ONE, attempts=2)  # one request, which begins again where it was sent back
TWICE = Case(transactions=1)  # one transaction whose request is made twice
MEETING = Case(seats=1, attempts=2)  # two transactions that meet
FAILS = replace(TWICE, fails=True)  # and each may have to give up
AGES = replace(TWICE, ages=True, others=("collector", "time", "reconciler"))
ETAGS = replace(TWICE, others=("reconciler", "ETag reader"))
CUTS = Case(seats=1, others=("reconciler", "cut reader"))
NO_STALE = replace(MEETING, stale=False)

# guard -> the smallest case that shows what it is for, and how many replies are lost in it
WITHOUT: dict[str, tuple[Case, int]] = {
    "exact_entry": (TWICE, 0),
    "record_before_pending": (replace(ONE, others=("reconciler",)), 0),
    "claimed_version": (TWICE, 0),
    "writer_resolves": (replace(ONE, others=("writer",)), 0),
    "drop_resolves": (replace(ONE, others=("dropper",)), 0),
    "waiting_counts_for_nothing": (replace(ONE, others=("reconciler",)), 0),
    "attempt_rises": (replace(AGAIN, others=("writer",)), 0),
    "aborted_is_final": (replace(TWICE, others=("writer",)), 0),
    "own_pendings_only": (TWICE, 0),
    "older_attempt_yields": (TWICE, 0),
    "smaller_id_wins": (NO_STALE, 0),
    "anyone_may_send_back": (replace(ONE, others=("reconciler",)), 0),
    "sent_back_by_cas": (replace(ONE, others=("reconciler",)), 0),
    "name_reserved_first": (replace(ONE, creates=True), 0),
    "effective_names": (replace(ONE, creates=True, others=("writer",)), 0),
    "etag_is_effective": (ETAGS, 0),
    "undecided_not_cached": (ETAGS, 0),
    "one_record_per_key": (TWICE, 0),
    "receipts_before_prepare": (replace(TWICE, receipts=True, others=("writer",)), 0),
    "references_looked_for": (AGES, 0),
    "age_after_claim": (AGES, 0),
    "age_after_takeover": (AGES, 0),
    "fail_closed": (replace(ONE, others=("writer",)), 1),
    "refusal_is_durable": (replace(TWICE, others=("writer",)), 0),
    "sent_back_before_503": (TWICE, 0),
    "passed_by_stays": (replace(FAILS, attempts=2), 0),
    "long_under_way_stays": (FAILS, 0),
    "overtaken_is_judged": (FAILS, 1),
    "silence_is_read_back": (TWICE, 1),
    "cut_reads_twice": (CUTS, 0),
    "cut_compares_what_counts": (CUTS, 0),
}
assert WITHOUT.keys() == GUARDS.keys()

EVERYBODY = ("writer", "reconciler")
SMALL = (
    ("1 transaction", replace(AGAIN, others=EVERYBODY), 1),
    ("1 transaction twice, 1 table dropped", replace(TWICE, others=("dropper", "reconciler")), 1),
    ("1 transaction twice, receipts", replace(TWICE, receipts=True, others=("writer",)), 1),
    ("1 transaction twice, records collected", AGES, 0),
    ("1 transaction twice, some give up", replace(FAILS, attempts=2), 1),
)
MIDDLE = (
    ("1 transaction twice", replace(TWICE, attempts=2, others=EVERYBODY), 1),
    ("1 transaction twice, pointers read before the claim", replace(TWICE, early=True, others=EVERYBODY), 1),
    ("2 transactions, pointers read before the claim", replace(MEETING, early=True, others=("reconciler",)), 1),
    ("1 transaction twice, some give up", replace(FAILS, others=EVERYBODY), 1),
    ("1 transaction twice, some give up", replace(FAILS, attempts=2, others=("reconciler",)), 1),
    ("1 transaction three times, some give up", replace(FAILS, seats=3), 1),
    ("1 transaction twice, 2 reconcilers", replace(TWICE, others=(*EVERYBODY, "reconciler")), 1),
    ("1 transaction, 1 table dropped", replace(AGAIN, others=("dropper", "reconciler")), 2),
    ("2 transactions", replace(MEETING, others=("writer",)), 1),
    ("2 transactions", replace(MEETING, attempts=1, others=EVERYBODY), 1),
    ("2 transactions twice", Case(), 0),
    ("2 transactions create a name", replace(MEETING, creates=True, others=("reconciler",)), 0),
    ("2 transactions create a name", replace(MEETING, attempts=1, creates=True, others=EVERYBODY), 0),
    ("1 transaction twice, receipts, reconciler", replace(TWICE, receipts=True, others=EVERYBODY), 1),
    ("1 transaction twice, records collected", AGES, 1),
    ("1 transaction twice, ETags", ETAGS, 1),
    ("2 transactions, a cut of both tables", CUTS, 0),
)
LARGE = (
    ("2 transactions", replace(MEETING, others=EVERYBODY), 1, None),
    ("2 transactions twice", Case(), 1, None),
    ("2 transactions, 3 tables", replace(MEETING, attempts=1, tables=3, others=EVERYBODY), 1, None),
    ("2 transactions twice, 3 tables", Case(tables=3, others=EVERYBODY), 0, 14),
    ("2 transactions twice", Case(others=EVERYBODY), 0, None),
    ("2 transactions twice, nobody lives to finalize", Case(others=EVERYBODY, finishes=False), 1, None),
)


def _described(what: str, case: Case) -> str:
    tables = "" if "table" in what else f", {case.tables} tables"
    others = [name for name in dict.fromkeys(case.others) if name not in what]
    return ", ".join([f"{what}{tables}", *others])


def _transactions(
    what: str, case: Case, replies_lost_max: int, depth_max: int | None = None, *, fused: bool = False
) -> Row:
    described = _described(what, case)
    row = Row("transactions", described, lambda: Transactions(case), replies_lost_max, depth_max, fused)
    return replace(row, attempts=case.attempts)


def _progress(what: str, case: Case, replies_lost_max: int, without: str = "") -> Row:
    meant = replace(case, without=without)
    row = Row("progress", what, lambda: Transactions(meant), replies_lost_max, may_not_return=True, without=without)
    return replace(row, attempts=case.attempts)


def _without(guard: str) -> Row:
    case, lost = WITHOUT[guard]
    if case == NO_STALE:
        return _progress("2 transactions that meet", case, lost, guard)
    what = f"{case.transactions} transaction{'s' * (case.transactions > 1)}{' twice' * (case.seats > 1)}"
    row = _transactions(what, replace(case, without=guard), lost)
    return replace(row, without=guard)


def _collector(kind: type[collector.Scenario], without: str = "") -> Row:
    what = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).strip()
    return Row("collector", what, lambda: kind(without), 1, without=without)


COLLECTOR = tuple(_collector(kind) for kind in collector.SCENARIOS)
PROGRESS = (
    _progress("2 transactions that meet", NO_STALE, 1),
    _progress("2 transactions that meet, 3 tables", replace(NO_STALE, tables=3), 1),
    _progress("3 transactions that meet", replace(NO_STALE, transactions=3), 0),
)
FAILING = (
    *(_without(guard) for guard in WITHOUT),
    *(_collector(kind, guard) for kind in collector.SCENARIOS for guard in kind.guards),
)
SHORT = (*(_transactions(*one) for one in SMALL), PROGRESS[0], *COLLECTOR, *FAILING)
ALL = (
    *(_transactions(*one) for one in SMALL),
    *(_transactions(*one) for one in MIDDLE),
    *(_transactions(*one, fused=True) for one in LARGE),
    *PROGRESS,
    *COLLECTOR,
    *FAILING,
)
