"""ProgressLine is one rewritten line on a terminal, and nothing elsewhere."""

import io

import pytest

from waypost.cli.output.progress import ProgressLine


class Terminal(io.StringIO):
    """A terminal that remembers what is written."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "written"), [(Terminal(), "\r\x1b[K1 of 2\r\x1b[K2 of 2\r\x1b[K"), (io.StringIO(), "")]
)
def test_line_is_rewritten_on_a_terminal_only(stream: io.StringIO, written: str) -> None:
    progress = ProgressLine(stream)

    progress.show("1 of 2")
    progress.show("passed over, because it comes too soon")
    progress.show("2 of 2", at_once=True)
    progress.clear()

    assert stream.getvalue() == written
