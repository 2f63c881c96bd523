"""What the service logged as an error, although nothing was wrong outside of it: a defect of its own.

A store that is away is none; every other exception of a request, a job or a loop is. Without this a defect that is
retried, or that happens while a 500 is right, would not be seen.
"""

import json
from typing import Any, Final

from simulation.story import tell
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.store import contract

_STORE_ERRORS: Final = tuple(
    f"{contract.__name__}.{error.__name__}" for error in (contract.StoreUnavailable, contract.MediaUnavailable)
)
_DISK_ERRORS: Final = ("OSError: [Errno 28] No space left on device", "OSError: [Errno 5] Input/output error")
"""Only a simulated disk has them. An upload that it fails is logged, and gets the documented error."""
SHOWN_LINES: Final = 6
"""Of an exception: where it was raised, and what it is."""


class DefectRecords:
    """The output of log records: keeps those that are defects."""

    def __init__(self) -> None:
        self.defects: list[str] = []
        self._begun = ""

    def write(self, text: str, /) -> int:
        """Keep each record that ends in this text, unless it says that the store is away. A long one comes in parts."""
        *records, self._begun = (self._begun + text).split("\n")
        for record in filter(None, records):
            self._keep(json.loads(record))
        return len(text)

    def _keep(self, record: dict[str, Any]) -> None:
        lines = record.get("exception", "").rstrip().splitlines()
        if not lines or not lines[-1].startswith((*_STORE_ERRORS, *_DISK_ERRORS)):
            defect = "\n".join([f"the service logged {record['event']!r}", *lines[-SHOWN_LINES:]])
            self.defects.append(defect)
            tell(defect)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def fileno(self) -> int:
        """Return no descriptor: nothing can keep this from being written."""
        raise OSError


_records = DefectRecords()


def keep_defects() -> None:
    """Keep defects instead of writing records; once in a process."""
    set_up_logs(SystemClock(), as_json=True, level="error", stream=_records)


def take_defects() -> list[str]:
    """Return the defects since the last call."""
    defects, _records.defects = _records.defects, []
    return defects
