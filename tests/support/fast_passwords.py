"""Passwords that are checked at once, instead of in 100 ms of processor time: a hash says itself how much work its check is."""

from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST


def hash_of_little_work(password: str) -> str:
    """An argon2id hash, of the smallest parameters."""
    return PasswordHasher.from_parameters(CHEAPEST).hash(password)
