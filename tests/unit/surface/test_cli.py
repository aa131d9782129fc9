"""The command line: findings for people, one line for every error, and settings in their order."""

import gc
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arco.kernel.errors import InvalidInput
from arco.storage.memory import MemoryStore
from arco.storage.port import Always
from arco.surface.cli import doctor as doctor_command
from arco.surface.cli.main import app, run
from arco.surface.cli.settings import Settings, load_settings
from arco.surface.cli.shortening import rarely_collecting

CANARY = "canary-7f3a9e"
# Port 9 is closed: the suite's conftest uses it for the same purpose.
UNREACHABLE = (
    "--root", "s3://bucket/lake", "-o", "endpoint=http://127.0.0.1:9", "-o", "allow_http=true", "-o", "region=us-east-1",
    "-o", "access_key_id=nobody", "-o", f"secret_access_key={CANARY}",
)  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """Every command starts in an empty folder, with no settings of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCO_ROOT", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def arco(capsys, monkeypatch):
    """The entry point as the shell calls it."""

    def command(*args: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["arco", *args])
        with pytest.raises(SystemExit) as ended:
            run()
        captured = capsys.readouterr()
        return Ended(ended.value.code or 0, captured.out, captured.err)

    return command


@pytest.mark.parametrize(
    "words", [(), ("--help",), ("plan", "--help"), ("quarantine", "--help"), ("quarantine", "list", "--help"), ("pln",)]
)
def test_what_is_left_out_for_speed_is_seen_in_no_answer(arco, monkeypatch, words):
    """The entry point builds only the command that is asked for; the application as a whole says the same."""
    found = arco(*words)
    monkeypatch.setattr("arco.surface.cli.main.shortened", lambda whole, _: whole)
    assert found == arco(*words)


def test_a_short_command_leaves_the_collector_of_garbage_as_it_was():
    before = gc.get_threshold(), gc.get_freeze_count()
    with rarely_collecting():
        assert gc.get_threshold()[0] > before[0][0]
        assert gc.isenabled()
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def contents(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# doctor


def test_doctor_trusts_a_folder_and_leaves_no_object_in_it(folder):
    result = CliRunner().invoke(app, ["doctor", "--root", "lake"])
    assert result.exit_code == 0
    assert result.stdout.startswith("Testing file://lake\n")
    assert result.stdout.count("  ok  ") == 9
    assert "FAIL" not in result.stdout
    assert result.stdout.rstrip().endswith("This store can be trusted with commits.")
    assert [path for path in (folder / "lake").rglob("*") if path.is_file() and ".arco" not in path.parts] == []


def test_doctor_fails_for_a_store_that_ignores_conditions(monkeypatch):
    class IgnoresConditions(MemoryStore):
        async def put(self, key, data, condition):
            return await super().put(key, data, Always())

    def open_root(url, options, clock, entropy):
        return IgnoresConditions(clock)

    monkeypatch.setattr(doctor_command, "open_root", open_root)
    result = CliRunner().invoke(app, ["doctor", "--root", "memory://bad"])
    assert result.exit_code == 1
    assert "FAIL  a taken name is not created again" in result.stdout
    assert "This store cannot be trusted with commits: " in result.stdout
    assert "ok    a range of bytes can be read" in result.stdout


def test_doctor_prints_a_root_as_it_is_and_not_as_markup(arco):
    assert arco("doctor", "--root", "[red]lake").out.startswith("Testing file://[red]lake\n")


# Errors


WRONG = {
    "no root": ((), "no root given"),
    "an empty root": (("--root", ""), "no root given"),
    "an unknown scheme": (("--root", "ftp://host/lake"), "'ftp' is not a kind of store"),
    "no bucket": (("--root", "s3://"), "names no bucket"),
    "a traversal": (("--root", "s3://bucket/../other"), "has a segment '..'"),
    "a query": (("--root", "s3://bucket?x=1"), "more than a bucket and a folder"),
    "a host": (("--root", "file://host/lake"), "names a host"),
    "an unknown option": (("--root", "lake", "-o", "nonsense=1"), "a folder has no option 'nonsense'"),
    "an unknown option of a cloud": (("--root", "s3://b", "-o", f"secret={CANARY}"), "s3:// has no option 'secret'"),
    "an option without a value": (("--root", "lake", "-o", "endpoint"), "option 'endpoint' has no value"),
    "a switch that is neither": (("--root", "s3://b", "-o", "path_style=perhaps"), "option path_style is 'perhaps'"),
    "no encryption": (("--root", "s3://b", "-o", "endpoint=http://127.0.0.1:9"), "is not encrypted"),
    "a parent that is missing": (("--root", "no/such/lake"), "no/such/lake: No such file or directory"),
    "an unreachable store": (UNREACHABLE, "s3://bucket did not answer"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_is_one_line_with_the_way_out_and_nothing_is_written(arco, folder, case):
    args, says = WRONG[case]
    ended = arco("doctor", *args)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("arco: ")
    assert says in ended.err
    assert "Traceback" not in ended.err + ended.out
    assert CANARY not in ended.err + ended.out
    assert contents(folder) == []


def test_an_error_of_usage_says_where_help_is(arco, folder):
    for args in (("doctor", "--bogus"), ("nonsense",), ("doctor", "stray")):
        ended = arco(*args)
        assert ended.code == 2
        assert "--help" in ended.err
        assert "Traceback" not in ended.err
    assert contents(folder) == []


def test_the_installed_command_reports_an_error_in_one_line(folder):
    command = [str(Path(sys.executable).with_name("arco")), "doctor", "--root", "ftp://host/lake"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "arco: 'ftp' is not a kind of store: use file://, s3://, gs:// or az://, or a plain folder\n"
    )  # fmt: skip
    assert contents(folder) == []


# Settings


def test_the_flag_wins_over_the_environment_and_the_environment_over_the_file(arco, folder, monkeypatch):
    (folder / "arco.toml").write_text('root = "memory://from-file"\n')
    assert "Testing memory://from-file\n" in arco("doctor").out
    monkeypatch.setenv("ARCO_ROOT", "memory://from-environment")
    assert "Testing memory://from-environment\n" in arco("doctor").out
    assert "Testing memory://from-flag\n" in arco("doctor", "--root", "memory://from-flag").out


def test_an_empty_variable_is_no_root(folder, monkeypatch):
    monkeypatch.setenv("ARCO_ROOT", "")
    with pytest.raises(InvalidInput, match="no root given"):
        load_settings(None, [])
    (folder / "arco.toml").write_text('root = "memory://from-file"\n')
    assert load_settings(None, []).root == "memory://from-file"


def test_options_of_the_command_line_win_over_those_of_the_file(folder):
    (folder / "arco.toml").write_text(
        'root = "s3://b"\n[store]\nendpoint = "https://file"\nregion = "eu-1"\npath_style = true\nexpress = false\n'
    )
    assert load_settings(None, ["endpoint=https://flag"]) == Settings(
        "s3://b", {"endpoint": "https://flag", "region": "eu-1", "path_style": "true", "express": "false"}
    )


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ([], {}),
        (["a=1"], {"a": "1"}),
        (["a=1", "a=2"], {"a": "2"}),
        (["a="], {"a": ""}),
        (["a=b=c=="], {"a": "b=c=="}),
        (["a= b "], {"a": " b "}),
    ],
)
def test_an_option_is_a_word_and_everything_after_the_first_equals_sign(given, options):
    assert load_settings("memory://x", given).options == options


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("root = ", "does not parse"),
        ("\x00", "does not parse"),
        ("root = 5", "no root given"),
        ('root = ["a"]', "no root given"),
        ('root = "memory://x"\nstore = 5', "store in arco.toml is not a table"),
        ('root = "memory://x"\nstore = "s3"', "store in arco.toml is not a table"),
        ("", "no root given"),
        ('[other]\nroot = "memory://x"', "no root given"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(arco, folder, text, says):
    (folder / "arco.toml").write_text(text)
    ended = arco("doctor")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert says in ended.err
    assert contents(folder) == ["arco.toml"]


def test_a_file_that_is_not_utf_8_is_refused(arco, folder):
    (folder / "arco.toml").write_bytes(b'root = "\xff"\n')
    ended = arco("doctor")
    assert ended.code == 2
    assert "arco.toml does not parse" in ended.err


def test_only_the_file_of_this_folder_is_read(folder, monkeypatch):
    (folder / "arco.toml").write_text('root = "memory://above"\n')
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    with pytest.raises(InvalidInput, match="no root given"):
        load_settings(None, [])


# Help


def test_help_teaches_by_example():
    result = CliRunner().invoke(app, ["doctor", "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert "arco doctor --root ./lake" in result.stdout
    assert "arco doctor --root s3://bucket/lake -o endpoint=" in result.stdout
    for word in ("--root", "--option", "ARCO_ROOT", "arco.toml"):
        assert word in result.stdout


def test_help_lists_every_command_with_what_it_does():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("doctor", "version"):
        assert any(line.split()[:1] == [command] and len(line.split()) > 2 for line in result.stdout.splitlines())


def test_no_command_is_a_request_for_help(arco):
    ended = arco()
    assert ended.code == 2
    assert "Usage: " in ended.out + ended.err
    assert "doctor" in ended.out + ended.err


def test_the_version_is_a_version():
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0
    assert [part.isdigit() for part in result.stdout.strip().split(".")] == [True, True, True]
    assert os.linesep not in result.stdout.strip()
    assert CliRunner().invoke(app, ["--version"]).stdout == result.stdout
