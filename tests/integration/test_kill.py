"""Real processes, really killed."""

from .kill_rounds import run


def test_nothing_acknowledged_is_lost_or_doubled_when_processes_are_killed() -> None:
    outcome = run(rounds=25)
    print(outcome)
    assert outcome.acknowledged >= 25, "the load was too low to mean anything"
    assert outcome.lost == 0, outcome
    assert outcome.doubled == 0, outcome
