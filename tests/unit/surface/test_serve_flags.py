"""`arco serve` before it serves: what is wrong is one line with the way out, and nothing is touched."""

import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import SOCKET_PATH_BYTES_MAX, WORKERS_MAX
from arco.storage.roots import parse_root
from arco.surface.cli.listening import addresses_of, bind, is_loopback, load_certificate
from arco.surface.cli.main import app, run
from arco.surface.cli.serve import shown
from arco.surface.cli.settings import placed
from arco.surface.cli.workers import need_short_folder

CANARY = "canary-token-20c1"
PERSONS = f'{{"type":"authorized_user","client_email":"x","private_key":"{CANARY}"}}'
UNSIGNING = f'{{"type":"service_account","client_email":"x","private_key":"{CANARY}"}}'
Command = Callable[..., tuple[int, str]]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCO_TOKEN", raising=False)
    monkeypatch.delenv("ARCO_LINK_KEY", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def serve(capsys, monkeypatch) -> Command:
    def command(*args: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["arco", "serve", "--root", "lake", *args])
        with pytest.raises(SystemExit) as ended:
            run()
        captured = capsys.readouterr()
        assert CANARY not in captured.out + captured.err
        return int(ended.value.code or 0), captured.err

    return command


def make_pair(folder: Path, name: str, *more: str) -> tuple[str, str]:
    """A certificate and its key, made by openssl."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(cert), *(more or ["-nodes"])]
    subprocess.run(command, check=True, capture_output=True)
    return str(cert), str(key)


S3 = ("--root", "s3://b")
S3_KEYS = (*S3, "-o", "access_key_id=a", "-o", f"secret_access_key={CANARY}")
ROLE = ("--vend-role", "arn:aws:iam::123456789012:role/x")
WRONG = {
    "all addresses": (
        ("--host", "0.0.0.0"),
        "'0.0.0.0' can be reached from other machines, and there is no token: set ARCO_TOKEN",
    ),
    "all addresses of IPv6": (("--host", "::"), "set ARCO_TOKEN, or pass --insecure"),
    "an address that is none": (("--host", "no.such.host.invalid"), "is not an address of this machine"),
    "no host": (("--host", ""), "can be reached from other machines"),
    "a port that is none": (("--port", "65536"), "port 65536 does not exist"),
    "OAuth without a token": (("--oauth",), "--oauth hands out the server's token, and there is none: set ARCO_TOKEN"),
    "no time": (("--timeout", "0"), "--timeout 0 is no length of time: use positive numbers, of seconds"),
    "a time that is no number": (("--timeout", "nan"), "--timeout nan is no length of time"),
    "a time without an end": (("--timeout", "inf"), "--timeout inf is no length of time"),
    "a fold that only looks": (("--fold", "--fold-every", "0"), "--fold-every 0 is no length of time"),
    "a fold that looks when": (("--fold", "--fold-every", "nan"), "--fold-every nan is no length of time"),
    "upkeep that never rests": (("--upkeep", "--upkeep-every", "0"), "--upkeep-every 0 is no length of time"),
    "upkeep that rests how long": (("--upkeep", "--upkeep-every", "nan"), "--upkeep-every nan is no length of time"),
    "several that look all the time": (("--workers", "2", "--fold", "--fold-every", "-1"), "--fold-every -1 is no length"),
    "no room": (("--at-once", "0"), "use positive numbers"),
    "a certificate without its key": (("--tls-cert", "x"), "--tls-cert and --tls-key belong together"),
    "a key without its certificate": (("--tls-key", "x"), "--tls-cert and --tls-key belong together"),
    "a certificate that is not there": (("--tls-cert", "x", "--tls-key", "y"), "--tls-cert x: No such file or directory"),
    "pages of everybody": (("--allow-origin", "*"), "'*' is no origin of pages: write scheme, host and port"),
    "a page in the place of its site": (("--allow-origin", "https://a.example.com/hub"), "is no origin of pages"),
    "an unknown root": (("--root", "ftp://x"), "'ftp' is not a kind of store"),
    "credentials of a folder": (("--vend", "sts"), "--vend sts is for roots on s3://, and this one is file://"),
    "keys of a folder": (("--vend", "static"), "a folder has no keys to pass on"),
    "credentials that end at once": (("--vend-duration", "60"), "--vend-duration 60: 900 to 43200 seconds"),
    "a role for nobody": (("--vend-role", "arn:aws:iam::123456789012:role/x"), "--vend-role is for --vend sts"),
    "sessions without a role": ((*S3, "--vend", "sts"), "--vend sts needs a role"),
    "sessions of no role": ((*S3_KEYS, "--vend", "sts", "--vend-role", "x"), "'x' is not a role"),
    "sessions without keys": ((*S3, "--vend", "sts", *ROLE), "--vend sts needs keys of its own"),
    "a token service in the clear": (
        (*S3_KEYS, "--vend", "sts", *ROLE, "--vend-endpoint", "http://sts.test"),
        "the address of the token service is not https://host: allow_http=true accepts http://",
    ),
    "keys that are not there": ((*S3, "--vend", "static"), "there are no keys to pass on"),
    "keys that only read": ((*S3_KEYS, "--vend", "static", "--vend-read-only"), "cannot be held to reading"),
    "a key of Google that is none": (
        ("--root", "gs://b", "-o", f"service_account_key={CANARY}", "--vend", "gcs"),
        "the credentials of Google are no key of a service account",
    ),
    "credentials of a person": (
        ("--root", "gs://b", "-o", f"service_account_key={PERSONS}", "--vend", "gcs"),
        "of another kind than a service account's key",
    ),
    "a key that cannot sign": (
        ("--root", "gs://b", "-o", f"service_account_key={UNSIGNING}", "--vend", "gcs"),
        "the private key of the service account cannot sign",
    ),
    "credentials in a file that is not there": (
        ("--root", "gs://b", "-o", "application_credentials=/no/such/file", "--vend", "gcs"),
        "the credentials of Google in /no/such/file: No such file or directory",
    ),
    "a signature without a key": (("--root", "az://b", "-o", "account_name=a", "--vend", "sas"), "needs the account's key"),
    "a signature with no key": (
        ("--root", "az://b", "-o", "account_name=a", "-o", f"account_key={CANARY}", "--vend", "sas"),
        "the key of the Azure account is not base64",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_line_with_the_way_out_and_nothing_is_touched(serve, folder, case):
    args, says = WRONG[case]
    code, err = serve(*args)
    assert code == 2
    assert err.startswith("arco: ")
    assert err.count("\n") == 1
    assert says in err
    assert list(folder.iterdir()) == []


def test_a_folder_whose_name_leaves_no_room_for_a_socket_is_said_before_workers_start(serve, folder, monkeypatch):
    long = str(folder / ("d" * 100))
    monkeypatch.setattr(tempfile, "tempdir", long)
    code, err = serve("--workers", "2")
    assert (code, err.count("\n")) == (2, 1)
    assert "too long for the sockets by which workers reach each other: set TMPDIR to a folder with a shorter name" in err
    assert list(folder.iterdir()) == []


def test_the_longest_folder_that_is_let_through_has_room_for_a_socket(monkeypatch):
    short = "/" + "d" * (SOCKET_PATH_BYTES_MAX - len("/" + "/arco-12345678/63.sock"))
    monkeypatch.setattr(tempfile, "tempdir", short)
    need_short_folder(WORKERS_MAX)
    monkeypatch.setattr(tempfile, "tempdir", f"{short}d")
    with pytest.raises(InvalidInput, match="is 1 bytes too long"):
        need_short_folder(WORKERS_MAX)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("is_there", "says"), [(False, "is closed"), (True, "is a file or /dev/null")])
def test_a_standard_input_that_nobody_holds_has_ended_already(serve, folder, monkeypatch, is_there, says, workers):
    with Path("/dev/null").open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody if is_there else None)
        code, err = serve("--until-stdin-ends", "--workers", workers)
    assert (code, err.count("\n")) == (2, 1)
    assert f"--until-stdin-ends, and standard input {says}, which has ended already: give the server a pipe" in err
    assert list(folder.iterdir()) == []


def test_a_key_for_links_that_can_be_guessed_is_refused_and_not_repeated(serve, folder, monkeypatch):
    monkeypatch.setenv("ARCO_LINK_KEY", CANARY)
    code, err = serve()
    assert (code, err.count("\n")) == (2, 1)
    assert f"ARCO_LINK_KEY has {len(CANARY)} characters, fewer than 32" in err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("", "ARCO_TOKEN is set to nothing"),
        (f"{CANARY}\n", "ARCO_TOKEN has a character that a header cannot carry"),
        (f"{CANARY} x", "without spaces"),
        (f"{CANARY}ü", "use visible ASCII"),
    ],
)
def test_a_token_that_no_client_could_send_is_refused_and_not_repeated(serve, folder, monkeypatch, token, says):
    monkeypatch.setenv("ARCO_TOKEN", token)
    code, err = serve()
    assert (code, err.count("\n")) == (2, 1)
    assert says in err
    assert list(folder.iterdir()) == []


def test_help_teaches_and_every_flag_is_documented():
    shown = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).stdout
    for word in ("Examples:", "arco serve --root ./lake", "ARCO_TOKEN", "/health"):
        assert word in shown
    page = (Path(__file__).resolve().parents[3] / "docs" / "server.md").read_text()
    flags = set(re.findall(r"(--[a-z][a-z-]+)", shown)) - {"--help", "--option"}
    assert {flag for flag in flags if f"`{flag}" not in page} == set()


def test_an_unknown_word_for_the_log_says_the_known_ones(serve):
    code, err = serve("--log", "xml")
    assert code == 2
    assert "json" in err
    assert "text" in err


def test_a_port_that_is_taken_is_named(serve, folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, err = serve("--port", str(port))
    assert code == 2
    assert err == f"arco: port {port} of 127.0.0.1 is taken: stop who listens there, or choose another --port\n"
    assert list(folder.iterdir()) == []


def test_files_that_are_no_certificate_with_its_key_are_refused(folder):
    cert, key = make_pair(folder, "right")
    _, other_key = make_pair(folder, "other")
    _, locked_key = make_pair(folder, "locked", "-passout", "pass:word")
    (folder / "text").write_text("hello")
    assert load_certificate(cert, key) is not None
    assert load_certificate(None, None) is None
    for bad in (
        (cert, other_key),
        (cert, locked_key),
        (str(folder / "text"), key),
        (cert, str(folder / "text")),
        (key, cert),
    ):
        with pytest.raises(Exception, match="are no certificate with its key"):
            load_certificate(*bad)


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("fe80::1%eth0", False),
    ],
)
def test_an_address_is_inside_or_outside(address, inside):
    assert is_loopback(address) is inside


def test_a_name_is_bound_on_all_its_addresses_and_one_port():
    sockets = bind("localhost", 0)
    try:
        ports = {one.getsockname()[1] for one in sockets}
        assert len(ports) == 1
        assert {one.getsockname()[0] for one in sockets} <= {address for _, address in addresses_of("localhost", 0)}
    finally:
        for one in sockets:
            one.close()


def test_a_folder_that_is_allowed_is_looked_for_from_here_as_a_root_is(folder):
    given = ("shared", "./shared", "../shared", "~/shared", "/abs/shared", "file:/abs", "s3://bucket/shared")
    assert placed(given) == (
        f"{folder}/shared",
        f"{folder}/shared",
        f"{folder.parent}/shared",
        f"{folder}/~/shared",
        "/abs/shared",
        "file:/abs",
        "s3://bucket/shared",
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_place_that_is_none_is_refused_before_anything_is_touched(serve: Command, folder: Path, workers: str) -> None:
    for place in ("file:shared", "ftp://host/x", "shared/../../../x%2fy"):
        code, said = serve("--port", "0", "--workers", workers, "--allow-location", place)
        assert code == 2
        assert "cannot be allowed" in said
        assert len(said.splitlines()) == 1
    assert not (folder / "lake").exists()


def test_the_root_is_shown_as_others_can_give_it(folder):
    assert shown(parse_root("./lake")) == f"file://{folder}/lake"
    assert shown(parse_root("s3://bucket/lake")) == "s3://bucket/lake"
