"""ProgressLine is one rewritten line on a terminal, and nothing elsewhere."""

import contextlib
import io
import os
import pty
import subprocess
import sys

import pytest

from tests.support.polling import HANGS_AFTER_S
from waypost.cli.output import ProgressLine


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


def test_error_replaces_the_line_of_progress_on_a_terminal() -> None:
    code = (
        "from waypost.cli.errors import fail\n"
        "from waypost.cli.output import show_progress\n"
        "with show_progress('counting'):\n"
        "    fail('it is wrong')\n"
    )
    terminal, end = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=end, stdout=end, stderr=end)
    os.close(end)
    printed = b""
    with contextlib.suppress(OSError):  # a terminal without programs
        while part := os.read(terminal, 4096):
            printed += part
    os.close(terminal)
    process.wait(HANGS_AFTER_S)

    assert b"counting\r\x1b[Kwaypost: it is wrong" in printed
