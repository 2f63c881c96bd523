"""The processor time of a message by part: samples of a process, in microseconds a message."""

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
PARTS = (  # a sample belongs to the first row that matches one of its frames, from the innermost outwards
    #  part                       modules whose frames belong to it
    ("POSTs to others",           ("waypost/base/http/", "aiohttp/", "aiohappyeyeballs/", "waypost/outbound/")),
    ("HTTP server",               ("uvicorn/", "starlette/", "waypost/assembly/http/")),
    ("group commit",              ("waypost/base/batching", "waypost/store/database")),
    ("forms and JSON",            ("waypost/wire/", "waypost/operators/cloud/", "json/", "waypost/domain/")),
    ("store",                     ("waypost/store/", "sqlalchemy/", "sqlite3/", "psycopg/", "psycopg_binary/")),
    ("API",                       ("waypost/api/",)),
    ("queue",                     ("waypost/queue/",)),
    ("dispatch",                  ("waypost/dispatch/",)),
    ("events",                    ("waypost/events/",)),
    ("callbacks",                 ("waypost/callbacks/",)),
    ("simulator: webhooks",       ("waypost/simulator/webhooks/",)),
    ("simulator: messages",       ("waypost/simulator/messages/", "waypost/simulator/templates/", "waypost/simulator/state/")),
    ("simulator: the rest",       ("waypost/simulator/",)),
    ("clock, ids, logs, seals",   ("waypost/base/",)),
    ("threads and the loop",      ("concurrent/", "threading", "asyncio/", "uvloop/", "selectors", "queue")),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Part:
    """The share of one part."""

    thread: str
    name: str
    us: float
    share: float


class Sampler:
    """Runs py-spy on a running process, and reads its samples at the end.

    Samples are of running threads, in the interpreter or outside it, so that they add up to the
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
        """Return stacks, outermost frame first, with the count of each.

        Raises:
            RuntimeError: py-spy has no permission to read other processes.
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


def split_into_parts(stacks: Sequence[tuple[list[str], int]], us_per_message: float) -> list[Part]:
    """Return the parts of a message's time, the largest first."""
    total = sum(count for _, count in stacks) or 1
    counts: Counter[tuple[str, str]] = Counter()
    for frames, count in stacks:
        counts[_thread(frames[0]), _part_name(frames)] += count
    return [
        Part(thread, name, us_per_message * count / total, count / total)
        for (thread, name), count in counts.most_common()
    ]


def top_functions(
    stacks: Sequence[tuple[list[str], int]], us_per_message: float, *, top: int
) -> list[tuple[float, str, float, str]]:
    """Return the functions with most time of their own, and with most time including what they call."""
    total = sum(count for _, count in stacks) or 1
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for frames, count in stacks:
        own[_short_frame(frames[-1])] += count
        for frame in {_short_frame(frame) for frame in frames[1:]}:
            whole[frame] += count
    pairs = zip(own.most_common(top), whole.most_common(top), strict=False)
    factor = us_per_message / total
    return [(a * factor, own_name, b * factor, whole_name) for (own_name, a), (whole_name, b) in pairs]


def format_table(title: str, stacks: Sequence[tuple[list[str], int]], us: float, *, top: int) -> str:
    """Return the table of parts and functions."""
    sample_count = sum(count for _, count in stacks)
    lines = [f"{title}: {us:.0f} us of processor time a message, {sample_count} samples"]
    lines += [
        f"  {part.us:7.0f} us {part.share:6.1%}  {part.name:26} {part.thread}"
        for part in split_into_parts(stacks, us)
        if part.share >= 0.005
    ]
    lines.append(f"  {'us of its own':>50}{'us with its calls':>58}")
    for own, own_name, whole, whole_name in top_functions(stacks, us, top=top):
        lines.append(f"  {own:6.0f} {own_name:<52}{whole:6.0f} {whole_name}")
    return "\n".join(lines)


def parts_as_json(stacks: Sequence[tuple[list[str], int]], us: float) -> list[dict[str, Any]]:
    """Return the parts as JSON values."""
    return [
        {"thread": part.thread, "part": part.name, "us": round(part.us, 1)} for part in split_into_parts(stacks, us)
    ]


def _part_name(frames: Sequence[str]) -> str:
    for frame in reversed(frames):
        location = frame.partition(" (")[2]
        for name, modules in PARTS:
            if any(module in location for module in modules):
                return name
    return "other"


def _thread(frame: str) -> str:
    name = frame.partition(":")[2].strip() or frame
    return name.rpartition("_")[0] if name.rpartition("_")[2].isdigit() else name


def _short_frame(frame: str) -> str:
    name, _, location = frame.partition(" (")
    file, _, _line = location.rstrip(")").rpartition(":")
    return f"{name} ({'/'.join((file or location.rstrip(')')).split('/')[-2:])})"[:51]
