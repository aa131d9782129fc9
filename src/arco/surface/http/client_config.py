"""What clients are told about the store, so that they read and write table files with no storage settings of their own.

It travels in `config` of every answer that loads or creates a table. A word of ours stands for several of theirs: Iceberg's
Java libraries (Spark, Flink, Trino), PyIceberg, DuckDB and iceberg-rust each read what they know and skip the rest. A folder
needs nothing: all of them choose their file access by the scheme of a location.

Secrets are handed out only if they were given to Arco as options, and not at all by a server that vends: credentials of one table
and for one hour are another file's business. What the server finds in its environment stays there.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from arco.kernel.errors import InvalidInput
from arco.storage.roots import Root, is_on

# What obstore signs with if nothing says otherwise; PyIceberg would ask Amazon for the bucket's region instead.
_REGION = "us-east-1"
# PyArrow takes no token without an end, and nobody told us this one's. Nanoseconds since 1970 overflow in 2262.
_END_MS = "7258118400000"
_AZURE = "core.windows.net"

_WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "s3": {
        "endpoint": ("s3.endpoint",),
        "region": ("s3.region", "client.region"),
        "access_key_id": ("s3.access-key-id",),
        "secret_access_key": ("s3.secret-access-key",),
        "session_token": ("s3.session-token",),
        "sse_kms_key_id": ("s3.sse.key", "s3.sse-kms-key-id"),
    },
    "gs": {
        "endpoint": ("gcs.service.host",),
        "bearer_token": ("gcs.oauth2.token",),
    },
    "az": {
        "account_name": ("adls.account-name", "adls.auth.shared-key.account.name"),
        "account_key": ("adls.account-key", "adls.auth.shared-key.account.key"),
        "sas_key": ("adls.sas-token", "adls.sas-token.{host}"),
        "bearer_token": ("adls.token",),
        "tenant_id": ("adls.tenant-id",),
        "client_id": ("adls.client-id",),
        "client_secret": ("adls.client-secret",),
    },
}

# What lets its holder in. Names of accounts and places of keys do not.
SECRETS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "bearer_token", "account_key", "sas_key", "client_id"}
    | {"client_secret", "tenant_id"}
)


_SECRETS_THEIRS = {theirs for words in _WORDS.values() for ours in SECRETS for theirs in words.get(ours, ())}


def base_uri(root: Root, known: Mapping[str, str]) -> str:
    """Where clients find the root's files. `known` is what options and environment say about the store."""
    if root.kind == "file":
        return f"file://{Path(root.path).resolve()}"
    if root.kind == "az":
        # No client knows az:// as we do; this form names the account, which Java and DuckDB need.
        return f"abfss://{root.bucket}@{azure_host(known)}/{root.path}".rstrip("/")
    return str(root).rstrip("/")


def client_config(root: Root, known: Mapping[str, str]) -> dict[str, str]:
    """The properties that a table's answer carries."""
    words = _WORDS.get(root.kind, {})
    host = azure_host(known) if root.kind == "az" else ""
    told = {
        theirs.format(host=host): known[ours]
        for ours, all_of_them in words.items()
        if ours in known
        for theirs in all_of_them
    }
    match root.kind:
        case "s3":
            return told | _s3(known)
        case "gs":
            return told | _gcs(known)
        case "az":
            return told | _azure(known, host)
        case _:
            return told


def without_secrets(known: Mapping[str, str]) -> dict[str, str]:
    """What is known of a store, for clients that get their keys otherwise."""
    return {word: value for word, value in known.items() if word not in SECRETS}


def has_secrets(told: Mapping[str, str]) -> bool:
    """Whether what clients are told lets them in."""
    return not _SECRETS_THEIRS.isdisjoint(told)


def client_defaults(root: Root) -> dict[str, str]:
    """What every client starts from, and may say otherwise: properties of the catalog, before there is a table.

    A table that is only staged has no file yet, and PyIceberg falls back to PyArrow, which up to 0.12 finds no container of
    Azure; what it takes for tables that are there works.
    """
    return {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"} if root.kind == "az" else {}


def _s3(known: Mapping[str, str]) -> dict[str, str]:
    region = known.get("region", _REGION)
    # A server other than Amazon's is reached by path, unless told: that is how Arco itself reaches it.
    by_path = is_on(known, "path_style") if "path_style" in known else "endpoint" in known
    told = {"s3.region": region, "client.region": region, "s3.path-style-access": str(by_path).lower()}
    if "path_style" in known and not by_path:
        told["s3.force-virtual-addressing"] = "true"
    if is_on(known, "anonymous"):
        told |= {
            "s3.anonymous": "true",
            "client.credentials-provider": "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider",
        }
    if "sse_kms_key_id" in known:
        told |= {"s3.sse.type": "kms", "s3.server-side-encryption": "aws:kms"}
    return told


def _gcs(known: Mapping[str, str]) -> dict[str, str]:
    told = {"gcs.oauth2.token-expires-at": _END_MS} if "bearer_token" in known else {}
    return told | ({"gcs.no-auth": "true"} if is_on(known, "anonymous") else {})


def _azure(known: Mapping[str, str], host: str) -> dict[str, str]:
    told = {"adls.anon": "true"} if is_on(known, "anonymous") else {}
    suffix, endpoint = _azure_suffix(known), known.get("endpoint")
    if suffix is not None and suffix != _AZURE:
        told |= {
            "adls.account-host": f"{known['account_name']}.blob.{suffix}",
            "adls.blob-storage-authority": f".blob.{suffix}",
            "adls.dfs-storage-authority": f".dfs.{suffix}",
        }
    elif suffix is None and endpoint:
        # Java takes an address of its own for one account under this name; it is no connection string.
        told[f"adls.connection-string.{host}"] = endpoint
        told |= _azure_stand_in(known, endpoint)
    return told


def _azure_stand_in(known: Mapping[str, str], endpoint: str) -> dict[str, str]:
    """A server that is not Azure's, as Python's libraries want it: adlfs in a connection string, PyArrow in parts."""
    account, parts = known["account_name"], urlsplit(endpoint)
    told = {}
    words = {"AccountKey": "account_key", "SharedAccessSignature": "sas_key"}
    given = [f"{theirs}={known[ours]}" for theirs, ours in words.items() if ours in known]
    if given:
        told["adls.connection-string"] = ";".join((f"BlobEndpoint={endpoint}", f"AccountName={account}", given[0]))
    if parts.path.strip("/") == account:  # PyArrow puts the account there itself
        for api in ("blob", "dfs"):
            told |= {f"adls.{api}-storage-authority": parts.netloc, f"adls.{api}-storage-scheme": parts.scheme}
    return told


def azure_host(known: Mapping[str, str]) -> str:
    account = known.get("account_name")
    if not account:
        raise InvalidInput(
            "the account of the Azure root is not known",
            hint="pass account_name as an option, or set AZURE_STORAGE_ACCOUNT_NAME",
        )
    return f"{account}.dfs.{_azure_suffix(known) or _AZURE}"


def _azure_suffix(known: Mapping[str, str]) -> str | None:
    """The domain of the account's cloud, if the endpoint is the account's own host in one."""
    host = urlsplit(known.get("endpoint", "")).hostname or ""
    account, _, suffix = host.partition(".blob.")
    return suffix if suffix and account == known.get("account_name") else None
