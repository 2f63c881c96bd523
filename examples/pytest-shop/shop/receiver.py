"""The receiver of callbacks. It responds with 200 once a callback has been processed."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shop.shop import Shop


@contextmanager
def serve_receiver(shop: Shop, port: int = 0) -> Generator[str]:
    """Serve a shop's receiver, and yield its URL for the subscription. Port 0 selects a free port."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            shop.handle_callback(self.headers["Waypost-Callback-Id"], json.loads(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    server.daemon_threads = False  # server_close waits for callbacks that are being processed
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/callbacks"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
