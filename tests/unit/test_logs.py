"""Records and where they go."""

import io
import sys

import pytest

from waypost.base.logs import WhereverStderrIs


def test_records_follow_standard_error_and_survive_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = WhereverStderrIs()
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", first)
    stream.write("to the first")

    first.close()
    print("lost, and nobody's defect", file=stream, flush=True)
    monkeypatch.setattr(sys, "stderr", second)
    print("to the second", file=stream, flush=True)

    assert second.getvalue() == "to the second\n"
