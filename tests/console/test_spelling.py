"""Numbers and times on pages are spelt as people say them."""

import pytest

from waypost.console.spelling import duration, grouped, plain


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "under 1 ms"), (35, "35 ms"), (1_000, "1 s"), (1_234, "1.2 s"), (10_000, "10 s"), (61_400, "61 s")],
)  # fmt: skip
def test_durations_are_spelt_as_people_say_them(ms: int, text: str) -> None:
    assert duration(ms).replace("\u00a0", " ") == text


def test_thousands_stand_apart_and_small_numbers_keep_a_tenth() -> None:
    assert [plain(one) for one in (0, 4, 4.26, 12.6, 1_234_567)] == [
        "0",
        "4",
        "4.3",
        "13",
        "1\u202f234\u202f567",
    ]
    assert [grouped(one) for one in (None, 7, 1_234)] == ["", "7", "1\u202f234"]
