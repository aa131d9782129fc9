"""Where a command works: flag, then environment, then arco.toml. The only place that reads the environment."""

import getpass
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.retention import Retention
from arco.kernel.secret import Secret, SecretRef

PROJECT_FILE = "arco.toml"
_LINK_KEY_CHARS_MIN = 32

# What the clouds' own variables say about a store, less its secrets: the first that is set counts.
_AMBIENT: dict[str, dict[str, tuple[str, ...]]] = {
    "s3://": {
        "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
        "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    },
    "az://": {"account_name": ("AZURE_STORAGE_ACCOUNT_NAME",)},
}
# Where a key of the server's own is found, if it was not given as an option. Clients never get it as it is.
_AMBIENT_SECRETS: dict[str, tuple[str, ...]] = {
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "account_key": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The root's URL, the options of its store, and what the environment says about the store, less its secrets."""

    root: str
    options: Mapping[str, str]
    ambient: Mapping[str, str] = field(default_factory=dict)
    retention: Retention = field(default_factory=Retention)
    fold_lists: bool = True
    """Whether the folds of the root find what was written by listing. If not, whoever writes says so."""

    @property
    def known(self) -> Mapping[str, str]:
        """Options and environment together; options win."""
        return {**self.ambient, **self.options}


def load_settings(root: str | None, options: list[str], folder: Path = Path()) -> Settings:
    """The settings of one command. Options given on the command line win over those of the file."""
    project = read_project_file(folder)
    elsewhere = root or os.environ.get("ARCO_ROOT")
    chosen = elsewhere or project.get("root") or ""
    if not isinstance(chosen, str) or not chosen:
        raise InvalidInput("no root given", hint=f"pass --root, set ARCO_ROOT, or write root = … in {PROJECT_FILE}")
    stored = project.get("store", {})
    if not isinstance(stored, dict):
        raise InvalidInput(f"store in {PROJECT_FILE} is not a table", hint="write [store] and one option a line")
    # The file's options belong to the file's root: forced on another one they would be wrong, or leak a key.
    is_its_own = chosen == project.get("root")
    kept = stored if is_its_own else {}
    retention = Retention.of(project.get("retention", {}) if is_its_own else {})
    given_options = {word: _text(value) for word, value in kept.items()} | _given(options)
    if not elsewhere and "://" not in chosen:
        chosen = str(folder / chosen)  # what the file names lies beside the file
    return Settings(chosen, given_options, _ambient(chosen), retention, _fold_lists(project if is_its_own else {}))


def _fold_lists(project: Mapping[str, Any]) -> bool:
    """Environment, then the file."""
    given = os.environ.get("ARCO_FOLD_LISTING")
    if given is not None:
        if given not in {"true", "false"}:
            raise InvalidInput(f"ARCO_FOLD_LISTING is {clip(given)!r}", hint="true or false")
        return given == "true"
    fold = project.get("fold", {})
    if not isinstance(fold, dict) or set(fold) - {"listing"} or not isinstance(fold.get("listing", True), bool):
        raise InvalidInput(f"[fold] in {PROJECT_FILE} is not understood", hint="write listing = true or false")
    return bool(fold.get("listing", True))


def _ambient(root: str) -> dict[str, str]:
    words = next((words for scheme, words in _AMBIENT.items() if root.startswith(scheme)), {})
    found = {word: next((os.environ[name] for name in names if os.environ.get(name)), "") for word, names in words.items()}
    return {word: value for word, value in found.items() if value}


def load_token() -> Secret | None:
    """The server's token. Only from the environment: a flag shows in the list of processes, a file is easily shared."""
    token = os.environ.get("ARCO_TOKEN")
    if token is None:
        return None
    if not token:
        raise InvalidInput("ARCO_TOKEN is set to nothing", hint="give it a value, or unset it to serve without a token")
    if not all("!" <= character <= "~" for character in token):
        raise InvalidInput(
            "ARCO_TOKEN has a character that a header cannot carry", hint="use visible ASCII, without spaces"
        )
    return Secret(token)


def childs_environment() -> dict[str, str]:
    """What a process that a server starts finds in its environment: everything but how the server itself is reached."""
    return {name: value for name, value in os.environ.items() if name not in {"ARCO_TOKEN", "ARCO_LINK_KEY"}}


# What the process of a task may find in its environment: where programs are, and how people write. No key of any kind.
_FOR_TASKS = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {"JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "HADOOP_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR"}
    | {"SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_DIRS", "SPARK_DIST_CLASSPATH"}
    | {"SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS", "SPARK_DRIVER_MEMORY", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
)
# Nor are any to be found elsewhere by libraries that look for them on their own.
_NO_KEYS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_CONFIG_FILE": os.devnull,
}


def tasks_environment(variables: tuple[str, ...] = ()) -> dict[str, str]:
    """What the process of one task finds in its environment, where tasks are kept apart. `variables`: what the project names."""
    for name in variables:
        if name not in os.environ:
            raise InvalidInput(
                f"{name} is to be passed to tasks, and is not set",
                hint=f"set it, or take it out of variables in {PROJECT_FILE}",
            )
    named = {
        name: value
        for name, value in os.environ.items()
        if name in _FOR_TASKS or name in variables or (name.startswith(("LC_", "PYTHON")) and name != "PYTHONSTARTUP")
    }
    return named | _NO_KEYS


def load_link_key() -> Secret | None:
    """What links to files of state are made with, for servers that answer each other's; None: one of each process."""
    key = os.environ.get("ARCO_LINK_KEY")
    if key is None:
        return None
    if len(key) < _LINK_KEY_CHARS_MIN:
        raise InvalidInput(
            f"ARCO_LINK_KEY has {len(key)} characters, fewer than {_LINK_KEY_CHARS_MIN}", hint="make it of 32 random bytes"
        )
    return Secret(key)


def load_secret(where: SecretRef) -> Secret:
    """A secret from where it is kept. What is wrong with it is said without it."""
    if where.source == "env":
        found = os.environ.get(where.name, "")
    else:
        try:
            found = Path(where.name).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the secret {where} cannot be read: {type(error).__name__}", hint="mount it") from error
    if not found:
        raise InvalidInput(f"the secret {where} is empty", hint="set it, or take it out of arco.toml")
    return Secret(found)


def load_task_keys(named: tuple[str, ...]) -> tuple[Secret, ...]:
    """What tasks are signed with: as arco.toml says where, or else from ARCO_TASK_KEY or the file of ARCO_TASK_KEY_FILE."""
    if named:
        return tuple(load_secret(SecretRef.parse(one)) for one in named)
    if file := os.environ.get("ARCO_TASK_KEY_FILE"):
        return (load_secret(SecretRef("file", file)),)
    return (load_secret(SecretRef("env", "ARCO_TASK_KEY")),) if "ARCO_TASK_KEY" in os.environ else ()


def count_alone() -> None:
    """What this process counts is its own, wherever other programs count. To be said before the library that counts is loaded."""
    for name in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        os.environ.pop(name, None)


def share_metrics(folder: Path) -> None:
    """Where processes that are started from now on count together. The library that counts has no other way to be told."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


def load_store_secret(options: Mapping[str, str], word: str) -> Secret | None:
    """A key of the server's own, by the word of its option: from the options, or else from the usual environment variable."""
    found = options.get(word) or next((os.environ[name] for name in _AMBIENT_SECRETS[word] if os.environ.get(name)), "")
    return Secret(found) if found else None


def load_google_key(options: Mapping[str, str]) -> Secret | None:
    """The document of a service account's key: given, or in the file that is named by the option or its usual variable."""
    given = options.get("service_account_key")
    if given:
        return Secret(given)
    file = options.get("application_credentials") or os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if not file:
        return None
    try:
        return Secret(Path(file).read_text())
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidInput(f"the credentials of Google in {file}: {why}", hint="name a file that can be read") from None


def jars_cache(spark: str) -> Path:
    """Where jars for a version of Spark are kept for this user."""
    given = os.environ.get("ARCO_JARS")
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "arco" / "jars" / f"spark-{spark}"


def environment(**more: str) -> dict[str, str]:
    """The environment of this process, and more, for one that it starts."""
    return {**os.environ, **more}


def person() -> str:
    """Who sits at this shell, for the record of what they change. A word of theirs, not a proof."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


@dataclass(frozen=True, slots=True)
class Environment:
    """Which workspace a project works in, and which one it defers to, where a flag or the environment says so."""

    workspace: str | None = None
    defer_to: str | None = None


_flags: ContextVar[Environment | None] = ContextVar("environment flags", default=None)


@contextmanager
def chosen_environment(workspace: str | None, defer_to: str | None) -> Iterator[None]:
    """What the flags of a command say, for the length of it."""
    token = _flags.set(Environment(workspace, defer_to))
    try:
        yield
    finally:
        _flags.reset(token)


def load_environment() -> Environment:
    """Flag, then environment variable."""
    flags = _flags.get() or Environment()
    return Environment(
        flags.workspace or os.environ.get("ARCO_WORKSPACE") or None,
        flags.defer_to or os.environ.get("ARCO_DEFER_TO") or None,
    )


def read_project_file(folder: Path = Path()) -> dict[str, Any]:
    """What arco.toml says; nothing if there is none."""
    path = folder / PROJECT_FILE
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} does not parse: {error}", hint="mend the file") from error


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _given(options: list[str]) -> dict[str, str]:
    given = {}
    for option in options:
        word, equals, value = option.partition("=")
        if not equals:
            raise InvalidInput(f"option {clip(option)!r} has no value", hint="write --option word=value")
        given[word] = value
    return given


def placed(prefixes: Sequence[str]) -> tuple[str, ...]:
    """Places that are allowed, as they were meant: a folder without a scheme is looked for from here, as a root is."""
    return tuple(str(Path(one).resolve()) if one and ":" not in one and one[0] != "/" else one for one in prefixes)
