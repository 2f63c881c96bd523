"""Imports without the optional dependencies of a library."""

import sys
from collections.abc import Generator
from contextlib import contextmanager


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
