"""Source and destination of a send form."""

from typing import Final, NamedTuple

from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.phone_number import describe_recipient, read_phone_number, read_recipient_number
from waypost.wire.forms import Form

CHANNEL: Final = "whatsapp"


class SendAddresses(NamedTuple):
    """Source and destination as digits, and the app's name.

    Attributes:
        source: may be the id of the app, if the path has it.
        app_name: empty: not sent.
    """

    source: str
    destination: str
    app_name: str


def read_addresses(form: Form, app_id: str = "") -> SendAddresses:
    """Read source, destination and app name; the destination is checked before the app details.

    The endpoint decides if the app's name may be missing.

    Args:
        form: as sent.
        app_id: of the app in the path, if there is one; some clients send it instead of the number.

    Source: spec, "Send session text message" and "Errors"; facts 9.2, "Errors"; `src` for `source`
        from the spec's location table.

    Raises:
        ApiError: with the documented text for each.
    """
    channel = form.text("channel")
    if channel and channel.strip().lower() != CHANNEL:
        raise invalid_field("channel", "whatsapp")
    number = form.text("destination") or ""
    destination = read_recipient_number(number)
    if destination is None:
        raise ApiError(ErrorCode.INVALID_DESTINATION, f"destination must be {describe_recipient(number)}.")
    text = form.text("source") or form.text("src") or ""
    source = app_id if app_id and text.strip() == app_id else read_phone_number(text)
    if source is None:
        raise ApiError(
            ErrorCode.INVALID_APP_DETAILS, "source must be the phone number of one of your apps: 8 to 15 digits."
        )
    return SendAddresses(source, destination, form.text("src.name") or "")
