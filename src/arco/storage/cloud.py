"""S3, GCS and Azure through obstore, with the traps of conditional writes closed.

Two clients per store. Conditional writes go through one whose own retries are off: with them on, a write whose reply is
lost is sent again, collides with itself, and is reported as somebody else's. Reads and listings go through one that
retries. What each answer of obstore means here:

  success                         Landed
  PreconditionError               Lost: the server compared and refused (S3 says 404 or 412 for a missing object; both come here)
  AlreadyExistsError              Unknown: it also stands for 409, where nothing exists, and for our own earlier write
  any other error on a write      Unknown: timeouts, resets and 5xx say nothing about the effect
  PermissionDenied, Unauthenticated   StoreRefused: refused before any effect
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, S3Store

from arco.kernel.errors import ArcoError, InvalidInput, StoreRefused, Throttled, Unavailable
from arco.kernel.ids import clip
from arco.kernel.limits import (
    SIGNED_LINK_TTL_S_MAX,
    STORE_CONNECT_TIMEOUT_S,
    STORE_READ_RETRIES_MAX,
    STORE_READ_RETRY_TOTAL_S,
    STORE_REQUEST_TIMEOUT_S,
)
from arco.storage.last_answers import UnderWay
from arco.storage.port import (
    Absent,
    Always,
    Condition,
    Landed,
    Listed,
    Lost,
    Matches,
    Object,
    ObjectInfo,
    Outcome,
    Page,
    SignedMethod,
    Unknown,
    Version,
    check_key,
    check_prefix,
    check_range,
)

Family = Literal["s3", "gs", "az"]
CloudClient = S3Store | GCSStore | AzureStore
T = TypeVar("T")

_CLASSES: dict[Family, type[S3Store | GCSStore | AzureStore]] = {
    "s3": S3Store,
    "gs": GCSStore,
    "az": AzureStore,
}
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
_NO_CREDENTIALS = ("/latest/api/token", "computeMetadata", "metadata.google.internal", "/metadata/identity")
_CREDENTIALS: dict[Family, str] = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass them as options",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or pass application_credentials as an option",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or pass them as options",
}
_ANSWERED, _DUMP = "status code: ", "\n\nDebug source:"
_BUSY = re.compile(r"(429|503)\b|.*(SlowDown|ServerBusy|rateLimitExceeded)", re.DOTALL)


class CloudStore:
    """One bucket (or a folder of it). `config` is obstore's for that family, already validated."""

    def __init__(self, family: Family, bucket: str, prefix: str, config: Mapping[str, Any], *, allow_http: bool) -> None:
        self._under_way = UnderWay()
        self._family = family
        self._where = f"{family}://{bucket}"
        self._honours_start: bool | None = None
        self._is_anonymous = bool(config.get("skip_signature"))
        make = _CLASSES[family]
        options: dict[str, Any] = {
            "timeout": timedelta(seconds=STORE_REQUEST_TIMEOUT_S),
            "connect_timeout": timedelta(seconds=STORE_CONNECT_TIMEOUT_S),
            "allow_http": allow_http,
        }
        common: dict[str, Any] = {"prefix": prefix or None, "config": dict(config), "client_options": options}
        patient: Any = {"max_retries": STORE_READ_RETRIES_MAX, "retry_timeout": timedelta(seconds=STORE_READ_RETRY_TOTAL_S)}
        try:
            self._writer: CloudClient = make(bucket, **common, retry_config={"max_retries": 0})
            self._reader: CloudClient = make(bucket, **common, retry_config=patient)
        except (BaseError, ValueError, TypeError) as error:
            raise InvalidInput(
                f"{self._where} cannot be opened with these settings: {_without_values(_first_line(error), config)}",
                hint="docs/stores.md lists the options of each store",
            ) from None

    async def get(self, key: str) -> Object | None:
        try:
            answer = await self._under_way.begun(obstore.get_async(self._reader, check_key(key)))
            data = bytes(await self._under_way.begun(answer.bytes_async()))
        except (FileNotFoundError, NotFoundError) as error:
            self._check_bucket(error)
            return None
        except BaseError as error:
            raise self._read_failure(error) from error
        return Object(self._info(key, answer.meta), data)

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        check_range(start, length)
        info = await self.head(key)
        if info is None:
            return None
        end = min(start + length, info.size_bytes)
        if start >= end:
            return b""
        try:
            found = obstore.get_range_async(self._reader, key, start=start, end=end)
            return bytes(await self._under_way.begun(found))
        except (FileNotFoundError, NotFoundError) as error:
            self._check_bucket(error)
            return None
        except BaseError as error:
            raise self._read_failure(error) from error

    async def head(self, key: str) -> ObjectInfo | None:
        try:
            return self._info(key, await self._under_way.begun(obstore.head_async(self._reader, check_key(key))))
        except (FileNotFoundError, NotFoundError) as error:
            self._check_bucket(error)
            return None
        except BaseError as error:
            raise self._read_failure(error) from error

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        mode = self._mode(condition)
        try:
            sent = obstore.put_async(self._writer, check_key(key), data, mode=mode, use_multipart=False)
            stored = await self._under_way.begun(sent)
        except PreconditionError:
            return Lost("the object has another version, or does not exist")
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._denied(error) from error
        except AlreadyExistsError:
            return Unknown("the store says the name is taken or contended")
        except (FileNotFoundError, NotFoundError) as error:
            return self._nothing_to_replace(error, condition)
        except BaseError as error:
            if _has_no_credentials(error):
                raise self._denied(error) from error
            return Unknown(_first_line(error))
        return Landed(self._version(stored))

    async def delete(self, key: str) -> None:
        try:
            await self._under_way.begun(obstore.delete_async(self._reader, check_key(key)))
        except (FileNotFoundError, NotFoundError) as error:
            self._check_bucket(error)
        except BaseError as error:
            raise self._read_failure(error) from error

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        check_prefix(prefix)
        entries: list[Listed] = []
        try:
            async for meta in self._from(prefix, after, limit + 1):
                if len(entries) == limit:
                    return Page(tuple(entries), entries[-1].key)
                entries.append(Listed(meta["path"], meta["size"], _milliseconds(meta)))
        except (FileNotFoundError, NotFoundError) as error:
            self._check_bucket(error)
        except BaseError as error:
            raise self._read_failure(error) from error
        return Page(tuple(entries), None)

    async def _from(self, prefix: str, after: str, chunk: int) -> AsyncIterator[Mapping[str, Any]]:
        """The listing after a name, also from a server that ignores where a listing should start.

        Only such a server's listing is cut by comparing names. From one that starts where it is told, everything counts:
        SeaweedFS puts `a/b` before `a-b`, and what a comparison takes for the past may still be to come.
        """
        cut = bool(after) and not await self._starts_where_told(prefix)
        async for batch in self._batches(prefix, after, chunk):
            for meta in batch:
                if not cut or meta["path"] > after:
                    yield meta

    async def _starts_where_told(self, prefix: str) -> bool:
        """Asked once: a listing from past the last possible name is empty, unless the server ignores the place."""
        if self._honours_start is None:
            self._honours_start = True
            async for batch in self._batches(prefix, f"{prefix}\U0010ffff", 1):
                self._honours_start = not batch
                break
        return self._honours_start

    async def _batches(self, prefix: str, after: str, chunk: int) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        found: Any = obstore.list(self._reader, prefix or None, offset=after or None, chunk_size=chunk)
        while True:
            try:
                yield await self._under_way.begun(found.__anext__())
            except StopAsyncIteration:
                return

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        if not 0 < ttl_s <= SIGNED_LINK_TTL_S_MAX:
            raise InvalidInput(f"a link cannot live {ttl_s} s", hint=f"1 to {SIGNED_LINK_TTL_S_MAX} seconds")
        if self._is_anonymous:
            raise self._cannot_sign()
        try:
            signed = obstore.sign_async(self._reader, method.value, check_key(key), timedelta(seconds=ttl_s))
            return await self._under_way.begun(signed)
        except NotSupportedError as error:
            raise self._cannot_sign() from error
        except BaseError as error:
            # A token lets us in and signs nothing: whoever signs was looked for, and nobody is there.
            raise (self._cannot_sign() if _has_no_credentials(error) else self._read_failure(error)) from error

    def _cannot_sign(self) -> InvalidInput:
        return InvalidInput(f"{self._where} cannot sign links", hint="configure a key that can sign")

    async def close(self) -> None:
        # obstore closes its connections when the clients are collected.
        await self._under_way.end()

    def _mode(self, condition: Condition) -> Any:
        match condition:
            case Always():
                return "overwrite"
            case Absent():
                return "create"
            case Matches(version):
                return {"version": version} if self._family == "gs" else {"e_tag": version}

    def _version(self, answer: Mapping[str, Any]) -> Version:
        return Version(str(answer["version" if self._family == "gs" else "e_tag"]))

    def _info(self, key: str, meta: Mapping[str, Any]) -> ObjectInfo:
        return ObjectInfo(key, meta["size"], self._version(meta), _milliseconds(meta))

    def _nothing_to_replace(self, error: Exception, condition: Condition) -> Lost:
        self._check_bucket(error)
        if not isinstance(condition, Matches):
            # A 404 on a plain or creating write cannot mean the object: it is the bucket that is not there.
            raise self._no_bucket() from error
        return Lost("the object does not exist")

    def _check_bucket(self, error: Exception) -> None:
        """An object's absence is definite, unless the bucket is missing: then everything looks absent."""
        if any(sign in str(error) for sign in _NO_BUCKET):
            raise self._no_bucket() from error

    def _no_bucket(self) -> StoreRefused:
        return StoreRefused(f"there is no bucket {self._where}", hint="create it, or correct the root's URL")

    def _denied(self, error: Exception) -> StoreRefused:
        if _has_no_credentials(error):
            return StoreRefused(f"no credentials for {self._where}", hint=_CREDENTIALS[self._family])
        return StoreRefused(f"{self._where} refused the credentials: {_first_line(error)}")

    def _read_failure(self, error: Exception) -> ArcoError:
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or _has_no_credentials(error):
            return self._denied(error)
        text = _first_line(error)
        # Only what the server said: around it stand a key and a duration, whose digits may be those of a status.
        if _BUSY.match(str(error).partition(_DUMP)[0].partition(_ANSWERED)[2]):
            return Throttled(f"{self._where} asks for a pause: {text}")
        return Unavailable(f"{self._where} did not answer: {text}")


def _without_values(text: str, config: Mapping[str, Any]) -> str:
    """A message of the client library without any setting's value: some of them are secrets."""
    for value in config.values():
        if isinstance(value, str) and value:
            text = text.replace(value, "…")
    return text


def _milliseconds(meta: Mapping[str, Any]) -> int:
    return int(meta["last_modified"].timestamp() * 1000)


def _has_no_credentials(error: Exception) -> bool:
    """The client found none and asked the machine's metadata service, which is not there: nothing was sent."""
    return any(sign in str(error) for sign in _NO_CREDENTIALS)


def _first_line(error: Exception) -> str:
    """The start of obstore's message; the rest is a dump of its own types."""
    lines = str(error).strip().splitlines()
    return clip(lines[0], 200) if lines else type(error).__name__
