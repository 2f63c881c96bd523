"""What a trace proves: no acknowledgement's bytes leave before the flush that holds its message.

On SQLite the trace of the service shows all of it. On PostgreSQL there are two: that of the service
shows that the server's word about the commit was read before the answer was written, and that of the
server that a flush of its log lay between the wish to commit and that word.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from crashes.traces import Call, calls_of

SENDS: Final = ("write", "writev", "sendto", "sendmsg")
FLUSHES: Final = ("fdatasync", "fsync")
FRAME_HEADER: Final = 24  # Source: sqlite.org, "The WAL File Format": page, size after a commit or 0, …
COMMIT: Final = b"Q\0\0\0\x0bCOMMIT\0"  # Source: postgresql.org, "Message Formats": Query …
COMMITTED: Final = b"C\0\0\0\x0bCOMMIT\0"  # … and CommandComplete
ID_BYTES: Final = 36

_ID: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_HEAD: Final = b"HTTP/1.1 20"
_ANSWER: Final = re.compile(rb'"status" ?: ?"submitted", ?"messageId" ?: ?"([0-9a-f-]{36})"')


@dataclass
class Proof:
    """What was looked at, and what was found.

    Attributes:
        violations: acknowledgements that left too early, in words.
    """

    acknowledged: int = 0
    flushes: int = 0
    violations: list[str] = field(default_factory=list[str])


def prove_sqlite(lines: Iterable[str], wal: str) -> Proof:
    """Hold every acknowledgement of a message to the flush of the log that has its row.

    An id counts as flushed once a page with it was written to the log, the frame that commits it
    was written, and a flush of the log that began after that has ended well.

    Args:
        lines: of the trace.
        wal: how the path of the write-ahead log ends.
    """
    proof = Proof()
    written: set[bytes] = set()
    committed: set[bytes] = set()
    flushed = _Flushed()
    flushing: dict[int, frozenset[bytes]] = {}
    is_commit = False
    for call in calls_of(lines):
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
            flushed.judge(call, proof)
    return proof


class _Flushed:
    """Which ids are on disk since when; and which answers have begun to leave."""

    def __init__(self) -> None:
        self._since: dict[bytes, int] = {}
        self._heads: dict[str, int] = {}
        self._moment = 0

    def add(self, ids: Iterable[bytes]) -> None:
        """These are on disk from now on."""
        self._moment += 1
        for one in ids:
            self._since.setdefault(one, self._moment)

    def judge(self, call: Call, proof: Proof) -> None:
        """Look at what leaves: the head of an answer, and the id in its body, together or one by one."""
        if not call.begins or call.name not in SENDS:
            return
        if _HEAD in call.data:
            self._heads[call.path] = self._moment
        answer = _ANSWER.search(call.data)
        if answer is None:
            return
        proof.acknowledged += 1
        left = min(self._moment, self._heads.pop(call.path, self._moment))
        if self._since.get(answer[1], left + 1) > left:
            proof.violations.append(f"{answer[1].decode()} was acknowledged before its flush")


def prove_client(lines: Iterable[str]) -> Proof:
    """Hold every acknowledgement to the server's word that the transaction with its row is committed.

    Args:
        lines: of the trace of the service.
    """
    proof = Proof()
    flushed = _Flushed()
    sent = _Ids()
    asked: dict[str, frozenset[bytes]] = {}
    for call in calls_of(lines):
        if call.name in SENDS and call.begins:
            sent.look(call.path, call.data)
            if COMMIT in call.data:
                asked[call.path] = sent.take(call.path)
            flushed.judge(call, proof)
        elif call.name == "recvfrom" and call.ends and COMMITTED in call.data:
            flushed.add(asked.pop(call.path, frozenset[bytes]()))
            proof.flushes += 1
    return proof


def prove_server(lines: Iterable[str], wal: str) -> Proof:
    """Hold the server's word about each commit to a flush of its log after it was asked to commit.

    Any of its processes may have flushed: what one flushes is flushed for all.

    Args:
        lines: of the trace of all processes of the server.
        wal: a part of the path of its log.
    """
    proof = Proof()
    read = _Ids()
    asked: dict[int, tuple[int, frozenset[bytes]]] = {}
    flushing: dict[int, int] = {}
    newest = moment = 0
    for moment, call in enumerate(calls_of(lines), 1):
        if call.name in FLUSHES and wal in call.path:
            if call.begins:
                flushing[call.pid] = moment
            if call.ends and (began := flushing.pop(call.pid, 0)) and not call.failed:
                newest = max(newest, began)
                proof.flushes += 1
        elif call.name == "recvfrom" and call.ends:
            read.look(str(call.pid), call.data)
            if COMMIT in call.data:
                asked[call.pid] = moment, read.take(str(call.pid))
        elif call.name in SENDS and call.begins and COMMITTED in call.data:
            since, ids = asked.pop(call.pid, (0, frozenset[bytes]()))
            proof.acknowledged += bool(ids)
            if ids and newest < since:
                proof.violations.append(f"a commit with {len(ids)} ids was confirmed before a flush")
    return proof


class _Ids:
    """The new ids in what goes over each connection, also where one lies across two pieces."""

    def __init__(self) -> None:
        self._ends: defaultdict[str, bytes] = defaultdict(bytes)
        self._ids: defaultdict[str, set[bytes]] = defaultdict(set)
        self._known: set[bytes] = set()

    def look(self, connection: str, data: bytes) -> None:
        """Look through the next piece."""
        whole = self._ends[connection] + data
        self._ids[connection].update(_ID.findall(whole))
        self._ends[connection] = whole[1 - ID_BYTES :]

    def take(self, connection: str) -> frozenset[bytes]:
        """Those that no transaction had before this one."""
        new = frozenset(self._ids.pop(connection, set[bytes]()) - self._known)
        self._known |= new
        return new
