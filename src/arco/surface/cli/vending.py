"""From the flags of `arco serve` to what it hands out. Everything that can be wrong is said before the server starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from arco.govern.assume_role import AssumeRole, Role
from arco.govern.aws_signature import AwsKeys
from arco.govern.downscoped_tokens import EXCHANGE, DownscopedTokens, GivenToken, MachineToken, TokenSource
from arco.govern.given_keys import GivenKeys
from arco.govern.places import Validation
from arco.govern.shared_access import SharedAccess
from arco.govern.token_services import check_endpoint, send
from arco.govern.vending import Access, Vending, Vendor
from arco.kernel.clock import Clock
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import VENDED_DURATION_S, VENDED_DURATION_S_MAX, VENDED_SHORTEST_S
from arco.kernel.secret import Secret
from arco.storage.roots import Root, is_on, parse_root
from arco.surface.cli.settings import Settings, load_google_key, load_store_secret
from arco.surface.http.client_config import azure_host, base_uri, client_config, without_secrets


class Mode(StrEnum):
    """Who makes what clients get. `off` leaves it to the options of the store, as they were given."""

    OFF = "off"
    STATIC = "static"
    STS = "sts"
    GCS = "gcs"
    SAS = "sas"


_KIND = {Mode.STS: "s3", Mode.GCS: "gs", Mode.SAS: "az"}


@dataclass(frozen=True, slots=True)
class VendFlags:
    """What the command line says about credentials."""

    mode: Mode = Mode.OFF
    role: str | None = None
    external_id: str | None = None
    endpoint: str | None = None
    duration_s: int = VENDED_DURATION_S
    read_only: bool = False

    def check(self, root: Root) -> None:
        """What no mode can do anything with."""
        if not VENDED_SHORTEST_S <= self.duration_s <= VENDED_DURATION_S_MAX:
            hint = f"{VENDED_SHORTEST_S} to {VENDED_DURATION_S_MAX} seconds"
            raise InvalidInput(f"--vend-duration {self.duration_s}", hint=hint)
        if self.mode in _KIND and root.kind != _KIND[self.mode]:
            raise InvalidInput(
                f"--vend {self.mode} is for roots on {_KIND[self.mode]}://, and this one is {root.kind}://",
                hint="docs/credentials.md says which mode goes with which store",
            )
        if self.mode is Mode.STATIC and root.kind in {"file", "memory"}:
            raise InvalidInput("a folder has no keys to pass on", hint="leave --vend out")
        if self.mode is Mode.STATIC and self.read_only:
            raise InvalidInput("keys that are passed on cannot be held to reading", hint="use a mode that makes new ones")
        if self.role is not None and self.mode is not Mode.STS:
            raise InvalidInput("--vend-role is for --vend sts", hint="add --vend sts, or leave it out")


def told_to_clients(flags: VendFlags, root: Root, known: Mapping[str, str]) -> dict[str, str]:
    """The properties of every table. A server that vends keeps its own keys out of them."""
    return client_config(root, known if flags.mode is Mode.OFF else without_secrets(known))


def open_vending(flags: VendFlags, settings: Settings, clock: Clock) -> Vending | None:
    """What this server hands out, or why it cannot. Nobody is asked for anything yet."""
    root, known = parse_root(settings.root), settings.known
    flags.check(root)
    if flags.mode is Mode.OFF:
        return None
    access = Access.READ if flags.read_only else Access.WRITE
    validation = Validation(root, base_uri(root, known))
    return Vending(validation, _vendor(flags, settings, root, clock), access, clock)


def _vendor(flags: VendFlags, settings: Settings, root: Root, clock: Clock) -> Vendor:
    match flags.mode:
        case Mode.STS:
            return assume_role(flags, settings, clock)
        case Mode.GCS:
            return _downscoped(flags, settings, clock)
        case Mode.SAS:
            return _shared_access(flags, settings, clock)
        case _:
            known = settings.known
            open_ones = client_config(root, without_secrets(known))
            words = client_config(root, known).items()
            return GivenKeys({word: Secret(value) for word, value in words if open_ones.get(word) != value})


def assume_role(flags: VendFlags, settings: Settings, clock: Clock) -> AssumeRole:
    known = settings.known
    if flags.role is None:
        raise InvalidInput("--vend sts needs a role", hint="add --vend-role arn:aws:iam::123456789012:role/name")
    key_id, secret = (load_store_secret(known, word) for word in ("access_key_id", "secret_access_key"))
    if key_id is None or secret is None:
        raise InvalidInput(
            "--vend sts needs keys of its own to ask the token service with",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass them as options",
        )
    region = known.get("region", "us-east-1")
    endpoint = check_endpoint(
        flags.endpoint or f"https://sts.{region}.amazonaws.com", allow_http=is_on(known, "allow_http")
    )
    role = Role(flags.role, endpoint, region, flags.duration_s, flags.external_id, known.get("sse_kms_key_id"))
    keys = AwsKeys(key_id.reveal(), secret, load_store_secret(known, "session_token"))
    return AssumeRole(role, keys, send, clock)


def _downscoped(flags: VendFlags, settings: Settings, clock: Clock) -> DownscopedTokens:
    known = settings.known
    allow_http = is_on(known, "allow_http")
    endpoint = check_endpoint(flags.endpoint or EXCHANGE, allow_http=allow_http)
    return DownscopedTokens(_token_source(known, clock, allow_http=allow_http), send, clock, flags.duration_s, endpoint)


def _token_source(known: Mapping[str, str], clock: Clock, *, allow_http: bool) -> TokenSource:
    """Where the server's own token comes from: what it was given, the key of its account, or the machine."""
    given = known.get("bearer_token")
    if given is not None:
        return GivenToken(Secret(given))
    document = load_google_key(known)
    if document is None:
        return MachineToken(send, clock)
    # Signing needs a library that takes its time to load, and few servers need it.
    module = import_module("arco.govern.service_account")
    source: TokenSource = module.ServiceAccountToken(
        module.ServiceAccountKey.parse(document, allow_http=allow_http), send, clock
    )
    return source


def _shared_access(flags: VendFlags, settings: Settings, clock: Clock) -> SharedAccess:
    known = settings.known
    key = load_store_secret(known, "account_key")
    if key is None:
        raise InvalidInput(
            "--vend sas needs the account's key to sign with",
            hint="set AZURE_STORAGE_ACCOUNT_KEY, or pass account_key as an option",
        )
    protocol = "https,http" if known.get("endpoint", "").startswith("http://") else "https"
    return SharedAccess(known["account_name"], azure_host(known), key, clock, flags.duration_s, protocol)
