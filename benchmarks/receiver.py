"""A partner's receiver as a process of a measurement: receives callbacks, responds 200, checks them at the end."""

import argparse
import asyncio
import json
import signal
import time
from collections import Counter
from typing import Any

import msgspec
import uvloop

EVENTS = ("enqueued", "sent", "delivered", "read")
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_decode = msgspec.json.Decoder().decode


class CallbackLog:
    """Every callback as received; nothing is parsed until the summary is requested."""

    def __init__(self) -> None:
        self.callbacks: list[tuple[float, bytes, bytes]] = []
        self.reads = 0
        self.taps = 0

    def record(self, head: bytes, body: bytes) -> None:
        self.callbacks.append((time.monotonic(), head, body))
        self.reads += b'"type":"read"' in body
        self.taps += b'"type":"quick_reply"' in body

    def summarize(self) -> dict[str, Any]:
        """Return the time of each message's callbacks, and the violations.

        Out of order: a callback that arrived before one with a lower sequence number of the same
        subscription and recipient, or whose message already had a later event.
        """
        times_by_message: dict[str, dict[str, float]] = {}
        last: dict[tuple[str, str], int] = {}
        violations: Counter[str] = Counter()
        taps: Counter[str] = Counter()
        for at_s, head, raw in self.callbacks:
            body = _decode(raw)
            payload = body["payload"]
            if body["type"] == "message":
                taps[payload["id"]] += 1
                continue
            event, message_id = payload["type"], payload.get("gsId") or payload["id"]
            times = times_by_message.setdefault(message_id, {})
            if event not in EVENTS:
                violations[f"kind {event}"] += 1
                continue
            if event in times:
                violations["duplicated"] += 1
                continue
            if len(times) != EVENTS.index(event):
                violations["out of order in its message"] += 1
            times[event] = at_s
            key = (body["phone"], payload["destination"])
            sequence = int(_header(head, b"waypost-sequence"))
            if key in last and sequence != last[key] + 1:
                violations["out of sequence"] += 1
            last[key] = max(sequence, last.get(key, 0))
        return {
            "seen": times_by_message,
            "wrong": dict(violations),
            "callbacks": len(self.callbacks),
            "first_s": self.callbacks[0][0] if self.callbacks else 0,
            "last_s": self.callbacks[-1][0] if self.callbacks else 0,
            "taps": len(taps),
            "taps_doubled": sum(taps.values()) - len(taps),
        }


class ReceiverConnection(asyncio.Protocol):
    """One connection: reads requests and responds to each at once."""

    def __init__(self, log: CallbackLog) -> None:
        self._log = log
        self._partial = b""
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._partial + data if self._partial else data
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                break
            head = data[:end]
            if head.startswith(b"GET "):
                self._respond(head.split(b" ")[1])
                return
            whole = end + 4 + int(_header(head, b"content-length"))
            if len(data) < whole:
                break
            self._log.record(head, data[end + 4 : whole])
            self._transport.write(_RESPONSE)
            data = data[whole:]
        self._partial = data

    def _respond(self, path: bytes) -> None:
        content: Any = {"reads": self._log.reads, "taps": self._log.taps}
        if path == b"/summary":
            content = self._log.summarize()
        elif path == b"/reset":
            self._log.callbacks.clear()
            self._log.reads = self._log.taps = 0
        body = json.dumps(content).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._transport.write(head.encode() + body)
        self._transport.close()


def _header(head: bytes, name: bytes) -> bytes:
    at = head.lower().find(b"\r\n" + name + b":")
    return head[at + len(name) + 3 :].partition(b"\r\n")[0].strip() if at >= 0 else b"0"


async def serve(port: int) -> None:
    log, stop = CallbackLog(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(lambda: ReceiverConnection(log), "127.0.0.1", port, backlog=2048)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))
