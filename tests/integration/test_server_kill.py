"""Real servers, really killed under load: on a folder, and on an S3 server."""

from .server_kill_rounds import Outcome, Plan, run
from .spark_session import Spark


def test_everything_clients_were_told_is_true_once_when_servers_on_a_folder_are_killed(spark: Spark) -> None:
    outcome = run(Plan(6), "local", spark)
    _judge(outcome, 6)
    assert set(outcome.written) == {"pyiceberg", "spark"}


def test_everything_clients_were_told_is_true_once_when_servers_on_s3_are_killed() -> None:
    """Spark on S3 needs a large bundle: `make kill`."""
    _judge(run(Plan(2), "s3"), 2)


def test_everything_clients_were_told_is_true_once_when_workers_of_servers_are_killed() -> None:
    """One of two dies, and the other's clients notice nothing: it takes more kills to meet as many requests under way."""
    _judge(run(Plan(18, workers=2), "local"), 18, lost_min=6)


def _judge(outcome: Outcome, rounds: int, lost_min: int | None = None) -> None:
    print(outcome)
    assert outcome.acknowledged >= 20 * rounds, "the load was too low to mean anything"
    assert outcome.lost_replies >= (rounds if lost_min is None else lost_min), "the kills met no request under way"
    assert not outcome.wrong, outcome
    assert outcome.cuts >= rounds, "nobody looked at the bank while servers died"
    assert outcome.unsettled == 0, "a retry with the same key is answered in the end"
    assert all(acknowledged for acknowledged, _ in outcome.written.values()), "an engine wrote nothing"
    assert outcome.collected, "the collectors met nothing"
