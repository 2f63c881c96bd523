"""What stands around a message in a request: the product, the kind of recipient, the callback data.

Direct Send: messages that name their category instead of a template.
"""

from dataclasses import dataclass
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


KINDS: Final = ("text", "interactive")  # Source: the operator's pages "Direct Send"
TTL_AT_LEAST_S: Final = 30
TTL_AT_MOST_S: Final = {  # Source: the operator's page "Configure message time-to-live"
    "utility":        43_200,
    "authentication": 900,
}  # fmt: skip


@dataclass(frozen=True)
class DirectSend:
    """What a message says of itself beside its content.

    Args:
        category: `utility` or `authentication`; empty for a message of the ordinary kind.
        lives_ms: how long it may wait for its phone; None: as long as any of its kind.
    """

    category: str = ""
    lives_ms: int | None = None


def direct_send_of(request: dict[str, Any], kind: object) -> DirectSend:
    """Read `category` and `ttl_seconds`.

    Raises:
        GraphRefused: 100 for another category, a lifetime without one or out of its range, or a type
            that cannot be sent so.

    Source: the operator's pages "Direct Send API reference" and "Configure message time-to-live".
    """
    category, ttl_s = request.get("category"), request.get("ttl_seconds")
    if category is None:
        if ttl_s is not None:
            raise bad_parameter("Param ttl_seconds is supported with a category only.")
        return DirectSend()
    name = category.lower() if isinstance(category, str) else ""
    if name not in TTL_AT_MOST_S:
        raise bad_parameter(f"Param category must be one of {{{', '.join(TTL_AT_MOST_S)}}}.")
    if kind not in KINDS:
        raise bad_parameter(f"Param category goes with the types {{{', '.join(KINDS)}}} only.")
    if ttl_s is None:
        return DirectSend(name)
    at_most_s = TTL_AT_MOST_S[name]
    if type(ttl_s) is not int or not TTL_AT_LEAST_S <= ttl_s <= at_most_s:
        raise bad_parameter(f"Param ttl_seconds must be a number from {TTL_AT_LEAST_S} to {at_most_s}.")
    return DirectSend(name, ttl_s * 1000)
