"""Handles: one text may hold several of ours, one on each line."""

import pytest

from waypost.domain.media import MAX_HANDLE_LINES, handle_lines


@pytest.mark.parametrize(
    ("handle", "lines"),
    [("", ()), ("4::a", ("4::a",)), ("4::a\n4::b", ("4::a", "4::b")), (" 4::a \r\n\r\n4::b\n", ("4::a", "4::b"))],
)
def test_lines_of_a_handle_are_read_without_surrounding_blanks(handle: str, lines: tuple[str, ...]) -> None:
    assert handle_lines(handle) == lines


def test_text_with_too_many_lines_holds_no_handle() -> None:
    assert len(handle_lines("a\n" * MAX_HANDLE_LINES)) == MAX_HANDLE_LINES
    assert handle_lines("a\n" * (MAX_HANDLE_LINES + 1)) == ()
