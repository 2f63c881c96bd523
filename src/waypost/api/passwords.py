"""Passwords by argon2id, in threads of their own, and the same time for an e-mail nobody has."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

Result = TypeVar("Result")


class Passwords:
    """Hashes and checks. At most two at once: each takes 64 MiB."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="argon2")
        self._nobodys: str | None = None

    async def hash(self, password: str) -> str:
        """The argon2id hash of a password."""
        return await self._run(self._hasher.hash, password)

    async def matches(self, stored: str | None, password: str) -> bool:
        """Whether the password is the one behind the hash; costs the same when there is none, or an empty one."""
        if not stored:
            if self._nobodys is None:
                self._nobodys = await self.hash("nobody's password")
            await self._run(self._check, self._nobodys, password)
            return False
        return await self._run(self._check, stored, password)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _check(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerifyMismatchError, InvalidHashError):
            return False

    async def _run(self, work: Callable[..., Result], *args: str) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
