"""The simulator's commands do what they say."""

import pytest

from arco_sim.__main__ import main
from arco_sim.scenarios.registry import SCENARIOS


def test_run_reports_seeds_and_speed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "cas_counter", "--seeds", "1..120"]) == 0
    assert "cas_counter: 120 seeds" in capsys.readouterr().out


def test_all_scenarios_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all", "--seeds", "1..8"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name}: 8 seeds" in said for name in SCENARIOS)


def test_replay_prints_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "lease_steal", "--seed", "3", "--trace"]) == 0
    said = capsys.readouterr().out
    assert "t/w/lease.json" in said
    assert "0 violations" in said


def test_crashpoints_prints_a_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crashpoints", "lease_steal", "--singles"]) == 0
    said = capsys.readouterr().out
    assert "lost reply" in said
    assert "0 violations" in said


def test_scenarios_are_listed_with_their_promise(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 0
    said = capsys.readouterr().out
    assert all(scenario.promise in said for scenario in SCENARIOS.values())


@pytest.mark.parametrize(
    "arguments", [["run", "nothing"], ["run", "cas_counter", "--seeds", "x"], ["replay", "cas_counter"]]
)
def test_a_wrong_command_says_so(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err
