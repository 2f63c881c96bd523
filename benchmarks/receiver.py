"""A partner's receiver as one process of a measurement: takes callbacks, answers 200, and judges them at the end."""

import argparse
import asyncio
import json
import signal
import time
from collections import Counter
from typing import Any

import msgspec
import uvloop

KINDS = ("enqueued", "sent", "delivered", "read")
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_decode = msgspec.json.Decoder().decode


class Received:
    """Every callback as it came; nothing is understood until somebody asks."""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, bytes, bytes]] = []
        self.reads = 0
        self.taps = 0

    def take(self, head: bytes, body: bytes) -> None:
        self.pieces.append((time.monotonic(), head, body))
        self.reads += b'"type":"read"' in body
        self.taps += b'"type":"quick_reply"' in body

    def judged(self) -> dict[str, Any]:
        """When each message's callbacks came, and what is wrong with them.

        Out of order: a callback that came before one with a lower sequence number of the same
        subscription and recipient, or whose message had gone further already.
        """
        seen: dict[str, dict[str, float]] = {}
        last: dict[tuple[str, str], int] = {}
        wrong: Counter[str] = Counter()
        taps: Counter[str] = Counter()
        for at_s, head, raw in self.pieces:
            body = _decode(raw)
            told = body["payload"]
            if body["type"] == "message":
                taps[told["id"]] += 1
                continue
            kind, about = told["type"], told.get("gsId") or told["id"]
            of_message = seen.setdefault(about, {})
            if kind not in KINDS:
                wrong[f"kind {kind}"] += 1
                continue
            if kind in of_message:
                wrong["told twice"] += 1
                continue
            if len(of_message) != KINDS.index(kind):
                wrong["out of order in its message"] += 1
            of_message[kind] = at_s
            key = (body["phone"], told["destination"])
            sequence = int(_header(head, b"waypost-sequence"))
            if key in last and sequence != last[key] + 1:
                wrong["out of sequence"] += 1
            last[key] = max(sequence, last.get(key, 0))
        return {
            "seen": seen,
            "wrong": dict(wrong),
            "callbacks": len(self.pieces),
            "first_s": self.pieces[0][0] if self.pieces else 0,
            "last_s": self.pieces[-1][0] if self.pieces else 0,
            "taps": len(taps),
            "taps_doubled": sum(taps.values()) - len(taps),
        }


class Door(asyncio.Protocol):
    """One connection: reads requests, answers each at once."""

    def __init__(self, received: Received) -> None:
        self._received = received
        self._rest = b""
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                break
            head = data[:end]
            if head.startswith(b"GET "):
                self._tell(head.split(b" ")[1])
                return
            whole = end + 4 + int(_header(head, b"content-length"))
            if len(data) < whole:
                break
            self._received.take(head, data[end + 4 : whole])
            self._transport.write(_ANSWER)
            data = data[whole:]
        self._rest = data

    def _tell(self, path: bytes) -> None:
        told: Any = {"reads": self._received.reads, "taps": self._received.taps}
        if path == b"/judged":
            told = self._received.judged()
        elif path == b"/forget":
            self._received.pieces.clear()
            self._received.reads = self._received.taps = 0
        body = json.dumps(told).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._transport.write(head.encode() + body)
        self._transport.close()


def _header(head: bytes, name: bytes) -> bytes:
    at = head.lower().find(b"\r\n" + name + b":")
    return head[at + len(name) + 3 :].partition(b"\r\n")[0].strip() if at >= 0 else b"0"


async def serve(port: int) -> None:
    received, stop = Received(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(lambda: Door(received), "127.0.0.1", port, backlog=2048)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))
