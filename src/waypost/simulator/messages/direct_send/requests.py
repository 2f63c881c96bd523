"""The members of a Direct Send request, and whether its account may use Direct Send."""

import re
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.records import DIRECT_SEND, Records
from waypost.simulator.errors import GraphApiError, bad_parameter, message_error

DIRECT_SEND_TYPES: Final = ("text", "interactive")  # Source: the operator's pages "Direct Send"
MIN_TTL_S: Final = 30
MAX_TTL_S: Final = {  # Source: the operator's page "Configure message time-to-live"
    "utility":        43_200,
    "authentication": 900,
}  # fmt: skip
_SERVICE: Final = "service"
"""The category of an ordinary message. Source: the operator's page "Direct Send API reference"."""
_TEMPLATE_NAME: Final = re.compile(r"[a-z0-9_]{1,512}", re.ASCII)  # Source: the page "Business-named templates"
_NOT_ENABLED: Final = (
    "Parameter Invalid: The 'category' value requires Direct Send, which isn't enabled for this account. "
    "Use an approved message template instead."
)
_RESTRICTED: Final = (
    "Direct Send Access is restricted: Direct send messaging capability is not available for this WABA right now "
    "due to misclassification based enforcements."
)
_RATE_LIMITED: Final = "The account's utility messages are limited until the next window of 24 hours."

# fmt: off
DIRECT_SEND_ACCESS: Final = {  # Source: the operator's page "Direct Send API reference"; the names are ours
    #                code    details
    "ENABLED":      None,
    "NOT_ENABLED":  (100,    _NOT_ENABLED),
    "RATE_LIMITED": (131064, _RATE_LIMITED),
    "RESTRICTED":   (139200, _RESTRICTED),
}
# fmt: on


@dataclass(frozen=True)
class DirectSend:
    """The category and lifetime that a message gives itself instead of a template's.

    Args:
        category: `utility` or `authentication`; empty for an ordinary message.
        lifetime_ms: how long it may wait for its phone; None: the default of its kind.
        template_name: of the generated template, chosen by the business; empty: by its content.
    """

    category: str = ""
    lifetime_ms: int | None = None
    template_name: str = ""


class DirectSendRequests:
    """Reads the members of Direct Send, for accounts that may use it."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def find_access(self, waba_id: str) -> str:
        """Return a row of `DIRECT_SEND_ACCESS`; an account may use Direct Send until the control API denies it."""
        return str(self._records.get(waba_id, DIRECT_SEND).get("access", "ENABLED"))

    def read(self, waba_id: str, request: dict[str, Any], kind: object) -> DirectSend:
        """Return the category, lifetime and template name of a request.

        Args:
            waba_id: the sender's account.
            request: the body.
            kind: the type of the message.

        Raises:
            GraphApiError: 100 for an unknown category, an account without Direct Send, a lifetime without a
                category or out of its range, a type that Direct Send does not support, or an invalid template
                name; 131064 or 139200 for a restricted account; 131062 for a one-time code to a user id.

        Source: the operator's pages "Direct Send API reference", "Business-named templates" and "Configure message
            time-to-live".
        """
        category, ttl_s = request.get("category"), request.get("ttl_seconds")
        name = category.lower() if isinstance(category, str) else category
        if name in (None, _SERVICE):
            for member in ("ttl_seconds", "direct_send_config"):
                if request.get(member) is not None:
                    raise bad_parameter(f"Param {member} is supported with the category of Direct Send only.")
            return DirectSend()
        if not isinstance(name, str) or name not in MAX_TTL_S:
            raise bad_parameter(
                f'Param category must be one of {{AUTHENTICATION, SERVICE, UTILITY}} - got "{str(category)[:100]}".'
            )
        self._check_access(waba_id)
        if kind not in DIRECT_SEND_TYPES:
            raise bad_parameter(f"Param category goes with the types {{{', '.join(DIRECT_SEND_TYPES)}}} only.")
        if name == "authentication" and not request.get("to"):
            raise message_error(131062, "Business-scoped User ID (BSUID) recipients are not supported for this message")
        lifetime_ms = None if ttl_s is None else _read_ttl_s(ttl_s, MAX_TTL_S[name]) * 1000
        return DirectSend(name, lifetime_ms, _read_template_name(request.get("direct_send_config"), name))

    def _check_access(self, waba_id: str) -> None:
        denial = DIRECT_SEND_ACCESS.get(self.find_access(waba_id))
        if denial is not None:
            code, details = denial
            raise _denial_error(code, details)


def _denial_error(code: int, details: str) -> GraphApiError:
    error = message_error(code, details)
    if code == 139200:
        error.error["message"] = "(#139200) Direct Send Utility access is blocked"
    return error


def _read_ttl_s(ttl_s: object, max_ttl_s: int) -> int:
    if type(ttl_s) is not int:
        raise bad_parameter("Param ttl_seconds must be an integer.")
    if ttl_s > max_ttl_s:
        raise bad_parameter(
            f"Param ttl_seconds: The time to live value must be lower than or equal to {max_ttl_s}"
        )  # fmt: skip
    if ttl_s < MIN_TTL_S:
        raise bad_parameter(f"Param ttl_seconds: The time to live value must be higher than or equal to {MIN_TTL_S}")
    return ttl_s


def _read_template_name(config: object, category: str) -> str:
    """Return the name in `direct_send_config`; empty if there is none."""
    if config is None:
        return ""
    members = object_or_none(config)
    if members is None:
        raise bad_parameter("Param direct_send_config must be an object.")
    name = members.get("template_name")
    if name is None:
        return ""
    if category != "utility":
        raise bad_parameter("Param direct_send_config['template_name'] is supported with the category utility only.")
    text = text_or_none(name) or ""
    if not _TEMPLATE_NAME.fullmatch(text):
        raise bad_parameter(
            "Param direct_send_config['template_name'] must be 1 to 512 lower case letters, digits and underscores."
        )
    return text
