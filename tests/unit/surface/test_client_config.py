"""What clients are told about the store: enough to work with no settings of their own, and no secret that was not given."""

import pytest
from pyiceberg import io as pyiceberg_io

from arco.kernel.errors import InvalidInput
from arco.storage.roots import parse_root
from arco.surface.cli.settings import load_settings
from arco.surface.http.client_config import base_uri, client_config

S3_KEYS = {"access_key_id": "AKIA", "secret_access_key": "hush", "session_token": "brief"}
AZURE = {"account_name": "acme"}
AZURE_HOST = "acme.dfs.core.windows.net"


def told(root: str, **known: str) -> dict[str, str]:
    return client_config(parse_root(root), known)


# A folder


def test_a_folder_needs_no_settings(tmp_path) -> None:
    assert told(str(tmp_path)) == {}


def test_a_folder_is_found_by_its_whole_path(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert base_uri(parse_root("lake"), {}) == f"file://{tmp_path.resolve()}/lake"
    assert base_uri(parse_root(f"file://{tmp_path}/lake/"), {}) == f"file://{tmp_path.resolve()}/lake"


# S3


def test_the_keys_of_an_s3_store_reach_every_client() -> None:
    found = told("s3://b/lake", region="eu-west-1", **S3_KEYS)
    assert found["s3.access-key-id"] == "AKIA"
    assert found["s3.secret-access-key"] == "hush"
    assert found["s3.session-token"] == "brief"
    # Java reads the one, PyIceberg the other; DuckDB and iceberg-rust take both.
    assert found["client.region"] == found["s3.region"] == "eu-west-1"


def test_the_region_is_said_even_if_nobody_gave_it() -> None:
    # PyIceberg would ask Amazon, and Java would refuse to start.
    found = told("s3://b", endpoint="http://127.0.0.1:9000")
    assert found["client.region"] == found["s3.region"] == "us-east-1"


@pytest.mark.parametrize(
    ("known", "by_path", "by_host"),
    [
        ({}, "false", None),
        ({"endpoint": "http://127.0.0.1:9000"}, "true", None),
        ({"endpoint": "http://127.0.0.1:9000", "path_style": "true"}, "true", None),
        ({"endpoint": "http://127.0.0.1:9000", "path_style": "1"}, "true", None),
        ({"endpoint": "https://s3.example.com", "path_style": "false"}, "false", "true"),
    ],
)
def test_clients_address_buckets_as_arco_does(known: dict[str, str], by_path: str, by_host: str | None) -> None:
    found = told("s3://b", **known)
    assert found["s3.path-style-access"] == by_path
    assert found.get("s3.force-virtual-addressing") == by_host


def test_a_public_bucket_is_read_without_keys() -> None:
    found = told("s3://b", anonymous="true")
    assert found["s3.anonymous"] == "true"
    assert found["client.credentials-provider"].endswith(".AnonymousCredentialsProvider")
    assert "s3.anonymous" not in told("s3://b", anonymous="false")


def test_a_key_for_encryption_is_used_by_clients_too() -> None:
    found = told("s3://b", sse_kms_key_id="k")
    assert {found["s3.sse.type"], found["s3.sse.key"]} == {"kms", "k"}
    assert {found["s3.server-side-encryption"], found["s3.sse-kms-key-id"]} == {"aws:kms", "k"}


# Google


def test_a_google_token_reaches_clients_with_an_end_that_they_can_read() -> None:
    found = told("gs://b/lake", bearer_token="t", endpoint="http://127.0.0.1:4443")
    assert found["gcs.oauth2.token"] == "t"
    assert found["gcs.service.host"] == "http://127.0.0.1:4443"
    assert int(found["gcs.oauth2.token-expires-at"]) * 1_000_000 < 2**63
    assert base_uri(parse_root("gs://b/lake"), {}) == "gs://b/lake"


def test_a_google_key_file_stays_on_the_server() -> None:
    assert told("gs://b", application_credentials="/etc/key.json", service_account_key="{}") == {}
    assert told("gs://b", anonymous="true") == {"gcs.no-auth": "true"}


# Azure


def test_an_azure_root_is_named_as_clients_name_it() -> None:
    assert base_uri(parse_root("az://box/lake"), AZURE) == f"abfss://box@{AZURE_HOST}/lake"
    assert base_uri(parse_root("az://box"), AZURE) == f"abfss://box@{AZURE_HOST}"


def test_an_azure_root_needs_its_account() -> None:
    with pytest.raises(InvalidInput, match="account"):
        base_uri(parse_root("az://box"), {})


def test_the_key_of_an_azure_account_reaches_every_client() -> None:
    found = told("az://box", account_key="hush", **AZURE)
    assert found["adls.account-name"] == found["adls.auth.shared-key.account.name"] == "acme"
    assert found["adls.account-key"] == found["adls.auth.shared-key.account.key"] == "hush"


def test_an_azure_signature_is_named_by_its_host() -> None:
    found = told("az://box", sas_key="sv=1", **AZURE)
    assert found["adls.sas-token"] == found[f"adls.sas-token.{AZURE_HOST}"] == "sv=1"


def test_other_azure_clouds_keep_their_domain() -> None:
    elsewhere = {"endpoint": "https://acme.blob.core.chinacloudapi.cn", **AZURE}
    assert base_uri(parse_root("az://box"), elsewhere) == "abfss://box@acme.dfs.core.chinacloudapi.cn"
    assert told("az://box", **elsewhere) == {
        "adls.account-name": "acme",
        "adls.auth.shared-key.account.name": "acme",
        "adls.account-host": "acme.blob.core.chinacloudapi.cn",
        "adls.blob-storage-authority": ".blob.core.chinacloudapi.cn",
        "adls.dfs-storage-authority": ".dfs.core.chinacloudapi.cn",
    }


def test_the_usual_azure_cloud_needs_no_address() -> None:
    found = told("az://box", endpoint="https://acme.blob.core.windows.net", **AZURE)
    assert found == told("az://box", **AZURE)


def test_a_server_that_stands_in_for_azure_is_found_by_its_address() -> None:
    found = told("az://box", endpoint="http://127.0.0.1:10000/acme", **AZURE)
    assert found[f"adls.connection-string.{AZURE_HOST}"] == "http://127.0.0.1:10000/acme"
    assert found["adls.blob-storage-authority"] == found["adls.dfs-storage-authority"] == "127.0.0.1:10000"
    assert found["adls.blob-storage-scheme"] == found["adls.dfs-storage-scheme"] == "http"


def test_a_stand_in_whose_address_has_no_account_is_not_told_to_those_who_would_add_it() -> None:
    found = told("az://box", endpoint="https://files.example.com", account_key="hush", **AZURE)
    assert not [name for name in found if "storage-authority" in name]
    assert found["adls.connection-string"] == "BlobEndpoint=https://files.example.com;AccountName=acme;AccountKey=hush"


@pytest.mark.parametrize(
    ("secrets", "end"),
    [
        ({"account_key": "hush"}, ";AccountName=acme;AccountKey=hush"),
        ({"sas_key": "sv=1"}, ";AccountName=acme;SharedAccessSignature=sv=1"),
        ({"account_key": "hush", "sas_key": "sv=1"}, ";AccountName=acme;AccountKey=hush"),
    ],
)
def test_a_stand_in_is_told_in_one_string_with_its_key(secrets: dict[str, str], end: str) -> None:
    found = told("az://box", endpoint="http://127.0.0.1:10000/acme", **AZURE, **secrets)
    assert found["adls.connection-string"] == f"BlobEndpoint=http://127.0.0.1:10000/acme{end}"
    assert "adls.connection-string" not in told("az://box", endpoint="http://127.0.0.1:10000/acme", **AZURE)


# Secrets


SECRETS = {
    "s3://b": {
        "AWS_ACCESS_KEY_ID": "canary",
        "AWS_SECRET_ACCESS_KEY": "canary",
        "AWS_SESSION_TOKEN": "canary",
        "AWS_REGION": "eu-1",
        "AWS_ENDPOINT_URL": "https://s3.example.com",
    },
    "gs://b": {"GOOGLE_APPLICATION_CREDENTIALS": "canary", "GOOGLE_SERVICE_ACCOUNT_KEY": "canary"},
    "az://b": {
        "AZURE_STORAGE_ACCOUNT_NAME": "acme",
        "AZURE_STORAGE_ACCOUNT_KEY": "canary",
        "AZURE_CLIENT_SECRET": "canary",
        "AZURE_STORAGE_SAS_KEY": "canary",
    },
}


@pytest.fixture(params=SECRETS)
def ambient(request: pytest.FixtureRequest, monkeypatch, tmp_path) -> str:
    monkeypatch.chdir(tmp_path)
    for name, value in SECRETS[request.param].items():
        monkeypatch.setenv(name, value)
    return request.param


def test_a_secret_of_the_environment_is_not_handed_out(ambient: str) -> None:
    settings = load_settings(ambient, [])
    found = client_config(parse_root(settings.root), settings.known)
    assert "canary" not in str(found)


def test_what_the_environment_says_without_secrets_is_handed_out(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in SECRETS["s3://b"].items():
        monkeypatch.setenv(name, value)
    settings = load_settings("s3://b", ["region=eu-2"])
    found = client_config(parse_root(settings.root), settings.known)
    assert (found["s3.endpoint"], found["s3.region"]) == ("https://s3.example.com", "eu-2")
    # An option is for the store; the environment's words must not be forced on it a second time.
    assert settings.options == {"region": "eu-2"}


# Names


def test_pyiceberg_knows_the_names_that_are_meant_for_it() -> None:
    known = {value for name, value in vars(pyiceberg_io).items() if name.isupper() and isinstance(value, str)}
    meant = {
        *("s3.endpoint", "s3.region", "s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.anonymous"),
        *("s3.force-virtual-addressing", "s3.server-side-encryption", "s3.sse-kms-key-id"),
        *("gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.service.host"),
        *("adls.account-name", "adls.account-key", "adls.sas-token", "adls.token", "adls.tenant-id", "adls.anon"),
        *("adls.client-id", "adls.client-secret", "adls.connection-string", "adls.account-host"),
        *("adls.blob-storage-authority", "adls.dfs-storage-authority"),
        *("adls.blob-storage-scheme", "adls.dfs-storage-scheme"),
    }
    assert meant <= known
    everything = (
        told("s3://b", endpoint="https://h", path_style="false", anonymous="true", sse_kms_key_id="k", **S3_KEYS)
        | told("gs://b", bearer_token="t", endpoint="https://h")
        | told(
            "az://b",
            **AZURE,
            **dict.fromkeys(("account_key", "sas_key", "bearer_token", "tenant_id", "client_id", "client_secret"), "x"),
            anonymous="true",
            endpoint="http://127.0.0.1:10000/acme",
        )
        | told("az://b", **AZURE, endpoint="https://acme.blob.core.chinacloudapi.cn")
    )
    assert meant <= set(everything)
