"""Where a message's time goes: samples of a process folded into parts, in microseconds a message."""

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import LOCAL

RATE = 400  # samples a second

# fmt: off
PARTS = (  # a sample belongs to the first row, from its innermost frame outwards, that one of its frames is named by
    #  part                       modules whose frames belong to it
    ("POSTs to others",           ("waypost/base/posts", "aiohttp/", "aiohappyeyeballs/", "waypost/outbound/")),
    ("HTTP server",               ("uvicorn/", "starlette/", "waypost/assembly/servers")),
    ("group commit",              ("waypost/base/batching", "waypost/store/database")),
    ("forms and JSON",            ("waypost/wire/", "waypost/operators/cloud/", "json/", "waypost/domain/")),
    ("store",                     ("waypost/store/", "sqlalchemy/", "sqlite3/", "psycopg/", "psycopg_binary/")),
    ("accept",                    ("waypost/api/",)),
    ("queue_jobs",                   ("waypost/queue/",)),
    ("dispatch",                  ("waypost/dispatch/",)),
    ("events",                    ("waypost/events/",)),
    ("callbacks",                 ("waypost/callbacks/",)),
    ("simulator: webhooks",       ("waypost/simulator/webhooks/",)),
    ("simulator: messages",       ("waypost/simulator/messages/", "waypost/simulator/templates/", "waypost/simulator/phones/")),
    ("simulator: the rest",       ("waypost/simulator/",)),
    ("clock, ids, logs, seals",   ("waypost/base/",)),
    ("threads and the loop",      ("concurrent/", "threading", "asyncio/", "uvloop/", "selectors", "queue")),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Part:
    """One part's share."""

    thread: str
    name: str
    us: float
    share: float


class Sampler:
    """py-spy beside a running process: started, and read when it has ended.

    Samples are of threads that run, in the interpreter or outside it, so that they add up to the
    process's processor time. Needs root, or `kernel.yama.ptrace_scope` 0.
    """

    def __init__(self, title: str, pid: int, *, seconds: float) -> None:
        self.title = title
        self._file = LOCAL / f"samples-{pid}.txt"
        LOCAL.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [
                *(str(Path(sys.executable).parent / "py-spy"), "record", "--pid", str(pid)),
                *("--duration", str(max(1, round(seconds))), "--rate", str(RATE), "--threads"),
                *("--full-filenames", "--nonblocking", "--format", "raw"),
                *("--output", str(self._file)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def samples(self) -> list[tuple[list[str], int]]:
        """Stacks, outermost frame first, and how often each was seen.

        Raises:
            RuntimeError: py-spy may not look at other processes here.
        """
        _, errors = self._process.communicate(timeout=120)
        if not self._file.exists():
            raise RuntimeError(f"py-spy did not run: {errors.strip()[:300]}")
        stacks: list[tuple[list[str], int]] = []
        for line in self._file.read_text().splitlines():
            frames, _, count = line.rpartition(" ")
            if count.isdecimal():  # the last line may have been cut while it was written
                stacks.append((frames.split(";"), int(count)))
        self._file.unlink()
        return stacks


def parts_of(stacks: Sequence[tuple[list[str], int]], us_per_message: float) -> list[Part]:
    """The parts of a message's time, the largest first."""
    total = sum(count for _, count in stacks) or 1
    found: Counter[tuple[str, str]] = Counter()
    for frames, count in stacks:
        found[_thread(frames[0]), _part(frames)] += count
    return [
        Part(thread, name, us_per_message * count / total, count / total)
        for (thread, name), count in found.most_common()
    ]


def functions_of(
    stacks: Sequence[tuple[list[str], int]], us_per_message: float, *, top: int
) -> list[tuple[float, str, float, str]]:
    """The functions with most time of their own, and with all that they call."""
    total = sum(count for _, count in stacks) or 1
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for frames, count in stacks:
        own[_short(frames[-1])] += count
        for frame in {_short(one) for one in frames[1:]}:
            whole[frame] += count
    pairs = zip(own.most_common(top), whole.most_common(top), strict=False)
    factor = us_per_message / total
    return [(a * factor, one, b * factor, other) for (one, a), (other, b) in pairs]


def table(title: str, stacks: Sequence[tuple[list[str], int]], us: float, *, top: int) -> str:
    """Both, as text."""
    seen = sum(count for _, count in stacks)
    lines = [f"{title}: {us:.0f} us of processor time a message, {seen} samples"]
    lines += [
        f"  {part.us:7.0f} us {part.share:6.1%}  {part.name:26} {part.thread}"
        for part in parts_of(stacks, us)
        if part.share >= 0.005
    ]
    lines.append(f"  {'us of its own':>50}{'us with all it calls':>58}")
    for own, one, whole, other in functions_of(stacks, us, top=top):
        lines.append(f"  {own:6.0f} {one:<52}{whole:6.0f} {other}")
    return "\n".join(lines)


def as_json(stacks: Sequence[tuple[list[str], int]], us: float) -> list[dict[str, Any]]:
    """The parts, to be kept."""
    return [{"thread": part.thread, "part": part.name, "us": round(part.us, 1)} for part in parts_of(stacks, us)]


def _part(frames: Sequence[str]) -> str:
    for frame in reversed(frames):
        place = frame.partition(" (")[2]
        for name, modules in PARTS:
            if any(module in place for module in modules):
                return name
    return "other"


def _thread(frame: str) -> str:
    name = frame.partition(":")[2].strip() or frame
    return name.rpartition("_")[0] if name.rpartition("_")[2].isdigit() else name


def _short(frame: str) -> str:
    name, _, place = frame.partition(" (")
    file, _, _line = place.rstrip(")").rpartition(":")
    return f"{name} ({'/'.join((file or place.rstrip(')')).split('/')[-2:])})"[:51]
