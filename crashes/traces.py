"""Parses a trace of system calls: which thread began or ended which call, on which file, with which bytes.

The trace is strace's (`-f -y`), whose lines are in the order in which the kernel stopped each
thread: a call whose end is traced before the begin of another has ended before it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

CALLS: Final = "pwrite64,pwritev,write,writev,sendto,sendmsg,recvfrom,fdatasync,fsync"
LONGEST: Final = 65536
"""Number of bytes of a buffer that the trace has to show: the longest single write."""

_LINE: Final = re.compile(r"^(?P<pid>\d+)\s+(?P<rest>.*)$")
_CALL: Final = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)$")
_RESUMED: Final = re.compile(r"^<\.\.\. (?P<name>\w+) resumed>(?P<arguments>.*)$")
_ENDED: Final = re.compile(r"\)\s+= (?P<result>-?\d+|\?)[^)]*$")
_UNFINISHED: Final = " <unfinished ...>"
_FILE: Final = re.compile(r"^\d+<(?P<path>[^>]*)>")
_TEXT: Final = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Call:
    """One side of a system call.

    Attributes:
        begins, ends: both are true if one line shows the whole call.
        path: the path of the file or socket, as the kernel names it.
        data: the bytes of its buffer: for a send at its begin, for a read at its end.
    """

    pid: int
    name: str
    path: str
    data: bytes
    begins: bool
    ends: bool
    failed: bool


def parse_calls(lines: Iterable[str]) -> Iterator[Call]:
    """Yield the calls of a trace in order; an interrupted call as two."""
    open_calls: dict[int, tuple[str, str]] = {}
    for line in lines:
        match = _LINE.match(line.rstrip("\n"))
        if match is None:
            continue
        pid, rest = int(match["pid"]), match["rest"]
        if resumed := _RESUMED.match(rest):
            name, path = open_calls.pop(pid, (resumed["name"], ""))
            yield Call(pid, name, path, _bytes(rest), False, True, _has_failed(rest))
        elif call := _CALL.match(rest):
            is_whole = not rest.endswith(_UNFINISHED)
            file = _FILE.match(call["arguments"])
            path = file["path"] if file else ""
            if not is_whole:
                open_calls[pid] = (call["name"], path)
            failed = is_whole and _has_failed(rest)
            yield Call(pid, call["name"], path, _bytes(rest), True, is_whole, failed)


def _has_failed(rest: str) -> bool:
    ended = _ENDED.search(rest)
    return ended is None or not ended["result"].isdigit()


def _bytes(rest: str) -> bytes:
    """Return the concatenated buffers of a line."""
    shown = [text.encode("latin-1", "replace") for text in _TEXT.findall(rest)]
    return b"".join(codecs.escape_decode(text)[0] for text in shown)
