"""What a process does once for its service, done once for the hundreds of services of a test run.

A process compiles each SQL statement once and keeps it with its engine; and it reads the paths of its routes once.
Passwords are hashed with the smallest cost: each hash, and each check of one, otherwise takes 0.17 s.
"""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import pytest
import sqlalchemy
import starlette.routing
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST
from sqlalchemy import Engine

from waypost.api import passwords
from waypost.store.engines import postgresql, sqlite


@contextmanager
def shared_work() -> Generator[None]:
    """Share compiled statements between all engines of one kind, and read paths between all services; hash cheaply."""
    first: dict[str, Engine] = {}

    def create_engine(url: str, **options: Any) -> Engine:
        engine = sqlalchemy.create_engine(url, **options)
        shared = first.setdefault(engine.dialect.name, engine)
        engine.dialect = shared.dialect  # a part of the key of a compiled statement
        engine._compiled_cache = shared._compiled_cache  # pyright: ignore[reportPrivateUsage]
        return engine

    with pytest.MonkeyPatch.context() as patch:
        for module in (postgresql, sqlite):
            patch.setattr(module, "create_engine", create_engine)
        patch.setattr(starlette.routing, "compile_path", cache(starlette.routing.compile_path))
        patch.setattr(passwords, "PasswordHasher", partial(PasswordHasher.from_parameters, CHEAPEST))
        yield
