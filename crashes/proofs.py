"""Proofs from traces: no acknowledgement is sent before the flush that contains its message.

On SQLite the trace of the service is enough. On PostgreSQL there are two: the service's trace shows
that the server's confirmation of the commit was read before the response was written, and the server's
trace that a flush of its log lay between the commit request and that confirmation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from crashes.traces import Call, parse_calls

SENDS: Final = ("write", "writev", "sendto", "sendmsg")
FLUSHES: Final = ("fdatasync", "fsync")
FRAME_HEADER: Final = 24  # Source: sqlite.org, "The WAL File Format": page, size after a commit or 0, …
# Source: postgresql.org, "Message Formats". A commit is a Query message; or Bind to the prepared COMMIT, or to a
# statement that is a transaction of its own (decision 0091), up to Sync at its end. CommandComplete confirms it.
COMMIT: Final = b"Q\0\0\0\x0bCOMMIT\0"
BIND_COMMIT: Final = b"\0waypost_commit\0"
BIND_ALONE: Final = b"\0waypost_alone_"
SYNC: Final = b"S\0\0\0\x04"
COMMITTED: Final = b"C\0\0\0\x0bCOMMIT\0"
COMPLETED_ALONE: Final = (b"INSERT 0 ", b"UPDATE ", b"DELETE ")
ID_BYTES: Final = 36

_ID: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_HEAD: Final = b"HTTP/1.1 20"
_RESPONSE: Final = re.compile(rb'"status" ?: ?"submitted", ?"messageId" ?: ?"([0-9a-f-]{36})"')


@dataclass
class Proof:
    """The acknowledgements and flushes of a trace, and the violations.

    Attributes:
        violations: a text for each acknowledgement that was sent too early.
    """

    acknowledged: int = 0
    flushes: int = 0
    violations: list[str] = field(default_factory=list[str])


def prove_sqlite(lines: Iterable[str], wal: str) -> Proof:
    """Check that every acknowledgement follows the flush of the log that contains its row.

    An id counts as flushed once a page with it was written to the log, the frame that commits it was
    written, and a flush of the log that began after that has succeeded.

    Args:
        lines: the lines of the trace.
        wal: the end of the path of the write-ahead log.
    """
    proof = Proof()
    written: set[bytes] = set()
    committed: set[bytes] = set()
    flushed = _Flushed()
    flushing: dict[int, frozenset[bytes]] = {}
    is_commit = False
    for call in parse_calls(lines):
        if call.path.endswith(wal):
            if call.name == "pwrite64" and call.begins:
                if len(call.data) == FRAME_HEADER:
                    is_commit = any(call.data[4:8])
                else:
                    written.update(_ID.findall(call.data))
                    if is_commit:
                        committed |= written
                        written.clear()
                        is_commit = False
            elif call.name in FLUSHES:
                if call.begins:
                    flushing[call.pid] = frozenset(committed)
                    committed.clear()
                if call.ends:
                    done = flushing.pop(call.pid, frozenset[bytes]())
                    if not call.failed:
                        flushed.add(done)
                        proof.flushes += 1
        else:
            flushed.check(call, proof)
    return proof


class _Flushed:
    """The flushed ids with the moment of their flush, and the responses whose sending has begun."""

    def __init__(self) -> None:
        self._since: dict[bytes, int] = {}
        self._heads: dict[str, int] = {}
        self._moment = 0

    def add(self, ids: Iterable[bytes]) -> None:
        """Record that these ids are flushed from now on."""
        self._moment += 1
        for message_id in ids:
            self._since.setdefault(message_id, self._moment)

    def check(self, call: Call, proof: Proof) -> None:
        """Check a send: the head of a response and the id in its body, together or separately."""
        if not call.begins or call.name not in SENDS:
            return
        if _HEAD in call.data:
            self._heads[call.path] = self._moment
        response = _RESPONSE.search(call.data)
        if response is None:
            return
        proof.acknowledged += 1
        sent_moment = min(self._moment, self._heads.pop(call.path, self._moment))
        if self._since.get(response[1], sent_moment + 1) > sent_moment:
            proof.violations.append(f"{response[1].decode()} was acknowledged before its flush")


def prove_client(lines: Iterable[str]) -> Proof:
    """Check that every acknowledgement follows the server's confirmation of the commit of its row.

    Args:
        lines: the trace of the service.
    """
    proof = Proof()
    flushed = _Flushed()
    sent = _Ids()
    commits = _Commits()
    requested: dict[str, frozenset[bytes]] = {}
    for call in parse_calls(lines):
        if call.name in SENDS and call.begins:
            sent.collect(call.path, call.data)
            if commits.is_requested(call.path, call.data):
                requested[call.path] = sent.take_new(call.path)
            flushed.check(call, proof)
        elif call.name == "recvfrom" and call.ends and commits.is_confirmed(call.path, call.data):
            flushed.add(requested.pop(call.path, frozenset[bytes]()))
            proof.flushes += 1
    return proof


def prove_server(lines: Iterable[str], wal: str) -> Proof:
    """Check that a flush of the server's log lies between each commit request and its confirmation.

    Any of its processes may flush: a flush covers the commits of all of them.

    Args:
        lines: the trace of all processes of the server.
        wal: a part of the path of its log.
    """
    proof = Proof()
    read = _Ids()
    commits = _Commits()
    requested: dict[int, tuple[int, frozenset[bytes]]] = {}
    flushing: dict[int, int] = {}
    newest = moment = 0
    for moment, call in enumerate(parse_calls(lines), 1):
        if call.name in FLUSHES and wal in call.path:
            if call.begins:
                flushing[call.pid] = moment
            if call.ends and (began := flushing.pop(call.pid, 0)) and not call.failed:
                newest = max(newest, began)
                proof.flushes += 1
        elif call.name == "recvfrom" and call.ends:
            read.collect(str(call.pid), call.data)
            if commits.is_requested(str(call.pid), call.data):
                requested[call.pid] = moment, read.take_new(str(call.pid))
        elif call.name in SENDS and call.begins and commits.is_confirmed(str(call.pid), call.data):
            since, ids = requested.pop(call.pid, (0, frozenset[bytes]()))
            proof.acknowledged += bool(ids)
            if ids and newest < since:
                proof.violations.append(f"a commit with {len(ids)} ids was confirmed before a flush")
    return proof


class _Commits:
    """The commits of each connection: COMMIT, alone or behind other statements, or a statement that commits itself."""

    def __init__(self) -> None:
        self._ends: defaultdict[str, bytes] = defaultdict(bytes)
        self._bound: dict[str, tuple[bytes, ...]] = {}
        self._requested: dict[str, tuple[bytes, ...]] = {}

    def is_requested(self, connection: str, data: bytes) -> bool:
        """Return True if these bytes end the request of a commit; it may be split across two reads or writes."""
        whole = self._ends[connection] + data
        self._ends[connection] = whole[1 - len(BIND_COMMIT) :]
        if BIND_COMMIT in whole:
            self._bound[connection] = (COMMITTED,)
        elif BIND_ALONE in whole:
            self._bound[connection] = COMPLETED_ALONE
        if connection in self._bound and whole.endswith(SYNC):
            self._requested[connection] = self._bound.pop(connection)
            self._ends[connection] = b""
            return True
        if COMMIT in whole:
            self._requested[connection] = (COMMITTED,)
            self._ends[connection] = b""
            return True
        return False

    def is_confirmed(self, connection: str, data: bytes) -> bool:
        """Return True if these bytes confirm one."""
        if any(tag in data for tag in self._requested.get(connection, (COMMITTED,))):
            self._requested.pop(connection, None)
            return True
        return False


class _Ids:
    """The new ids sent over each connection, including one that is split across two reads or writes."""

    def __init__(self) -> None:
        self._ends: defaultdict[str, bytes] = defaultdict(bytes)
        self._ids: defaultdict[str, set[bytes]] = defaultdict(set)
        self._known: set[bytes] = set()

    def collect(self, connection: str, data: bytes) -> None:
        """Collect the ids of the next bytes."""
        whole = self._ends[connection] + data
        self._ids[connection].update(_ID.findall(whole))
        self._ends[connection] = whole[1 - ID_BYTES :]

    def take_new(self, connection: str) -> frozenset[bytes]:
        """Return the ids that no earlier transaction contained."""
        new = frozenset(self._ids.pop(connection, set[bytes]()) - self._known)
        self._known |= new
        return new
