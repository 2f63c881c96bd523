"""Handles: several of ours may stand in one text, a line each."""

import pytest

from waypost.domain.media import MOST_LINES, lines_of


@pytest.mark.parametrize(
    ("handle", "lines"),
    [("", ()), ("4::a", ("4::a",)), ("4::a\n4::b", ("4::a", "4::b")), (" 4::a \r\n\r\n4::b\n", ("4::a", "4::b"))],
)
def test_lines_of_a_handle_come_without_what_surrounds_them(handle: str, lines: tuple[str, ...]) -> None:
    assert lines_of(handle) == lines


def test_text_with_more_lines_than_a_handle_has_is_left_whole() -> None:
    assert len(lines_of("a\n" * MOST_LINES)) == MOST_LINES
    assert lines_of("a\n" * (MOST_LINES + 1)) == ()
