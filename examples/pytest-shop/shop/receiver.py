"""The address that callbacks come to: what has been answered with 200 has been taken."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shop.shop import Shop


@contextmanager
def receiving(shop: Shop, port: int = 0) -> Generator[str]:
    """Serve callbacks of a shop; gives the address to subscribe. A port of 0 takes a free one."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            shop.take(self.headers["Waypost-Callback-Id"], json.loads(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    server.daemon_threads = False  # closing waits for what is being taken
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/callbacks"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
