"""`arco worker --isolate` says no, in one line, wherever it would keep nobody from anything."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arco.kernel.errors import InvalidInput
from arco.surface.cli.isolating import isolation_of
from arco.surface.cli.main import app
from arco.surface.cli.projects import At, read_project
from arco.surface.cli.settings import tasks_environment

ROLE = "arn:aws:iam::123456789012:role/tasks"
GOOD = f"""
root = "s3://bucket/lake"

[project]
name = "db"

[store]
endpoint = "http://127.0.0.1:9"
region = "us-east-1"
allow_http = "true"

[workers]
isolate = true
vend_role = "{ROLE}"
"""


WITH = GOOD + 'variables = ["{}"]\n'


def project(folder: Path, toml: str) -> Path:
    (folder / "assets").mkdir()
    (folder / "assets" / "a.py").write_text(
        "from arco import asset\n\n@asset\ndef a(run):\n    return run.spark.range(1)\n"
    )
    (folder / "arco.toml").write_text(toml)
    return folder


@pytest.mark.parametrize(
    ("toml", "options", "master", "said"),
    [
        ('root = "lake"\n', [], None, "needs a store that makes keys for one task, and file:// is none"),
        (GOOD.replace(f'vend_role = "{ROLE}"', ""), [], None, "--isolate needs a role"),
        (GOOD, [], "sc://127.0.0.1:15002", "a Spark of its own, and all tasks share sc://127.0.0.1:15002"),
        (GOOD.replace("[store]", '[store]\nsecret_access_key = "x"'), [], None, "[store] in arco.toml has secret_access_key"),
        (GOOD, ["secret_access_key=x"], None, "secret_access_key is on the command line"),
        (
            GOOD + '[spark]\nconf = { "spark.hadoop.fs.s3a.secret.key" = "x" }\n',
            [],
            None,
            "conf in arco.toml has spark.hadoop.fs.s3a.secret.key",
        ),
        (GOOD.replace("vend_role", "vend_duration = 1\nvend_role"), [], None, "--vend-duration 1"),
        (WITH.format("AWS_SESSION_TOKEN"), [], None, "arco.toml has AWS_SESSION_TOKEN, which opens what no task is to"),
        (WITH.format("ARCO_TASK_KEY"), [], None, "variables in arco.toml has ARCO_TASK_KEY, which opens what no task is to"),
        (WITH.format("GOOGLE_APPLICATION_CREDENTIALS"), [], None, "has GOOGLE_APPLICATION_CREDENTIALS, which opens"),
        (
            WITH.format("SIGNING") + 'keys = ["env:SIGNING"]\n',
            [],
            None,
            "variables in arco.toml has SIGNING, which opens what no task is to",
        ),
        (WITH.format("SHOP_API_TOKEN"), [], None, "SHOP_API_TOKEN is to be passed to tasks, and is not set"),
        (WITH.format("A=B"), [], None, "variables in arco.toml has 'A=B', which is no name of a variable"),
        (GOOD + "variables = 3\n", [], None, "variables in arco.toml is not a list of texts"),
        (GOOD.replace("isolate = true", 'isolate = "yes"'), [], None, "isolate in arco.toml is not true or false"),
    ],
)  # fmt: skip
def test_what_would_make_it_worth_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toml: str, options: list[str], master: str | None, said: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    folder = project(tmp_path, toml)
    with pytest.raises(InvalidInput, match=re.escape(said)) as refused:
        isolation_of(read_project(str(folder)), At(str(folder), None, options, master))
    assert "\n" not in refused.value.one_line()


def test_the_file_says_what_the_flag_does(tmp_path: Path) -> None:
    words = read_project(str(project(tmp_path, GOOD))).workers
    assert (words.isolate, words.role, words.duration_s) == (True, ROLE, 3600)


def test_a_task_finds_the_variables_that_its_project_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "SHOP_API_TOKEN", "SHOP_OTHER"):
        monkeypatch.setenv(name, f"the {name}")
    folder = project(tmp_path, WITH.format("SHOP_API_TOKEN"))
    around = isolation_of(read_project(str(folder)), At(str(folder), None, [])).environment
    assert around["SHOP_API_TOKEN"] == "the SHOP_API_TOKEN"
    assert {"SHOP_OTHER", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} & set(around) == set()


def test_a_task_finds_no_key_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE"]
    secrets += [
        "ARCO_TASK_KEY",
        "ARCO_TASK_KEY_FILE",
        "ARCO_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "AZURE_STORAGE_ACCOUNT_KEY",
    ]
    secrets += ["SPARK_REMOTE", "_SPARK_AUTH_SECRET", "PYTHONSTARTUP", "DATABASE_URL"]
    for name in secrets:
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("JAVA_HOME", "/java")
    found = tasks_environment()
    assert "canary" not in found.values()
    assert found["JAVA_HOME"] == "/java"
    assert found["AWS_EC2_METADATA_DISABLED"] == "true"


def test_help_says_what_it_is() -> None:
    assert "--isolate" in CliRunner().invoke(app, ["worker", "--help"]).output
