"""Extras: the packages that a feature needs and that are not installed with Waypost."""

import re
import sys
from importlib.metadata import requires
from typing import Final

_EXTRA: Final = re.compile(r"""(?P<requirement>[^;]+?) *; *extra == ["'](?P<extra>\w+)["']""")


def install_command(extra: str) -> str:
    """Return the command that installs what an extra needs, into the environment of this process.

    It names the packages themselves, not `waypost[extra]`: an index need not have Waypost.
    """
    found = [match for text in requires("waypost") or () if (match := _EXTRA.fullmatch(text))]
    needed = " ".join(f"'{match['requirement']}'" for match in found if match["extra"] == extra)
    return f"{sys.executable} -m pip install {needed}"
