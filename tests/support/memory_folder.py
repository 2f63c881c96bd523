"""Where files lie in memory, for tests that do not ask what a loss of power leaves.

None of those has to wait for a disk, or for the book-keeping of its file system, which takes a third of
what making a database costs. A killed process leaves the same there as on any other.
"""

import shutil
from pathlib import Path
from typing import Final

_PLACE: Final = Path("/dev/shm")
_ENOUGH_BYTES: Final = 4 * 2**30


def folder_in_memory() -> Path | None:
    """A folder in memory; None where there is none, or it is small."""
    if _PLACE.is_dir() and shutil.disk_usage(_PLACE).free > _ENOUGH_BYTES:
        return _PLACE
    return None
