"""A folder in memory, for tests that do not examine what survives a loss of power.

They need not wait for a disk or for its file system's bookkeeping, which is a third of the cost of
creating a database. A killed process leaves the same files there as on a disk.
"""

import shutil
from pathlib import Path
from typing import Final

_SHARED_MEMORY: Final = Path("/dev/shm")
_MIN_FREE_BYTES: Final = 4 * 2**30


def folder_in_memory() -> Path | None:
    """Return a folder in memory; None if there is none, or if it is small."""
    if _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _MIN_FREE_BYTES:
        return _SHARED_MEMORY
    return None
