"""From whom to whom a send form goes."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.phone_number import read_phone_number
from waypost.domain.refusals import Reason, Refused
from waypost.wire.forms import Form

CHANNEL: Final = "whatsapp"


@dataclass(frozen=True, slots=True)
class Addresses:
    """From whom to whom, as digits, and the app's name; empty where it was not sent."""

    source: str
    destination: str
    app_name: str


def read_addresses(form: Form) -> Addresses:
    """Source, destination and app name, refused in this order: destination, then app details.

    Whether the app's name may be missing is for the endpoint to say.

    Source: spec, "Send session text message" and "Errors"; facts 9.2, "Errors"; `src` for `source`
        from the spec's location table.

    Raises:
        Refused: the documented text for each.
    """
    channel = form.text("channel")
    if channel and channel.strip().lower() != CHANNEL:
        raise Refused(Reason.FIELD_BROKEN, "channel must be whatsapp.")
    destination = read_phone_number(form.text("destination") or "")
    if destination is None:
        raise Refused(
            Reason.INVALID_DESTINATION,
            "destination must be a phone number of 8 to 15 digits with its country code.",
        )
    source = read_phone_number(form.text("source") or form.text("src") or "")
    if source is None:
        raise Refused(
            Reason.INVALID_APP_DETAILS,
            "source must be the phone number of one of your apps: 8 to 15 digits.",
        )
    return Addresses(source, destination, form.text("src.name") or "")
