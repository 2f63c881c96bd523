"""New ids of each kind, and their randomness."""

import os
import random
import threading
import uuid
from typing import Protocol

from waypost.base.clock import Clock


class Ids(Protocol):
    """A source of ids and secrets."""

    def new(self) -> str:
        """Return a UUID of version 7 as text: 48 bits of our clock, the rest random."""
        ...

    def many(self, count: int) -> list[str]:
        """Return so many of them, each higher than the one before."""
        ...

    def secret(self) -> str:
        """Return 256 random bits as 64 hex digits."""
        ...

    def digits(self, count: int) -> str:
        """Return a decimal id of exactly `count` digits that does not begin with 0."""
        ...


class RandomIds:
    """Ids for production; the entropy is the operating system's, read in blocks.

    One read of urandom for many ids costs a third of `uuid4` per id. Ids of one millisecond count up in their
    12 bits after the version, so that each is higher than all that this process has made: rows that are added
    together fill the last page of an index, and split none.

    Source: RFC 9562, section 6.2, method 1.
    """

    _BLOCK_BYTES = 4096
    _MAX_COUNT = 0xFFF

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pool = b""
        self._used = 0
        self._last_ms = self._count = 0
        self._lock = threading.Lock()  # the store's writer makes ids on a thread of its own

    def new(self) -> str:
        """Return a UUID of version 7 as text, higher than all before."""
        return self.many(1)[0]

    def many(self, count: int) -> list[str]:
        """Return so many UUIDs, each higher than all before."""
        ids: list[str] = []
        with self._lock:
            now_ms = self._clock.now_ms()
            for _ in range(count):
                if self._used + 10 > len(self._pool):
                    self._pool, self._used = os.urandom(self._BLOCK_BYTES), 0
                first = self._used
                self._used = end = first + 10
                if now_ms > self._last_ms:
                    first_count = int.from_bytes(self._pool[first : first + 2]) & (self._MAX_COUNT >> 1)
                    self._last_ms, self._count = now_ms, first_count
                elif self._count < self._MAX_COUNT:
                    self._count += 1
                else:
                    self._last_ms, self._count = self._last_ms + 1, 0
                ids.append(uuid7_text(self._last_ms, self._count.to_bytes(2) + self._pool[first + 2 : end]))
        return ids

    def secret(self) -> str:
        """Return 256 random bits, directly from the operating system, as 64 hex digits."""
        return os.urandom(32).hex()

    def digits(self, count: int) -> str:
        """Return a decimal id of `count` digits."""
        return _digits(int.from_bytes(os.urandom(16)), count)


class SeededIds:
    """Ids that repeat from run to run: for tests and for the seed of `waypost dev`. Never for production."""

    def __init__(self, clock: Clock, seed: str) -> None:
        self._clock = clock
        self._seed = seed
        self._random = random.Random(seed)  # noqa: S311  repeatable on purpose

    def reseed(self, name: str) -> None:
        """Continue with ids that depend on the seed and this name, not on the number of ids made before."""
        self._random = random.Random(f"{self._seed} {name}")  # noqa: S311

    def new(self) -> str:
        """Return a UUID of version 7 as text; its random part comes from the seed."""
        return uuid7_text(self._clock.now_ms(), self._random.randbytes(10))

    def many(self, count: int) -> list[str]:
        """Return so many UUIDs."""
        return [self.new() for _ in range(count)]

    def secret(self) -> str:
        """Return 64 hex digits from the seed."""
        return self._random.randbytes(32).hex()

    def digits(self, count: int) -> str:
        """Return a decimal id of `count` digits from the seed."""
        return _digits(self._random.getrandbits(128), count)


def uuid7_text(at_ms: int, random_bytes: bytes) -> str:
    """Return a UUID of version 7 made of a time and 10 random bytes.

    Source: RFC 9562, section 5.7.
    """
    text = f"{at_ms:012x}{random_bytes.hex()}"
    variant = "89ab"[random_bytes[2] & 3]
    return f"{text[:8]}-{text[8:12]}-7{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def is_uuid(text: str) -> bool:
    """True if the text is a UUID of any version in its usual spelling."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _digits(number: int, count: int) -> str:
    lowest = 10 ** (count - 1)
    return str(lowest + number % (9 * lowest))
