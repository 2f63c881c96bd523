"""A trace of system calls, read: which thread began or ended which call, on what, with which bytes.

The trace is strace's (`-f -y`), whose lines stand in the order in which the kernel stopped each
thread: a call that was seen to end before another began has ended before it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

CALLS: Final = "pwrite64,pwritev,write,writev,sendto,sendmsg,recvfrom,fdatasync,fsync"
LONGEST: Final = 65536
"""How many bytes of a buffer the trace has to show: all that is written at once."""

_LINE: Final = re.compile(r"^(?P<pid>\d+)\s+(?P<rest>.*)$")
_CALL: Final = re.compile(r"^(?P<name>\w+)\((?P<words>.*)$")
_RESUMED: Final = re.compile(r"^<\.\.\. (?P<name>\w+) resumed>(?P<words>.*)$")
_ENDED: Final = re.compile(r"\)\s+= (?P<result>-?\d+|\?)[^)]*$")
_UNFINISHED: Final = " <unfinished ...>"
_FILE: Final = re.compile(r"^\d+<(?P<path>[^>]*)>")
_TEXT: Final = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Call:
    """One side of a system call.

    Attributes:
        begins, ends: one line may show both.
        path: of the file or socket, as the kernel names it.
        data: the bytes of its buffer: of a send where it begins, of a read where it ends.
    """

    pid: int
    name: str
    path: str
    data: bytes
    begins: bool
    ends: bool
    failed: bool


def calls_of(lines: Iterable[str]) -> Iterator[Call]:
    """The calls of a trace, in order; a call that another interrupts comes as two."""
    open_calls: dict[int, tuple[str, str]] = {}
    for line in lines:
        found = _LINE.match(line.rstrip("\n"))
        if found is None:
            continue
        pid, rest = int(found["pid"]), found["rest"]
        if resumed := _RESUMED.match(rest):
            name, path = open_calls.pop(pid, (resumed["name"], ""))
            yield Call(pid, name, path, _bytes(rest), False, True, _has_failed(rest))
        elif call := _CALL.match(rest):
            is_whole = not rest.endswith(_UNFINISHED)
            file = _FILE.match(call["words"])
            path = file["path"] if file else ""
            if not is_whole:
                open_calls[pid] = (call["name"], path)
            failed = is_whole and _has_failed(rest)
            yield Call(pid, call["name"], path, _bytes(rest), True, is_whole, failed)


def _has_failed(rest: str) -> bool:
    ended = _ENDED.search(rest)
    return ended is None or not ended["result"].isdigit()


def _bytes(rest: str) -> bytes:
    """All buffers that a line shows, one after the other."""
    shown = [text.encode("latin-1", "replace") for text in _TEXT.findall(rest)]
    return b"".join(codecs.escape_decode(text)[0] for text in shown)
