"""Places outside the root that an operator lists: exactly those, however a location is spelled."""

import pytest

from arco.catalog.policy import LocationPolicy, opening_of
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import InvalidInput
from arco.storage.cloud import CloudStore
from arco.storage.local import LocalStore

AZURE = "abfss://other@acct.dfs.core.windows.net"
KEYS = {"access_key_id": "a", "secret_access_key": "b", "endpoint": "http://store:9", "allow_http": "true"}


def policy(*prefixes: str) -> LocationPolicy:
    """Of a server whose root is a bucket of S3."""
    return LocationPolicy.of(prefixes, SystemClock(), SeededEntropy("policy"), "s3://lake/here", KEYS)


@pytest.mark.parametrize("prefix", ["file:elsewhere", "file:./elsewhere", "file:~/elsewhere"])
def test_a_place_from_here_is_no_place(prefix):
    with pytest.raises(InvalidInput, match="cannot be allowed"):
        policy(prefix)


@pytest.mark.parametrize(
    ("prefix", "location", "key"),
    [
        ("s3://other", "s3://other/db/t", "db/t"),
        ("s3://other/", "s3a://other/db/t", "db/t"),
        ("s3a://other/shared/", "s3://other/shared/t/metadata/1.json", "t/metadata/1.json"),
        ("s3://lake/there", "s3://lake/there/t", "t"),
        ("gs://other/shared", "gs://other/shared/t", "t"),
        (AZURE, f"{AZURE}/t", "t"),
        (f"{AZURE}/shared", f"{AZURE}/shared/a%20b", "a%20b"),
        ("file:/elsewhere", "/elsewhere/t", "t"),
    ],
)
def test_what_lies_in_a_listed_place_is_reached_there(prefix, location, key):
    listed = policy(prefix)
    assert listed.allows(location)
    store, found = listed.outside(location)
    assert found == key
    assert isinstance(store, LocalStore if prefix.startswith("file:") else CloudStore)


@pytest.mark.parametrize(
    "location",
    [
        "s3://other/share",
        "s3://other/shared-by-others/t",
        "s3://other/sharedx",
        "s3://other-bucket/shared/t",
        "s3://Other/shared/t",
        "s3://other/t",
        "s3://other/shared/../t",
        "s3://other/shared/%2e%2e/t",
        "s3://other/shared/%2E%2E/%2e./t",
        "s3://other/shared/./t",
        "s3://other/shared//t",
        "s3://other/shared/a%2fb",
        "s3://other/shared/a\\..\\b",
        "gs://other/shared/t",
        "s3:/other/shared/t",
        "https://other/shared/t",
        "file:///other/shared/t",
        "/other/shared/t",
    ],
)
def test_what_only_looks_listed_is_not(location):
    listed = policy("s3://other/shared")
    assert not listed.allows(location)
    assert listed.outside(location) is None


@pytest.mark.parametrize(
    "prefix",
    [
        "s3://",
        "s3:other",
        "s3://other/../x",
        "s3://other/a//b",
        "s3://other/%2e%2e",
        "s3://user:word@other/x",
        "s3://other/x?y=1",
        "s3://other/x#y",
        "http://other/x",
        "hdfs://other/x",
        "memory://other",
        "abfss://other/x",
        "abfss://@acct.dfs.core.windows.net/x",
        "abfss://other@/x",
        "abfss://a@b@acct.dfs.core.windows.net/x",
        "file:/a/../b",
        "",
    ],
)
def test_what_names_no_place_is_not_listed(prefix):
    with pytest.raises(InvalidInput):
        policy(prefix)


@pytest.mark.parametrize(
    ("prefix", "base", "url", "has_keys"),
    [
        ("s3://other/x", "s3://lake", "s3://other/x", True),
        ("gs://other", "gs://lake", "gs://other", True),
        (f"{AZURE}/x", "abfss://lake@acct.dfs.core.windows.net/y", "az://other/x", True),
        ("abfss://other@acct.dfs.local", "abfss://lake@acct.dfs.local", "az://other", True),
        ("gs://other", "s3://lake", "gs://other", False),
        ("s3://other", "file:///lake", "s3://other", False),
        ("s3://other", "abfss://lake@acct.dfs.core.windows.net", "s3://other", False),
        (f"{AZURE}/x", "s3://lake", "az://other/x", False),
        (f"{AZURE}/x", "abfss://lake@stranger.dfs.core.windows.net", "az://other/x", False),
        ("file:///elsewhere", "s3://lake", "/elsewhere", False),
    ],
)
def test_the_roots_settings_are_for_its_own_store_alone(prefix, base, url, has_keys):
    """Given to another they would be refused, or shown to a stranger."""
    opened, settings = opening_of(prefix, base, {"secret": "word"})
    assert opened == url
    assert ("secret" in settings) is has_keys
    assert not url.startswith("az:") or has_keys or settings == {"account_name": "acct"}
