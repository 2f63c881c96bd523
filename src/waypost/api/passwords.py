"""Password hashing with argon2id, in threads of its own; an unknown e-mail address takes the same time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

ThreadResult = TypeVar("ThreadResult")


class Argon2Hasher:
    """Hashes and verifies passwords, at most two at once: each takes 64 MiB."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="argon2")
        self._placeholder_hash: str | None = None

    async def hash(self, password: str) -> str:
        """Return the argon2id hash of a password."""
        return await self._run(self._hasher.hash, password)

    async def matches(self, stored: str | None, password: str) -> bool:
        """True if the password matches the hash; takes the same time when there is none, or an empty one."""
        if not stored:
            if self._placeholder_hash is None:
                self._placeholder_hash = await self.hash("placeholder password")
            await self._run(self._check, self._placeholder_hash, password)
            return False
        return await self._run(self._check, stored, password)

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown()

    def _check(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerifyMismatchError, InvalidHashError):
            return False

    async def _run(self, work: Callable[..., ThreadResult], *args: str) -> ThreadResult:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
