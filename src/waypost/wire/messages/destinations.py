"""From whom to whom a send form goes."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.phone_number import read_phone_number
from waypost.wire.forms import Form

CHANNEL: Final = "whatsapp"


@dataclass(frozen=True, slots=True)
class Addresses:
    """From whom to whom, as digits, and the app's name; empty where it was not sent.

    Attributes:
        source: may be the id of the app, where the path names the app already.
        app_name: likewise.
    """

    source: str
    destination: str
    app_name: str


def read_addresses(form: Form, app_id: str = "") -> Addresses:
    """Source, destination and app name, refused in this order: destination, then app details.

    Whether the app's name may be missing is for the endpoint to say.

    Args:
        form: as sent.
        app_id: of the app in the path, if there is one; some clients write it for the number.

    Source: spec, "Send session text message" and "Errors"; facts 9.2, "Errors"; `src` for `source`
        from the spec's location table.

    Raises:
        Refused: the documented text for each.
    """
    channel = form.text("channel")
    if channel and channel.strip().lower() != CHANNEL:
        raise invalid_field("channel", "whatsapp")
    destination = read_phone_number(form.text("destination") or "")
    if destination is None:
        raise ApiError(
            ErrorCode.INVALID_DESTINATION, "destination must be a phone number of 8 to 15 digits with its country code."
        )
    written = form.text("source") or form.text("src") or ""
    source = app_id if app_id and written.strip() == app_id else read_phone_number(written)
    if source is None:
        raise ApiError(
            ErrorCode.INVALID_APP_DETAILS, "source must be the phone number of one of your apps: 8 to 15 digits."
        )
    return Addresses(source, destination, form.text("src.name") or "")
