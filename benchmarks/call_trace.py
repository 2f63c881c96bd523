"""Which of the product's functions run in a process, how often, and in which order: a profile function on every thread."""

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

    The calls of the main thread, in their order, are written to a file beside it.

    A coroutine counts each time that it is resumed. Install it before the first thread is started: a thread gets its
    profile function when it begins.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._calls: Counter[CodeType] | None = None
        self._main_thread_id = threading.get_ident()
        self._order: list[CodeType] = []

    def install(self) -> None:
        threading.setprofile(self._count)
        sys.setprofile(self._count)
        signal.signal(signal.SIGUSR1, self._switch)

    def _count(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and (calls := self._calls) is not None:
            calls[frame.f_code] += 1
            if threading.get_ident() == self._main_thread_id:
                self._order.append(frame.f_code)

    def _switch(self, _number: int, _frame: FrameType | None) -> None:
        calls, self._calls = self._calls, Counter() if self._calls is None else None
        order, self._order = self._order, []
        if calls is None:
            return
        ordered = [describe_code(code) for code in order if is_of_product(code)]
        self._file.with_suffix(".order").write_text("\n".join(ordered))
        lines = [f"{count}\t{describe_code(code)}" for code, count in calls.most_common() if is_of_product(code)]
        self._file.with_suffix(".part").write_text("\n".join(lines))
        self._file.with_suffix(".part").replace(self._file)


def is_of_product(code: CodeType) -> bool:
    """True if a function is one of the package's."""
    return f"/{PRODUCT}" in code.co_filename


def describe_code(code: CodeType) -> str:
    """Return the module and the name of a function, with a tab between them."""
    return f"{code.co_filename.rpartition(PRODUCT)[2]}\t{code.co_qualname}"
