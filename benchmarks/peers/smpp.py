"""A minimal SMPP 3.4 message centre: binds one transceiver, accepts every message, reports each as delivered."""

import asyncio
import struct
import time
from collections import deque
from typing import Any

from benchmarks.peers.deliveries import Deliveries

# fmt: off
SUBMIT_SM, SUBMIT_SM_RESP        = 0x00000004, 0x80000004
DELIVER_SM, DELIVER_SM_RESP      = 0x00000005, 0x80000005
UNBIND, ENQUIRE_LINK             = 0x00000006, 0x00000015
BIND_TRANSCEIVER                 = 0x00000009
RESPONSE, GENERIC_NACK           = 0x80000000, 0x80000000
INVALID_COMMAND                  = 0x00000003
RECEIPTED_MESSAGE_ID, MESSAGE_STATE = 0x001E, 0x0427
DELIVERED, IS_RECEIPT            = 2, 0x04
# fmt: on
_HEAD = struct.Struct(">IIII")


def parse_submit(body: bytes) -> tuple[bytes, bytes]:
    """Return source and destination of a submit_sm."""
    at = body.index(b"\0") + 1 + 2  # service type; type and plan of the source
    source, _, rest = body[at:].partition(b"\0")
    return source, rest[2:].partition(b"\0")[0]


def build_receipt(message_id: bytes, source: bytes, destination: bytes) -> bytes:
    """Return the body of the deliver_sm that reports a message as delivered."""
    at = time.strftime("%y%m%d%H%M", time.gmtime()).encode()
    text = (
        b"id:%s sub:001 dlvrd:001 submit date:%s done date:%s stat:DELIVRD err:000 text:" % (message_id, at, at)
    )  # fmt: skip
    addresses = b"\0" + b"\1\1" + destination + b"\0" + b"\1\1" + source + b"\0"
    middle = bytes((IS_RECEIPT, 0, 0)) + b"\0\0" + bytes((0, 0, 0, 0, len(text)))
    tag = struct.pack(">HH", RECEIPTED_MESSAGE_ID, len(message_id) + 1) + message_id + b"\0"
    return addresses + middle + text + tag + struct.pack(">HHB", MESSAGE_STATE, 1, DELIVERED)


class MessageCentre:
    """What all connections share: the receipts that wait, and which of them are not yet answered."""

    def __init__(self, deliveries: Deliveries) -> None:
        self.deliveries = deliveries
        self.waiting: deque[bytes] = deque()
        self.connection: SmppConnection | None = None

    def report(self, receipt: bytes) -> None:
        """Send a receipt, or keep it until somebody is bound."""
        if self.connection is None:
            self.waiting.append(receipt)
        else:
            self.connection.deliver(receipt)


class SmppConnection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, centre: MessageCentre) -> None:
        self._centre = centre
        self._partial = b""
        self._transport: Any = None
        self._sequence = 0
        self._unanswered: dict[int, bytes] = {}

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._centre.connection is self:
            self._centre.connection = None
            self._centre.waiting.extend(self._unanswered.values())

    def data_received(self, data: bytes) -> None:
        data = self._partial + data if self._partial else data
        at, responses = 0, bytearray()
        while len(data) - at >= _HEAD.size:
            length, command, _, sequence = _HEAD.unpack_from(data, at)
            if len(data) - at < length:
                break
            responses += self._respond(command, sequence, data[at + _HEAD.size : at + length])
            at += length
        self._partial = data[at:]
        if responses:
            self._transport.write(bytes(responses))

    def deliver(self, receipt: bytes) -> None:
        """Send a deliver_sm."""
        self._sequence += 1
        self._unanswered[self._sequence] = receipt
        self._transport.write(_pdu(DELIVER_SM, self._sequence, receipt))

    def _respond(self, command: int, sequence: int, body: bytes) -> bytes:
        if command == SUBMIT_SM:
            return self._accept(sequence, body)
        if command == DELIVER_SM_RESP:
            self._unanswered.pop(sequence, None)
            return b""
        if command == BIND_TRANSCEIVER:
            asyncio.get_running_loop().call_soon(self._bind)
            return _pdu(command | RESPONSE, sequence, b"peers\0")
        if command in (ENQUIRE_LINK, UNBIND):
            return _pdu(command | RESPONSE, sequence)
        return b"" if command & RESPONSE else _pdu(GENERIC_NACK, sequence, status=INVALID_COMMAND)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():  # a killed client reads no response
            self._transport.write(data)

    def _bind(self) -> None:
        self._centre.connection = self
        while self._centre.waiting:
            self.deliver(self._centre.waiting.popleft())

    def _accept(self, sequence: int, body: bytes) -> bytes:
        source, destination = parse_submit(body)
        deliveries = self._centre.deliveries
        message_id = str(deliveries.add(destination.decode())).encode()
        response = _pdu(SUBMIT_SM_RESP, sequence, message_id + b"\0")
        receipt = build_receipt(message_id, source, destination)
        deliveries.later(deliveries.report_after_s, self._centre.report, receipt)
        if not deliveries.respond_after_s:
            return response
        deliveries.later(deliveries.respond_after_s, self._write, response)
        return b""


def _pdu(command: int, sequence: int, body: bytes = b"", *, status: int = 0) -> bytes:
    return _HEAD.pack(_HEAD.size + len(body), command, status, sequence) + body
