"""Roots: which store a URL and its options open, and what is refused before anything is opened."""

import asyncio

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError, InvalidInput
from arco.storage.cloud import CloudStore
from arco.storage.local import LocalStore
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, ObjectStore
from arco.storage.roots import Root, open_root, parse_root
from stand_ins.hand_clock import HandClock

CANARY = "canary-7f3a9e"


def opened(url: str, **options: str) -> ObjectStore:
    return open_root(url, options, HandClock(), SeededEntropy(1))


def config(url: str, **options: str) -> dict[str, str]:
    """What the client library was told."""
    store = opened(url, **options)
    assert isinstance(store, CloudStore)
    assert store._reader.config == store._writer.config
    return dict(store._writer.config)


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("lake", Root("file", "", "lake")),
        ("./lake", Root("file", "", "./lake")),
        ("/srv/lake", Root("file", "", "/srv/lake")),
        ("a folder/größe", Root("file", "", "a folder/größe")),
        ("C:lake", Root("file", "", "C:lake")),
        ("file:///srv/lake", Root("file", "", "/srv/lake")),
        ("FILE:///srv/lake", Root("file", "", "/srv/lake")),
        ("file://localhost/srv/lake", Root("file", "", "/srv/lake")),
        ("file:///srv/a%20folder", Root("file", "", "/srv/a folder")),
        ("memory://", Root("memory", "", "")),
        ("memory://test", Root("memory", "test", "")),
        ("s3://bucket", Root("s3", "bucket", "")),
        ("s3://bucket/", Root("s3", "bucket", "")),
        ("s3://bucket/lake", Root("s3", "bucket", "lake")),
        ("S3://bucket/lake/", Root("s3", "bucket", "lake")),
        ("gs://bucket/a/b", Root("gs", "bucket", "a/b")),
        ("az://container/a/b/", Root("az", "container", "a/b")),
    ],
)
def test_a_url_names_a_store_a_bucket_and_a_folder(url, root):
    assert parse_root(url) == root


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "no root given"),
        ("   ", "no root given"),
        ("\n", "no root given"),
        ("a\0b", "has a control character"),
        ("file://", "is not a folder"),
        ("file:///a%00b", "is not a folder"),
        ("file://server/share", "names a host"),
        ("file://./lake", "names a host"),
        ("s3://", "names no bucket"),
        ("s3:///lake", "names no bucket"),
        ("gs://", "names no bucket"),
        ("az:///x", "names no bucket"),
        ("s3://bucket?versionId=1", "more than a bucket and a folder"),
        ("s3://bucket/lake?x=1", "more than a bucket and a folder"),
        ("s3://bucket/lake?", "more than a bucket and a folder"),
        ("s3://bucket/lake#", "more than a bucket and a folder"),
        ("s3://bucket/lake#part", "more than a bucket and a folder"),
        ("s3://user@bucket/lake", "more than a bucket and a folder"),
        ("s3://bucket/../other", "has a segment '..'"),
        ("s3://bucket/a/./b", "has a segment '.'"),
        ("s3://bucket/a//b", "has an empty segment"),
        ("s3://bucket/a\\b", "has a backslash"),
        ("s3://bucket/.arco", "keeps for itself"),
        ("s3://bucket/" + "x" * 300, "longer than"),
        ("http://bucket/lake", "is not a kind of store"),
        ("hdfs://namenode/lake", "is not a kind of store"),
        ("s3a://bucket/lake", "is not a kind of store"),
        ("://bucket", "is not a kind of store"),
        ("x" * 5000 + "://b", "is not a kind of store"),
    ],
)
def test_a_wrong_url_is_refused_with_the_reason_and_the_way_out(url, says):
    with pytest.raises(InvalidInput) as caught:
        parse_root(url)
    assert says in caught.value.message
    assert caught.value.hint != InvalidInput.default_hint
    assert len(caught.value.one_line()) < 300


@pytest.mark.parametrize(
    "url", ["s3://bucket", "s3://bucket/a/b", "gs://bucket/a", "az://c/a", "memory://test", "file:///srv/lake"]
)
def test_a_root_prints_as_its_url(url):
    assert str(parse_root(url)) == url


def test_every_kind_of_root_opens_its_store(tmp_path):
    assert isinstance(opened("memory://x"), MemoryStore)
    assert isinstance(opened("s3://bucket"), CloudStore)
    assert isinstance(opened("gs://bucket"), CloudStore)
    assert isinstance(opened("az://container", account_name="a", anonymous="true"), CloudStore)
    local = opened(str(tmp_path / "lake"))
    assert isinstance(local, LocalStore)
    asyncio.run(local.close())


def test_opening_a_folder_writes_nothing(tmp_path):
    store = opened(str(tmp_path / "lake"))
    asyncio.run(store.close())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_may_be_given_as_a_url_with_escapes(tmp_path):
    store = opened(f"file://{tmp_path}/a%20lake")

    async def write() -> None:
        await store.put("x", b"y", Absent())
        await store.close()

    asyncio.run(write())
    assert (tmp_path / "a lake" / "x").read_bytes() == b"y"


