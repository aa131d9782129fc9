"""The names of the settings that clients are handed, looked up in the clients themselves."""

import zipfile
from pathlib import Path

import pytest

from arco.storage.roots import parse_root
from arco.surface.http.client_config import client_config

from .duckdb_session import extension_file
from .spark_session import RUNTIME, jars

PACKAGE = "org/apache/iceberg"
ROOTS = {
    "s3://b": {
        "endpoint": "https://s3.example.com",
        "region": "eu-1",
        "path_style": "true",
        "sse_kms_key_id": "k",
        "access_key_id": "a",
        "secret_access_key": "s",
        "session_token": "t",
    },
    "gs://b": {"endpoint": "https://gcs.example.com", "bearer_token": "t", "anonymous": "true"},
    "az://b": {
        "endpoint": "http://127.0.0.1:1/acme",
        "account_name": "acme",
        "account_key": "k",
        "sas_key": "s",
        "bearer_token": "t",
    },
}
# What each family of clients must find among them; a name that ends in a dot has the host of an account after it.
JAVA = {
    "s3://b": {
        *("s3.endpoint", "client.region", "s3.path-style-access", "s3.access-key-id", "s3.secret-access-key"),
        *("s3.session-token", "s3.sse.type", "s3.sse.key"),
    },
    "gs://b": {"gcs.service.host", "gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.no-auth"},
    "az://b": {
        *("adls.auth.shared-key.account.name", "adls.auth.shared-key.account.key", "adls.sas-token."),
        *("adls.connection-string.", "adls.token"),
    },
}
DUCKDB = {
    "s3://b": {
        *("s3.endpoint", "s3.region", "s3.path-style-access", "s3.access-key-id", "s3.secret-access-key"),
        "s3.session-token",
    },
    "gs://b": {"gcs.oauth2.token"},
    "az://b": {"adls.sas-token."},
}
JAVA_CLASSES = {
    "s3://b": ("aws/s3/S3FileIOProperties", "aws/AwsClientProperties"),
    "gs://b": ("gcp/GCPProperties",),
    "az://b": ("azure/AzureProperties",),
}


@pytest.mark.parametrize("root", ROOTS)
def test_java_is_told_what_it_reads(root: str) -> None:
    with zipfile.ZipFile(jars(RUNTIME)) as jar:
        known = b"".join(jar.read(f"{PACKAGE}/{name}.class") for name in JAVA_CLASSES[root])
    assert [name for name in JAVA[root] if name.encode() not in known] == []
    assert untold(root, JAVA[root]) == []


@pytest.mark.parametrize("root", ROOTS)
def test_duckdb_is_told_what_it_reads(root: str) -> None:
    known = Path(extension_file("iceberg")).read_bytes()
    assert [name for name in DUCKDB[root] if name.encode() not in known] == []
    assert untold(root, DUCKDB[root]) == []


def test_duckdb_takes_no_address_for_google_and_azure() -> None:
    # docs/clients/duckdb.md says so, and what it means.
    known = Path(extension_file("iceberg")).read_bytes()
    assert b"s3.endpoint" in known
    for name in ("gcs.service.host", "adls.connection-string", "adls.account-host", "adls.blob-storage-authority"):
        assert name.encode() not in known


def untold(root: str, names: set[str]) -> list[str]:
    told = client_config(parse_root(root), ROOTS[root])
    return [
        name for name in names if not (any(one.startswith(name) for one in told) if name.endswith(".") else name in told)
    ]
