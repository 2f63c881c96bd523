"""Packages that are not installed, or not to be loaded: a feature needs them, or a library imports them in vain."""

import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
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


@contextmanager
def hide_package(name: str) -> Generator[None]:
    """Hide a package from the imports in this context; a package that is already loaded stays.

    For a library that imports an optional dependency at its own import although we never use it: a
    tenth of a second and several megabytes in each process.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # pyright: ignore[reportArgumentType]  makes the import fail
    try:
        yield
    finally:
        del sys.modules[name]
