"""The message of a failed wait, line by line, without the parts that differ from run to run."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pytest_waypost.failures import NotSeen
from pytest_waypost.partner import Partner


def failure_lines(error: BaseException, partner: Partner) -> list[str]:
    """Return the lines of a failure; times and ids as T and ID, phone numbers as names.

    The line with the clock's offset is left out: other tests advance the clock.
    """
    text = str(error)
    for phone in partner.phones:
        text = text.replace(phone.number, f"<{phone.name}>")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]+", "ID", text)
    text = re.sub(r"\d\d:\d\d:\d\d\.\d{3}", "T", text)
    return [line for line in text.splitlines() if not re.match(r"the clock is [\d.]+ days", line)]


def test_missed_message_shows_what_the_phone_received_instead(partner: Partner) -> None:
    ann = partner.phone("Ann")
    template = partner.create_template("order", "Your order is in.", buttons=["Keep", "Cancel"])
    ann.write("Hi")
    partner.send_template(template, ann)
    ann.tap("Keep")
    partner.send_text("A very long text " * 20, ann)
    ann.wait_for_message("very long")

    with pytest.raises(NotSeen) as missed:
        ann.wait_for_message("cancelled", within_s=0.05)

    assert failure_lines(missed.value, partner) == [
        'no message with "cancelled" came to Ann (<Ann>) within 0.05 s',
        "on Ann's phone, newest last:",
        '  T wrote text "Hi"',
        '  T got template "Your order is in." [Keep] [Cancel], read',
        '  T wrote button "Keep"',
        f'  T got text "{("A very long text " * 20)[:95]}…", delivered',
    ]


def test_missed_message_shows_the_status_of_the_sent_message(partner: Partner) -> None:
    ann = partner.phone("Ann")
    partner.send_text("Too early", ann)
    partner.wait_for_callback("failed")

    with pytest.raises(NotSeen) as missed:
        ann.wait_for_message(where=lambda _: True, within_s=0.05)

    assert failure_lines(missed.value, partner) == [
        "no message that matches `where` came to Ann (<Ann>) within 0.05 s",
        "on Ann's phone: nothing",
        "sent to this phone, and not on it, newest last:",
        "  ID to <Ann>: failed 131047 Message failed to send because more than 24 hours have passed since "
        "the customer last replied to this number. (accepted T → enqueued T → failed T)",
    ]


def test_missed_message_shows_faults_clock_and_pending_work(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")
    partner.create_template("news", "There is news.", approved=False)
    partner.clock.freeze()

    with partner.fault("messages.send", next=9, error=131016) as fault:
        partner.send_text("Are you there?", ann)
        partner.wait_until(lambda: fault.hits == 1, "the operator was called")
        with pytest.raises(NotSeen) as missed:
            ann.wait_for_message("there", within_s=0.5)

    lines = failure_lines(missed.value, partner)
    assert lines[:4] == [
        'no message with "there" came to Ann (<Ann>) within 0.5 s',
        "on Ann's phone, newest last:",
        '  T wrote text "Hi"',
        "sent to this phone, and not on it, newest last:",
    ]
    assert lines[4].startswith("  ID to <Ann>: accepted (accepted T → attempted T); tried once, next attempt at T: ")
    assert lines[5:9] == [
        "templates that are not approved, newest last:",
        "  news (en_US) is PENDING",
        "armed faults, newest last:",
        "  call messages.send: error 131016; next 9; applied once",
    ]
    assert lines[9].startswith("the clock is frozen: nothing becomes due by itself")


def test_missed_message_shows_that_another_phone_was_sent_to(partner: Partner) -> None:
    ann, ben = partner.phone("Ann"), partner.phone("Ben")
    ben.write("Hi")
    partner.send_text("For Ben", ben)

    with pytest.raises(NotSeen) as missed:
        ann.wait_for_message("For", within_s=0.05)

    assert failure_lines(missed.value, partner)[1:] == ["on Ann's phone: nothing", "sent to other phones: <Ben>"]


def test_missed_callback_shows_the_received_callbacks_and_the_messages_trace(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")
    partner.wait_for_callback("text")
    message_id = partner.send_text("Hello", ann)
    partner.wait_for_callback("delivered")

    with pytest.raises(NotSeen) as missed:
        partner.wait_for_callback("read", message_id=message_id, within_s=0.05)

    assert failure_lines(missed.value, partner) == [
        "no callback `read` about ID came within 0.05 s",
        "callbacks, newest last:",
        '  text, phone <Ann>, "Hi"; response 200',
        "  enqueued, of message ID, phone <Ann>; response 200",
        "  sent, of message ID, phone <Ann>; response 200",
        "  delivered, of message ID, phone <Ann>; response 200",
        "the message it is about, newest last:",
        "  ID to <Ann>: delivered (accepted T → enqueued T → sent T → delivered T)",
    ]


def test_missed_callback_shows_that_the_application_did_not_respond(partner: Partner) -> None:
    ann = partner.phone("Ann")
    partner.callbacks_to("http://127.0.0.1:9/nobody")
    ann.write("Hi")
    partner.wait_until(lambda: partner.attempts, "a callback was tried")

    with pytest.raises(NotSeen) as missed:
        partner.wait_for_callback("text", within_s=0.05)

    assert failure_lines(missed.value, partner)[2].startswith(
        '  text, phone <Ann>, "Hi"; no response: your application at http://127.0.0.1:9/nobody did not respond'
    )


def test_condition_that_stays_false_shows_everything_that_happened(partner: Partner) -> None:
    partner.phone("Ann").write("Hi")
    partner.wait_for_callback("text")

    with pytest.raises(NotSeen) as missed:
        partner.wait_until(lambda: False, "the order is paid", within_s=0.05)

    assert failure_lines(missed.value, partner) == [
        "the order is paid: not true within 0.05 s",
        "on Ann's phone, newest last:",
        '  T wrote text "Hi"',
        "callbacks, newest last:",
        '  text, phone <Ann>, "Hi"; response 200',
    ]


def test_only_the_newest_messages_are_shown(partner: Partner) -> None:
    ann = partner.phone("Ann")
    for at in range(15):
        ann.write(f"Message {at}")

    with pytest.raises(NotSeen) as missed:
        ann.wait_for_message("never", within_s=0.05)

    lines = failure_lines(missed.value, partner)
    assert lines[2] == "  … and 3 older"
    assert lines[3] == '  T wrote text "Message 3"'
    assert len(lines) == 15


class _Broken(BaseHTTPRequestHandler):
    """An application with a defect."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b"Traceback: KeyError 'order'"
        self.send_response(500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def broken_application() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Broken)
    server_thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    server_thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    server.shutdown()
    server_thread.join()
    server.server_close()


def test_missed_message_shows_the_applications_responses_to_callbacks(
    partner: Partner, broken_application: str
) -> None:
    ann = partner.phone("Ann")
    partner.callbacks_to(broken_application)
    ann.write("Where is my order?")

    with pytest.raises(NotSeen) as missed:
        ann.wait_for_message("on its way", within_s=2)

    lines = failure_lines(missed.value, partner)
    at = lines.index(f"callbacks to {broken_application} without a 2xx response, newest last:")
    assert lines[at + 1].startswith('  text, phone <Ann>, "Where is my order?"; response 500')
    assert "Traceback: KeyError 'order'" in lines[at + 1]
