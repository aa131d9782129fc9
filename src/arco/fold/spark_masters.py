"""Where Spark runs, by the word that people give: what kind of place it is, and whether anybody is there.

    local[*]   spark://HOST:7077   k8s://https://HOST:6443   yarn   sc://HOST:15002

Spark itself tries for minutes to reach a cluster that is not there, and then says it in a page of Java. Here a door is knocked at
before anything is started. What must never enter: anything that needs PySpark.
"""

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from arco.kernel.errors import InvalidInput, Unavailable
from arco.kernel.ids import clip
from arco.kernel.limits import SPARK_REACH_S

_KNOWN = "local[*], spark://HOST:7077, k8s://https://HOST:6443, yarn, or sc://HOST:15002 for Spark Connect"
_LOCAL = re.compile(r"local(-cluster)?(\[[\d*, ]+\])?")
_PLACE = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?")
_HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


class Kind(StrEnum):
    LOCAL = "local"
    STANDALONE = "spark"
    KUBERNETES = "k8s"
    YARN = "yarn"
    CONNECT = "sc"


_PORTS = {Kind.STANDALONE: 7077, Kind.KUBERNETES: 443, Kind.CONNECT: 15002}


@dataclass(frozen=True, slots=True)
class Master:
    """A place that was understood. `doors` are the hosts and ports of which one must answer."""

    text: str
    kind: Kind
    doors: tuple[tuple[str, int], ...] = ()

    @property
    def shown(self) -> str:
        """As it may be printed: what follows the address may be a token."""
        return clip(self.text.partition(";")[0].rstrip("/"), 200)

    @property
    def is_near(self) -> bool:
        """Whether it is on this machine and for this machine: nothing of it need be seen from outside."""
        if self.kind in {Kind.KUBERNETES, Kind.YARN}:
            return False  # its address may be loopback's, and its pods are elsewhere
        return all(_is_loopback(host) for host, _ in self.doors)


def parse_master(text: str) -> Master:
    """What a master is; what it should have been, if it is none."""
    if _LOCAL.fullmatch(text):
        return Master(text, Kind.LOCAL)
    if text == "yarn":
        return Master(text, Kind.YARN)
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in {"spark", "k8s", "sc"} or not rest:
        raise _no_master(text)
    kind = Kind(scheme)
    if kind is Kind.KUBERNETES:
        rest = rest.removeprefix("https://").removeprefix("http://")
    places = rest.split(",") if kind is Kind.STANDALONE else [rest]
    return Master(text, kind, tuple(_door(re.split(r"[/;?]", place, maxsplit=1)[0], kind, text) for place in places))


def _door(place: str, kind: Kind, text: str) -> tuple[str, int]:
    found = _PLACE.fullmatch(place)
    port = int(found["port"] or _PORTS[kind]) if found else 0
    if found is None or not 0 < port < 65536:
        raise _no_master(text)
    return found["host"].strip("[]"), port


def _no_master(text: str) -> InvalidInput:
    return InvalidInput(f"{clip(text.partition(';')[0])!r} is no place where Spark runs", hint=f"one of {_KNOWN}")


def need_reachable(master: Master, environment: Mapping[str, str]) -> None:
    """That somebody answers where Spark is to run. Nothing is said to whoever answers."""
    if master.kind is Kind.YARN and not any(environment.get(word) for word in _HADOOP):
        raise InvalidInput(
            "no variable says where YARN is", hint=f"set {_HADOOP[0]} to the folder with the cluster's yarn-site.xml"
        )
    refused = [said for host, port in master.doors if (said := _knocked(host, port)) is not None]
    if master.doors and len(refused) == len(master.doors):
        raise Unavailable(
            f"nobody answers at {master.shown}: {'; '.join(refused)}",
            hint="start the cluster, or mend --spark or [spark] master in arco.toml",
        )


def _knocked(host: str, port: int) -> str | None:
    """Why nobody answered, if nobody did."""
    try:
        with socket.create_connection((host, port), SPARK_REACH_S):
            return None
    except socket.gaierror:
        return f"there is no host {clip(host)}"
    except TimeoutError:
        return f"{clip(host)}:{port} was silent for {SPARK_REACH_S:.0f} s"
    except OSError as error:
        return f"{clip(host)}:{port}: {(error.strerror or str(error)).lower()}"


def _is_loopback(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")
