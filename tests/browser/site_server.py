"""The site that a page is of: static files on a port of their own, so that the API is another origin to it."""

import contextlib
import mimetypes
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_TYPES = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm"}


class _Static(BaseHTTPRequestHandler):
    """Files of a few folders, each under the path that it is mounted at; the longest one that fits counts."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, mounts: Mapping[str, Path], *arguments: object) -> None:
        self._mounts = mounts
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        file = self._file()
        data = b"" if file is None else file.read_bytes()
        self.send_response(404 if file is None else 200)
        if file is not None:
            self.send_header("Content-Type", _TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _file(self) -> Path | None:
        for mount in sorted(self._mounts, key=len, reverse=True):
            if self.path.startswith(mount):
                folder = self._mounts[mount].resolve()
                file = (folder / (self.path[len(mount) :] or "index.html")).resolve()
                return file if file.is_file() and file.is_relative_to(folder) else None
        return None

    def log_message(self, *_: object) -> None:
        pass


class _Site(ThreadingHTTPServer):
    daemon_threads = True


@contextlib.contextmanager
def serving_site(mounts: Mapping[str, Path]) -> Iterator[str]:
    """The origin of a site, for the length of a block."""
    with _Site(("127.0.0.1", 0), partial(_Static, mounts)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