@pytest.mark.parametrize("url", ["lake", "file:///srv/lake", "memory://x", "s3://bucket", "gs://bucket", "az://container"])
@pytest.mark.parametrize("word", ["nonsense", "", "Endpoint", "aws_access_key_id", "access-key-id", "x" * 1000])
def test_an_unknown_option_is_refused_with_those_that_exist(url, word):
    with pytest.raises(InvalidInput) as caught:
        opened(url, **{word: CANARY})
    assert "has no option" in caught.value.message
    assert caught.value.hint.startswith("it takes: ")
    assert CANARY not in caught.value.one_line()


def test_a_folder_takes_no_options():
    with pytest.raises(InvalidInput, match="a folder has no option 'endpoint'") as caught:
        opened("lake", endpoint="https://x")
    assert caught.value.hint == "it takes: none"


def test_an_option_of_another_store_is_unknown():
    with pytest.raises(InvalidInput, match="path_style"):
        opened("gs://bucket", path_style="true")
    with pytest.raises(InvalidInput, match="account_name"):
        opened("s3://bucket", account_name="x")


# Encryption


@pytest.mark.parametrize("url", ["s3://bucket", "gs://bucket", "az://container"])
@pytest.mark.parametrize("allow", [{}, {"allow_http": "false"}, {"allow_http": "no"}, {"allow_http": "0"}], ids=str)
def test_an_endpoint_that_is_not_encrypted_must_be_allowed(url, allow):
    with pytest.raises(InvalidInput, match="not encrypted") as caught:
        opened(url, endpoint="http://127.0.0.1:9000", **allow)
    assert "allow_http=true" in caught.value.hint


@pytest.mark.parametrize("yes", ["true", "True", "1", "yes", "YES"])
def test_an_endpoint_that_is_not_encrypted_can_be_allowed(yes):
    store = opened("s3://bucket", endpoint="http://127.0.0.1:9000", allow_http=yes)
    assert isinstance(store, CloudStore)
    assert store._writer.client_options["allow_http"] == "true"


def test_an_encrypted_endpoint_needs_no_leave():
    store = opened("s3://bucket", endpoint="https://127.0.0.1:9000")
    assert isinstance(store, CloudStore)
    assert store._writer.client_options["allow_http"] == "false"


# Switches and words


@pytest.mark.parametrize(("yes", "no"), [("true", "false"), ("1", "0"), ("yes", "no"), ("TRUE", "False")])
def test_a_switch_is_on_or_off(yes, no):
    assert config("s3://b", anonymous=yes)["skip_signature"] == "true"
    assert config("s3://b", anonymous=no)["skip_signature"] == "false"
    assert config("s3://b--usw2-az1--x-s3", express=yes)["s3_express"] == "true"
    assert config("gs://b", anonymous=yes)["skip_signature"] == "true"


def test_path_style_is_the_opposite_of_the_librarys_word():
    assert config("s3://b", path_style="true")["virtual_hosted_style_request"] == "false"
    assert config("s3://b", path_style="false")["virtual_hosted_style_request"] == "true"


@pytest.mark.parametrize("word", ["path_style", "anonymous", "express", "allow_http"])
@pytest.mark.parametrize("value", ["", "maybe", "on", "2", " true", "truee", "x" * 1000])
def test_a_switch_that_is_neither_is_refused(word, value):
    with pytest.raises(InvalidInput, match=f"option {word} is") as caught:
        opened("s3://b", **{word: value})
    assert "true or false" in caught.value.hint
    assert len(caught.value.one_line()) < 200


def test_our_words_become_those_of_the_library():
    given = {
        "endpoint": "https://h",
        "region": "eu-1",
        "access_key_id": "a",
        "secret_access_key": "s",
        "session_token": "t",
    }
    assert config("s3://b", **given) == {**given, "bucket": "b"}
    assert config("gs://b", endpoint="https://h", anonymous="true")["base_url"] == "https://h"
    assert config("az://c", account_name="n", bearer_token="t")["token"] == "t"


def test_only_reads_are_repeated_by_the_library():
    store = opened("s3://b")
    assert isinstance(store, CloudStore)
    assert store._writer.retry_config["max_retries"] == 0
    assert store._reader.retry_config["max_retries"] > 0


def test_the_folder_of_a_bucket_is_where_both_clients_work():
    store = opened("s3://b/lake/here")
    assert isinstance(store, CloudStore)
    assert store._writer.prefix == store._reader.prefix == "lake/here"


# Secrets


@pytest.mark.parametrize("url", ["lake", "memory://x", "s3://b/../x", "ftp://b", "s3://b", "gs://b", "az://c"])
@pytest.mark.parametrize(
    "word", ["secret_access_key", "session_token", "bearer_token", "account_key", "client_secret", "sas_key"]
)
def test_hazard_16_a_refusal_never_shows_the_value_of_a_secret_option(url, word):
    try:
        opened(url, **{word: CANARY, "allow_http": "maybe"})
    except ArcoError as refused:
        text = f"{refused!r} {refused} {refused.one_line()}"
    else:
        pytest.fail("a switch that is neither on nor off was taken")
    assert CANARY not in text


def test_hazard_16_an_opened_store_does_not_print_its_secrets():
    store = opened("s3://b", access_key_id="a", secret_access_key=CANARY, session_token=CANARY)
    assert isinstance(store, CloudStore)
    assert CANARY not in f"{store!r} {store} {store._writer!r} {store._reader}"
