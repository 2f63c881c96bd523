"""The members of a request around its message: the product, the recipient type, the callback data."""

from typing import Any, Final

from waypost.simulator.errors import bad_parameter

_MAX_CALLBACK_DATA_CHARS: Final = 512  # Source: facts 4.1


def check_envelope(request: dict[str, Any]) -> None:
    """Check the product and the recipient type. Source: facts 4.1; groups: ledger C31."""
    if request.get("messaging_product") != "whatsapp":
        raise bad_parameter("The parameter messaging_product is required.")
    if request.get("recipient_type", "individual") not in ("individual", "group"):
        raise bad_parameter("Param recipient_type must be one of {individual, group}.")


def read_callback_data(request: dict[str, Any]) -> str | None:
    """Return the sender's own text, which every status echoes.

    Raises:
        GraphApiError: 100, it is not a string, or too long.
    """
    callback_data = request.get("biz_opaque_callback_data")
    if callback_data is None:
        return None
    if not isinstance(callback_data, str) or len(callback_data) > _MAX_CALLBACK_DATA_CHARS:
        raise bad_parameter(
            f"Param biz_opaque_callback_data must be a string of at most {_MAX_CALLBACK_DATA_CHARS} characters."
        )
    return callback_data
