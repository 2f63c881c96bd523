"""The receiver of every product's notifications as a process: one log, one response, for all of them.

A notification names its message and its kind: in the path and the query for products that call a URL of the message
(`/n/17?k=8`), in the body for Waypost, whose subscription has one URL for all messages.
"""

import argparse
import asyncio
import signal
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import uvloop

BODY = b"ACK/Jasmin"
"""What Jasmin requires; the others ignore it."""
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
_CLOSING = _RESPONSE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class NotificationLog:
    """Every notification as received; nothing is parsed until the log is requested."""

    def __init__(self) -> None:
        self.received: list[tuple[float, bytes, bytes]] = []
        self.count = 0

    def record(self, target: bytes, body: bytes) -> None:
        self.received.append((time.monotonic(), target, body))
        self.count += 1

    def drain(self) -> list[tuple[str, str, float]]:
        """Return message, kind and time of what came since the last call."""
        received, self.received = self.received, []
        return [(*parse_notification(target, body), at_s) for at_s, target, body in received]


def parse_notification(target: bytes, body: bytes) -> tuple[str, str]:
    """Return message and kind: Kannel's report type, Jasmin's level, or Waypost's event."""
    parts = urlsplit(target.decode())
    if parts.path == "/callbacks":
        payload = _decode(body)["payload"]
        return payload.get("gsId") or payload["id"], payload["type"]
    query = parse_qs(parts.query)
    return parts.path.rpartition("/")[2], (query.get("k") or query.get("level") or ["?"])[0]


class NotificationConnection(asyncio.Protocol):
    """One connection: reads requests and responds to each at once."""

    def __init__(self, log: NotificationLog) -> None:
        self._log = log
        self._partial = b""
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._partial + data if self._partial else data
        while (end := data.find(b"\r\n\r\n")) >= 0:
            head = data[:end].lower()
            at = head.find(b"\r\ncontent-length:")
            whole = end + 4 + (int(head[at + 17 :].partition(b"\r\n")[0]) if at >= 0 else 0)
            if len(data) < whole:
                break
            target = data[:end].split(b" ", 2)[1]
            if target.startswith(b"/control/"):
                self._control(target)
                return
            self._log.record(target, data[end + 4 : whole])
            closes = b"\r\nconnection: close" in head
            self._transport.write(_CLOSING if closes else _RESPONSE)
            if closes:
                self._transport.close()
                return
            data = data[whole:]
        self._partial = data

    def _control(self, target: bytes) -> None:
        body = _encode(self._log.count if target == b"/control/count" else self._log.drain())
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        self._transport.close()


async def serve(port: int) -> None:
    log, stop = NotificationLog(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(lambda: NotificationConnection(log), "127.0.0.1", port, backlog=2048)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))
