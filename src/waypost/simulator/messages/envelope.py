"""The members of a request around its message: the product, the recipient type, the callback data.

Also Direct Send: messages that name their category instead of a template.
"""

from dataclasses import dataclass
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


DIRECT_SEND_TYPES: Final = ("text", "interactive")  # Source: the operator's pages "Direct Send"
MIN_TTL_S: Final = 30
MAX_TTL_S: Final = {  # Source: the operator's page "Configure message time-to-live"
    "utility":        43_200,
    "authentication": 900,
}  # fmt: skip


@dataclass(frozen=True)
class DirectSend:
    """The category and lifetime that a message gives itself instead of a template's.

    Args:
        category: `utility` or `authentication`; empty for an ordinary message.
        lifetime_ms: how long it may wait for its phone; None: the default of its kind.
    """

    category: str = ""
    lifetime_ms: int | None = None


def read_direct_send(request: dict[str, Any], kind: object) -> DirectSend:
    """Return the `category` and `ttl_seconds` of a request.

    Raises:
        GraphApiError: 100 for an unknown category, a lifetime without a category or out of its range, or a
            type that Direct Send does not support.

    Source: the operator's pages "Direct Send API reference" and "Configure message time-to-live".
    """
    category, ttl_s = request.get("category"), request.get("ttl_seconds")
    if category is None:
        if ttl_s is not None:
            raise bad_parameter("Param ttl_seconds is supported with a category only.")
        return DirectSend()
    name = category.lower() if isinstance(category, str) else ""
    if name not in MAX_TTL_S:
        raise bad_parameter(f"Param category must be one of {{{', '.join(MAX_TTL_S)}}}.")
    if kind not in DIRECT_SEND_TYPES:
        raise bad_parameter(f"Param category goes with the types {{{', '.join(DIRECT_SEND_TYPES)}}} only.")
    if ttl_s is None:
        return DirectSend(name)
    at_most_s = MAX_TTL_S[name]
    if type(ttl_s) is not int or not MIN_TTL_S <= ttl_s <= at_most_s:
        raise bad_parameter(f"Param ttl_seconds must be a number from {MIN_TTL_S} to {at_most_s}.")
    return DirectSend(name, ttl_s * 1000)
