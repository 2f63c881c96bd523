"""A template flattened into the one text of its record."""

from tests.support.builders import draft
from waypost.domain.buttons import Button, ButtonKind, button_supported
from waypost.domain.rendering import flattened

REPLY = Button(ButtonKind.QUICK_REPLY, "Yes")
URL = Button(ButtonKind.URL, "Look", url="https://acme.test/{{1}}", example=("7",))
CALL = Button(ButtonKind.PHONE_NUMBER, "Call", phone_number="+1555")


def test_parts_stand_on_lines_of_their_own() -> None:
    text = flattened(draft(header="Head", content="Body\nof two lines", footer="Foot"))

    assert text == "Head\nBody\nof two lines\nFoot"


def test_absent_parts_leave_no_lines() -> None:
    assert flattened(draft(content="Body")) == "Body"
    assert flattened(draft(content="Body", footer="Foot")) == "Body\nFoot"


def test_buttons_stand_behind_bars_with_what_they_open() -> None:
    text = flattened(draft(content="Body", footer="Foot", buttons=(CALL, URL, REPLY)))

    assert text == "Body\nFoot | [Call,+1555] | [Look,https://acme.test/{{1}}] | [Yes]"


def test_codes_of_the_buttons_are_alphabetical_and_single() -> None:
    assert button_supported((URL, REPLY, REPLY, CALL)) == "PN,QR,URL"
    assert button_supported((REPLY,)) == "QR"
    assert button_supported(()) is None
