"""A server that is known to flush: each POST syncs a file and its folder, from a thread of its own, and then is answered.

What counts flushes must count two for each of its requests; or nothing that it says of other servers can be believed.
python bench/flushing_server.py FOLDER
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FLUSHES = 2


class Flushing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = Path()

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        file, folder = os.open(self.folder / "object", os.O_WRONLY | os.O_CREAT), os.open(self.folder, os.O_RDONLY)
        os.write(file, data)
        for handle in (file, folder):
            os.fsync(handle)
            os.close(handle)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base calls it
        """Nothing: its standard output says where it listens."""


if __name__ == "__main__":
    Flushing.folder = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Flushing)
    print(f"at http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
