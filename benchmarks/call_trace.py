"""Which of the product's functions run in a process, and how often: a profile function on every thread."""

import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PRODUCT = str(Path("waypost") / "")  # the folder of the package in a path of a module


class CallTrace:
    """Counts calls of the product's functions between two SIGUSR1, and writes them at the second.

    A coroutine counts each time that it is resumed. Install it before the first thread is started: a thread gets its
    profile function when it begins.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._calls: Counter[CodeType] | None = None

    def install(self) -> None:
        threading.setprofile(self._count)
        sys.setprofile(self._count)
        signal.signal(signal.SIGUSR1, self._switch)

    def _count(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and (calls := self._calls) is not None:
            calls[frame.f_code] += 1

    def _switch(self, _number: int, _frame: FrameType | None) -> None:
        calls, self._calls = self._calls, Counter() if self._calls is None else None
        if calls is None:
            return
        lines = [
            f"{count}\t{code.co_filename.rpartition(PRODUCT)[2]}\t{code.co_qualname}"
            for code, count in calls.most_common()
            if f"/{PRODUCT}" in code.co_filename
        ]
        self._file.with_suffix(".part").write_text("\n".join(lines))
        self._file.with_suffix(".part").replace(self._file)
