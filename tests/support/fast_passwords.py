"""Password hashes with the smallest cost, so that a check does not take 100 ms; the hash itself names its cost."""

from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST


def hash_with_low_cost(password: str) -> str:
    """Return an argon2id hash with the smallest parameters."""
    return PasswordHasher.from_parameters(CHEAPEST).hash(password)
