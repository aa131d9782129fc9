"""Real servers, really killed under load: on a folder, and on an S3 server."""

import pytest

from .server_kill_rounds import run


@pytest.mark.timeout(600)  # a server on S3 tests its store for many seconds before it starts
@pytest.mark.parametrize(("store", "rounds"), [("local", 6), ("s3", 2)])
def test_everything_clients_were_told_is_true_once_when_servers_are_killed(store: str, rounds: int) -> None:
    outcome = run(rounds, store)
    print(outcome)
    assert outcome.acknowledged >= 20 * rounds, "the load was too low to mean anything"
    assert outcome.lost_replies >= rounds, "the kills met no request under way"
    assert not outcome.wrong, outcome
    assert outcome.unsettled == 0, "a retry with the same key is answered in the end"
