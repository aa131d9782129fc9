"""From a root's URL to its store: `file://`, `s3://`, `gs://`, `az://`, or a plain folder.

Options are the same few words for every store and are checked before anything is opened. What is not given is taken from
the usual environment variables of each cloud (AWS_*, GOOGLE_*, AZURE_*), which the client library reads itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.storage.cloud import CloudStore, Family
from arco.storage.local import LocalStore
from arco.storage.memory import MemoryStore
from arco.storage.port import ObjectStore, check_key

_YES = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

# Our word for an option -> obstore's, per family. A leading "!" marks a switch that is inverted.
_OPTIONS: dict[str, dict[str, str]] = {
    "s3": {
        "endpoint": "endpoint",
        "region": "region",
        "access_key_id": "access_key_id",
        "secret_access_key": "secret_access_key",
        "session_token": "session_token",
        "path_style": "!virtual_hosted_style_request",
        "anonymous": "skip_signature",
        "express": "s3_express",
        "sse_kms_key_id": "sse_kms_key_id",
    },
    "gs": {
        "endpoint": "base_url",
        "bearer_token": "bearer_token",
        "application_credentials": "application_credentials",
        "service_account_key": "service_account_key",
        "anonymous": "skip_signature",
    },
    "az": {
        "endpoint": "endpoint",
        "account_name": "account_name",
        "account_key": "account_key",
        "sas_key": "sas_key",
        "tenant_id": "tenant_id",
        "client_id": "client_id",
        "client_secret": "client_secret",
        "bearer_token": "token",
        "anonymous": "skip_signature",
    },
}
_SWITCHES = {"path_style", "anonymous", "express"}


@dataclass(frozen=True, slots=True)
class Root:
    """A checked URL: which kind of store, which bucket, which folder of it."""

    kind: str
    bucket: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind}://{self.bucket}{'/' if self.bucket and self.path else ''}{self.path}"

    @property
    def place(self) -> str:
        """The root as any process of this machine opens it, wherever that was started."""
        return str(Path(self.path).resolve()) if self.kind == "file" else str(self)


def parse_root(url: str) -> Root:
    """The parts of a root's URL, or InvalidInput with what to write instead."""
    if not url.strip():
        raise InvalidInput("no root given", hint="pass --root, set ARCO_ROOT, or write root in arco.toml")
    if any(character < " " or character == "\x7f" for character in url):
        raise InvalidInput("the root's URL has a control character", hint="write it without")
    if "://" not in url:
        return Root("file", "", _folder(url))
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidInput(f"{clip(url)!r} is not a URL", hint="write scheme://bucket/folder") from None
    if "?" in url or "#" in url or "@" in parts.netloc:
        # Not repeated: what stands there may be a secret.
        raise InvalidInput("the root's URL has more than a bucket and a folder", hint="pass settings as options")
    match parts.scheme:
        case "file":
            if parts.netloc not in {"", "localhost"}:
                raise InvalidInput(f"{clip(url)!r} names a host", hint="write file:///folder, with three slashes")
            return Root("file", "", _folder(unquote(parts.path)))
        case "memory":
            return Root("memory", parts.netloc, "")
        case "s3" | "gs" | "az":
            if not parts.netloc:
                raise InvalidInput(f"{clip(url)!r} names no bucket", hint=f"write {parts.scheme}://bucket/folder")
            path = parts.path.strip("/")
            return Root(parts.scheme, parts.netloc, check_key(path) if path else "")
        case other:
            raise InvalidInput(
                f"{clip(other)!r} is not a kind of store",
                hint="use file://, s3://, gs:// or az://, or a plain folder",
            )


def open_root(url: str, options: Mapping[str, str], clock: Clock, entropy: Entropy, *, sync: bool = True) -> ObjectStore:
    """The store of a root. Nothing is written and nothing is contacted yet."""
    root = parse_root(url)
    match root.kind:
        case "file":
            _refuse_unknown(options, set(), "a folder")
            return LocalStore(root.path, clock, entropy, sync=sync)
        case "memory":
            _refuse_unknown(options, set(), "memory")
            return MemoryStore(clock)
        case kind:
            return _open_cloud(root, kind, options)


def _open_cloud(root: Root, kind: str, options: Mapping[str, str]) -> CloudStore:
    known = _OPTIONS[kind]
    _refuse_unknown(options, {*known, "allow_http"}, f"{kind}://")
    config: dict[str, object] = {}
    for word, value in options.items():
        if word == "allow_http":
            continue
        theirs = known[word]
        if word in _SWITCHES:
            config[theirs.removeprefix("!")] = _switch(word, value) != theirs.startswith("!")
        else:
            config[theirs] = value
    endpoint = options.get("endpoint", "")
    allow_http = is_on(options, "allow_http")
    if endpoint.startswith("http://") and not allow_http:
        raise InvalidInput("the endpoint is not encrypted", hint="pass allow_http=true to accept that")
    family: Family = "s3" if kind == "s3" else "gs" if kind == "gs" else "az"
    return CloudStore(family, root.bucket, root.path, config, allow_http=allow_http)


def is_on(options: Mapping[str, str], word: str) -> bool:
    """Whether a switch among the options is on; one that is not given is off."""
    return _switch(word, options.get(word, "false"))


def _refuse_unknown(options: Mapping[str, str], known: set[str], what: str) -> None:
    unknown = sorted(set(options) - known)
    if unknown:
        takes = ", ".join(sorted(known)) or "none"
        raise InvalidInput(f"{what} has no option {clip(unknown[0])!r}", hint=f"it takes: {takes}")


def _switch(word: str, value: str) -> bool:
    try:
        return _YES[value.lower()]
    except KeyError:
        raise InvalidInput(f"option {word} is {clip(value)!r}", hint="it must be true or false") from None


def _folder(path: str) -> str:
    if not path or "\0" in path:
        raise InvalidInput(f"{clip(path)!r} is not a folder", hint="write a path such as ./lake")
    return path
