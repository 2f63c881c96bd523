"""What stands around a message in a request: the product, the kind of recipient, the callback data."""

from typing import Any, Final

from waypost.simulator.errors import bad_parameter

_CALLBACK_DATA_AT_MOST: Final = 512  # Source: facts 4.1


def check_envelope(request: dict[str, Any]) -> None:
    """Refuse another product or another kind of recipient. Source: facts 4.1; groups: ledger C31."""
    if request.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    if request.get("recipient_type", "individual") not in ("individual", "group"):
        raise bad_parameter("Param recipient_type must be one of {individual, group}.")


def callback_data_of(request: dict[str, Any]) -> str | None:
    """The sender's own text, which every status gives back.

    Raises:
        GraphRefused: 100, it is no text, or too long.
    """
    given = request.get("biz_opaque_callback_data")
    if given is None:
        return None
    if not isinstance(given, str) or len(given) > _CALLBACK_DATA_AT_MOST:
        raise bad_parameter(
            f"Param biz_opaque_callback_data must be a string of at most {_CALLBACK_DATA_AT_MOST} characters."
        )
    return given
