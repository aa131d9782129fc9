"""Where a server listens: addresses that are checked and bound before anything else is done, and its certificate.

A server without a token must not be reachable from elsewhere by accident, so an address outside this machine needs a token,
or an operator who says that it needs none.
"""

import errno
import ipaddress
import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from arco.kernel.errors import InvalidInput, Unavailable
from arco.kernel.ids import clip

_NOT_HERE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, both known to be readable and to belong together."""

    cert: Path
    key: Path


def addresses_of(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    """What a host stands for, each address once."""
    if not 0 <= port <= 65535:
        raise InvalidInput(f"port {port} does not exist", hint="choose 0 (any free one) to 65535")
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise InvalidInput(f"{clip(host)!r} is not an address of this machine", hint="try --host 127.0.0.1") from None
    return list(dict.fromkeys((family, str(where[0])) for family, _, _, _, where in found))


def require_token_outside(host: str, port: int, *, has_token: bool, insecure: bool) -> None:
    """Refuse to be reachable from elsewhere without a token."""
    outside = [address for _, address in addresses_of(host, port) if not is_loopback(address)]
    if outside and not has_token and not insecure:
        raise InvalidInput(
            f"{clip(host)!r} can be reached from other machines, and there is no token",
            hint="set ARCO_TOKEN, or pass --insecure to let everybody in",
        )


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets on every address of a host, on one port. Nobody can connect until the server listens on them."""
    bound: list[socket.socket] = []
    for family, address in addresses_of(host, port):
        try:
            bound.append(_bound(family, address, bound[0].getsockname()[1] if bound else port))
        except OSError as error:
            if error.errno in _NOT_HERE and family == socket.AF_INET6:
                continue
            for earlier in bound:
                earlier.close()
            raise _cannot_listen(address, port, error) from None
    if not bound:
        raise InvalidInput(f"{clip(host)!r} is not an address of this machine", hint="try --host 127.0.0.1")
    return bound


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
    except OSError:
        made.close()
        raise
    return made


def _cannot_listen(address: str, port: int, error: OSError) -> InvalidInput | Unavailable:
    reason = os.strerror(error.errno) if error.errno else "the system refuses"
    if error.errno == errno.EADDRINUSE:
        return Unavailable(f"port {port} of {address} is taken", hint="stop who listens there, or choose another --port")
    return InvalidInput(f"cannot listen on port {port} of {address}: {reason}", hint="choose another --host or --port")


def load_certificate(cert: str | None, key: str | None) -> Certificate | None:
    """The files of --tls-cert and --tls-key, tried out."""
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise InvalidInput("--tls-cert and --tls-key belong together", hint="pass both, or none")
    for flag, file in (("--tls-cert", cert), ("--tls-key", key)):
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise InvalidInput(f"{flag} {clip(file)}: {error.strerror}", hint="name a PEM file that can be read") from None
    try:
        # Without a password a key that has one would make the library ask for it at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        raise InvalidInput(
            f"{clip(cert)} and {clip(key)} are no certificate with its key ({error.reason or 'not PEM, or encrypted'})",
            hint="use PEM files that belong together, the key without a password",
        ) from None
    return Certificate(Path(cert), Path(key))
