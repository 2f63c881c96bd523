"""Ids: UUIDs of version 7 that sort by time, and secrets that cannot be guessed."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from tests.support.manual_clock import ManualClock
from waypost.base.ids import RandomIds, SeededIds, is_uuid, uuid7_text


@given(at_ms=st.integers(0, 2**48 - 1), chance=st.binary(min_size=10, max_size=10))
def test_id_is_a_uuid_of_version_7_that_holds_its_time(at_ms: int, chance: bytes) -> None:
    text = uuid7_text(at_ms, chance)

    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert parsed.int >> 80 == at_ms
    assert is_uuid(text)


@given(st.lists(st.integers(0, 2**48 - 1), unique=True))
def test_ids_sort_by_their_time(times: list[int]) -> None:
    texts = [uuid7_text(at_ms, b"\xff" * 10) for at_ms in sorted(times)]

    assert texts == sorted(texts)


def test_ids_of_one_millisecond_are_all_different() -> None:
    ids = RandomIds(ManualClock())

    assert len({ids.new() for _ in range(10_000)}) == 10_000


def test_ids_count_up_even_within_one_millisecond() -> None:
    ids = RandomIds(ManualClock())

    made = [ids.new() for _ in range(10_000)]

    assert made == sorted(made)
    assert all(is_uuid(text) for text in made)


def test_secret_has_256_bits() -> None:
    ids = RandomIds(ManualClock())

    secrets = {ids.secret() for _ in range(100)}

    assert len(secrets) == 100
    assert all(len(bytes.fromhex(secret)) == 32 for secret in secrets)


def test_digits_have_the_requested_length() -> None:
    ids = RandomIds(ManualClock())

    for count in (1, 8, 16, 20):
        texts = [ids.digits(count) for _ in range(200)]
        assert all(len(text) == count and text.isdecimal() and text[0] != "0" for text in texts)


def test_seeded_ids_are_the_same_in_every_run() -> None:
    def generate(seed: str) -> list[str]:
        ids = SeededIds(ManualClock(), seed)
        return [ids.new(), ids.secret(), ids.digits(16), ids.new()]

    assert generate("a") == generate("a")
    assert not set(generate("a")) & set(generate("b"))


def test_only_uuids_are_recognized_as_uuids() -> None:
    assert is_uuid("01990000-0000-7000-8000-0000000000A1")
    for text in ("", "wamid.HBgL", "0199000000007000800000000000000a", "{01990000}", "x" * 36):
        assert not is_uuid(text)
