"""Log records and their streams."""

import io
import os
import subprocess
import sys

import pytest

from waypost.base.telemetry.logs import CurrentStderr, LossyStream
from waypost.base.telemetry.tracing import Tracer, TraceRecord, TraceStep


def test_records_follow_standard_error_and_survive_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = LossyStream(CurrentStderr())
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", first)
    stream.write("to the first")

    first.close()
    print("lost without an error", file=stream, flush=True)
    monkeypatch.setattr(sys, "stderr", second)
    print("to the second", file=stream, flush=True)

    assert second.getvalue() == "to the second\n"


class Failing:
    """A stream on which nothing can be written."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def write(self, _text: str, /) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error

    def fileno(self) -> int:
        raise self.error


@pytest.mark.parametrize(
    "error", [OSError(28, "no space left"), BrokenPipeError(), ValueError("closed"), OSError(27, "")]
)
def test_records_that_cannot_be_written_are_lost_and_counted(error: Exception) -> None:
    stream = LossyStream(Failing(error))

    print("lost", file=stream, flush=True)

    assert stream.lost == 2  # the text and its end


def test_unread_pipe_loses_records_and_blocks_no_writer() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w", encoding="utf-8") as pipe:
        stream = LossyStream(pipe)
        long = "é" * 3_000 + "\n"

        for number in range(100):  # 600 kB, several times what a pipe holds
            stream.write(f"{number} {long}")
        lost = stream.lost
        os.set_blocking(reading, False)
        before = reader.read()
        stream.write("after\n")
        after = reader.read()

    *whole, last = before.decode().split("\n")
    assert all(line.endswith("é" * 3_000) for line in whole)
    assert 0 < len(last) < 3_000  # its end is lost
    assert lost == 100 - len(whole)
    assert after == b"\nafter\n"  # on a line of its own


def test_record_that_cannot_be_rendered_is_replaced_by_one_that_can() -> None:
    code = (
        "from waypost.base.clock import SystemClock\n"
        "from waypost.base.telemetry.logs import log, set_up_logs\n"
        "class Unreadable:\n"
        "    def __repr__(self): raise ValueError\n"
        "set_up_logs(SystemClock(), as_json=False, level='info')\n"
        "log('a').info('before', odd=Unreadable())\n"
        "log('a').info('after')\n"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    first, second = ran.stderr.splitlines()
    assert first == "a record could not be rendered: 'before' (ValueError)"
    assert "after" in second


def test_values_of_a_row_that_a_database_rejects_are_not_logged() -> None:
    code = """
from psycopg.errors import CheckViolation
from sqlalchemy.exc import IntegrityError

from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import log, set_up_logs

set_up_logs(SystemClock(), as_json=False, level="info")
try:
    try:
        raise CheckViolation("new row violates a rule\\nDETAIL:  Failing row contains (1, Ann\\n\\nis ill).")
    except CheckViolation as error:
        raise IntegrityError("UPDATE rows", {"name": "Ann"}, error, hide_parameters=True) from error
except IntegrityError as error:
    log("store").error("defect", exc_info=error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stderr.count("new row violates a rule\nDETAIL:  (not logged)\n") == 2
    assert "[SQL: UPDATE rows]" in ran.stderr
    assert "Ann" not in ran.stderr
    assert "is ill" not in ran.stderr


def test_listener_that_fails_does_not_affect_the_recording_of_a_step() -> None:
    records: list[TraceRecord] = []
    tracer = Tracer()

    def fail(_record: TraceRecord) -> None:
        raise OSError(28, "no space left")

    tracer.log_to(fail, include_successes=True)
    tracer.trace_to(fail)
    tracer.trace_to(records.append)

    tracer.record(TraceStep.ACCEPTED, "an id")

    assert [record.message_id for record in records] == ["an id"]
