"""A minimal Cloud API: accepts every message, and posts `sent` and `delivered` for each, signed and batched.

It stands where the SMPP message centre stands for the other products: as little work as the protocol allows.
"""

import asyncio
import hashlib
import hmac
import time
from collections import deque
from typing import Any

import msgspec

from benchmarks.peers.deliveries import Deliveries
from waypost.assembly.dev import demo

BATCH_AT_MOST = 1000
_RETRY_S = 0.5
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class WebhookPoster:
    """Posts status updates in batches, one POST at a time, until each is accepted.

    Args:
        port: of the service.
        path: of its webhook.
        gather_s: the least time between two batches.
    """

    def __init__(self, port: int, path: str, *, gather_s: float) -> None:
        self._port, self._path, self._gather_s = port, path, gather_s
        self._updates: deque[tuple[str, dict[str, Any]]] = deque()
        self._wake = asyncio.Event()

    def add(self, number_id: str, message_id: str, recipient: str, status: str, data: Any) -> None:
        """Add one status."""
        update = {
            "id": message_id,
            "status": status,
            "timestamp": str(int(time.time())),
            "recipient_id": recipient,
            "biz_opaque_callback_data": data,
        }
        self._updates.append((number_id, update))
        self._wake.set()

    async def run(self) -> None:
        """Post batches until cancelled."""
        reader = writer = None
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._updates:
                batch = [self._updates.popleft() for _ in range(min(BATCH_AT_MOST, len(self._updates)))]
                body = webhook_body(batch)
                while True:
                    try:
                        if writer is None:
                            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                        writer.write(self._head(body) + body)
                        assert reader is not None
                        head = await reader.readuntil(b"\r\n\r\n")
                        if length := int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0):
                            await reader.readexactly(length)
                        if head.startswith(b"HTTP/1.1 200"):
                            break
                    except (OSError, asyncio.IncompleteReadError):
                        pass
                    if writer is not None:
                        writer.close()
                    reader = writer = None
                    await asyncio.sleep(_RETRY_S)
                await asyncio.sleep(self._gather_s)

    def _head(self, body: bytes) -> bytes:
        digest = hmac.new(demo.GRAPH_APP_SECRET.encode(), body, hashlib.sha256).hexdigest()
        return (
            f"POST {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"X-Hub-Signature-256: sha256={digest}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()


def webhook_body(batch: list[tuple[str, dict[str, Any]]]) -> bytes:
    """Return the webhook of some statuses: a change for each number."""
    by_number: dict[str, list[dict[str, Any]]] = {}
    for number_id, update in batch:
        by_number.setdefault(number_id, []).append(update)
    changes = [
        {
            "field": "messages",
            "value": {
                "messaging_product": "whatsapp",
                "metadata": {"display_phone_number": "", "phone_number_id": number_id},
                "statuses": updates,
            },
        }
        for number_id, updates in by_number.items()
    ]
    return _encode({"object": "whatsapp_business_account", "entry": [{"id": demo.WABA_ID, "changes": changes}]})


class CloudConnection(asyncio.Protocol):
    """One connection of the service: accepts messages, and has nothing else."""

    def __init__(self, deliveries: Deliveries, poster: WebhookPoster) -> None:
        self._deliveries, self._poster = deliveries, poster
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
            path = data[:end].split(b" ", 2)[1].decode()
            self._respond(path, data[end + 4 : whole])
            data = data[whole:]
        self._partial = data

    def _respond(self, path: str, body: bytes) -> None:
        if path == "/control/accepted":
            self._write(200, dict(self._deliveries.by_recipient))
            return
        if not path.endswith("/messages"):
            self._write(404, {"error": {"message": "Unknown path", "type": "GraphMethodException", "code": 100}})
            return
        message = _decode(body)
        recipient, number_id = message["to"].removeprefix("+"), path.split("/")[2]
        message_id = f"wamid.{self._deliveries.add(recipient):020d}"
        response = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": message["to"], "wa_id": recipient}],
            "messages": [{"id": message_id, "message_status": "accepted"}],
        }
        data, deliveries = message.get("biz_opaque_callback_data"), self._deliveries
        if deliveries.respond_after_s:
            deliveries.later(deliveries.respond_after_s, self._write, 200, response)
        else:
            self._write(200, response)
        deliveries.later(deliveries.respond_after_s, self._poster.add, number_id, message_id, recipient, "sent", data)
        deliveries.later(
            deliveries.report_after_s, self._poster.add, number_id, message_id, recipient, "delivered", data
        )

    def _write(self, status: int, content: Any) -> None:
        body = _encode(content)
        reason = "OK" if status == 200 else "Not Found"
        head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        if not self._transport.is_closing():  # a killed service reads no response
            self._transport.write(head.encode() + body)
