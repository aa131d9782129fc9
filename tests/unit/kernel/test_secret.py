"""Hazard 16: a secret is a type that nothing prints, copies or stores, and not a guess about a path."""

import copy
import json
import logging
import pickle
import pprint
import traceback
from dataclasses import asdict, dataclass

import msgspec
import pytest

from arco.kernel.secret import Secret, SecretRef

CANARY = "canary-7f3a9e"


@dataclass
class Settings:
    endpoint: str
    key: Secret


def secret() -> Secret:
    return Secret(CANARY)


def raising() -> str:
    local = secret()
    try:
        raise RuntimeError("refused", local)
    except RuntimeError as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


PRINTED = {
    "repr": lambda: repr(secret()),
    "str": lambda: str(secret()),
    "format": lambda: format(secret()),
    "f-string": lambda: f"{secret()} {secret()!r} {secret()!s} {secret()!a}",
    "percent": lambda: "%s %r" % (secret(), secret()),  # noqa: UP031 - this spelling is the case
    "str.format": lambda: "{0} {0!r}".format(secret()),
    "in a list": lambda: str([secret()]),
    "in a dictionary": lambda: f"{ {'key': secret()} }",
    "in a dataclass": lambda: repr(Settings("https://x", secret())),
    "pprint": lambda: pprint.pformat({"key": secret()}),
    "an exception": lambda: f"{ValueError(secret())} {ValueError(secret())!r}",
    "a traceback with its locals": raising,
    "json with str": lambda: json.dumps({"key": secret()}, default=str),
    "json with repr": lambda: json.dumps({"key": secret()}, default=repr),
    "msgspec with str": lambda: msgspec.json.encode({"key": secret()}, enc_hook=str).decode(),
    "its attributes": lambda: repr(getattr(secret(), "__dict__", {})),
    "a log line": lambda: logging.LogRecord("x", 20, "x", 1, "got %s and %r", (secret(), secret()), None).getMessage(),
}
REFUSED = {
    "copy": lambda: copy.copy(secret()),
    "deepcopy": lambda: copy.deepcopy({"key": secret()}),
    "asdict": lambda: asdict(Settings("https://x", secret())),
    "json": lambda: json.dumps({"key": secret()}),
    "msgspec": lambda: msgspec.json.encode({"key": secret()}),
    "msgspec to builtins": lambda: msgspec.to_builtins(secret()),
    "a format width": lambda: f"{secret():>20}",
    "joining": lambda: ", ".join(("key", secret())),  # noqa: FLY002 - this spelling is the case
    "adding": lambda: "Bearer " + secret(),
}


@pytest.mark.parametrize("way", PRINTED)
def test_hazard_16_a_secret_is_never_printed(way):
    assert CANARY not in PRINTED[way]()


@pytest.mark.parametrize("way", REFUSED)
def test_hazard_16_a_secret_is_never_copied_into_anything(way):
    with pytest.raises(TypeError) as caught:
        REFUSED[way]()
    assert CANARY not in "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_hazard_16_a_secret_is_never_pickled(protocol):
    for holder in (secret(), [secret()], Settings("https://x", secret())):
        with pytest.raises(TypeError) as caught:
            pickle.dumps(holder, protocol)
        assert CANARY not in str(caught.value)


def test_only_reveal_shows_a_secret():
    assert secret().reveal() == CANARY


def test_secrets_are_compared_by_what_they_hold():
    assert secret() == secret()
    assert secret() != Secret("another")
    assert secret() != CANARY
    assert len({secret(), secret(), Secret("another")}) == 2


def test_a_reference_to_a_secret_may_be_stored_and_printed():
    reference = SecretRef("env", "ARCO_TOKEN")
    assert pickle.loads(pickle.dumps(reference)) == copy.copy(reference) == reference
    assert msgspec.json.decode(msgspec.json.encode(reference), type=SecretRef) == reference
    assert "ARCO_TOKEN" in repr(reference)
