"""The next version of Waypost: it works on the next revision, and has the sample of a step that leads there.

`python -m tests.support.next_version` is its command `waypost`.
"""

from pathlib import Path
from typing import Final

import pytest

import waypost.store.revision
import waypost.store.tables
from waypost.cli.main import main
from waypost.store.tables import REVISION

NEXT_STEP_FOLDER: Final = Path(__file__).parent / "next_step"


def become_next_version(patch: pytest.MonkeyPatch) -> int:
    """Make this process one of the next version until the patch is undone; return its revision."""
    for module in (waypost.store.tables, waypost.store.revision):
        patch.setattr(module, "REVISION", REVISION + 1)
    patch.setattr(waypost.store.revision, "STEPS_FOLDER", NEXT_STEP_FOLDER)
    return REVISION + 1


if __name__ == "__main__":
    become_next_version(pytest.MonkeyPatch())
    main()
