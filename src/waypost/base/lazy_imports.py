"""Leaving out what a library loads only in case."""

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without(name: str) -> Generator[None]:
    """Let what is imported here find no package of this name; one that is loaded already stays.

    For a library that uses another where there is one, and loads it at its own import although we
    never ask for it: a tenth of a second and several megabytes in each process.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # pyright: ignore[reportArgumentType]  how an import is told to fail
    try:
        yield
    finally:
        del sys.modules[name]
