"""The members of a request to the API for marketing messages, and whether its account has accepted the terms."""

from typing import Any, Final

from waypost.simulator.accounts.records import MARKETING, Records
from waypost.simulator.errors import bad_parameter, message_error
from waypost.simulator.templates.template import SimulatedTemplate

MARKETING_STATUSES: Final = ("INELIGIBLE", "ELIGIBLE", "ONBOARDED")  # Source: facts 1, "WABA node"
MARKETING_CATEGORY: Final = "marketing_lite"
"""The category of the price of a message that was sent through this API. Source: facts 7.3."""
_POLICIES: Final = ("CLOUD_API_FALLBACK", "STRICT")  # Source: the operator's page "Send Marketing Messages"


class MarketingRequests:
    """Checks requests to the API for marketing messages."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def find_status(self, waba_id: str) -> str:
        """Return one of `MARKETING_STATUSES`; an account may accept the terms until the control API says otherwise."""
        return str(self._records.get(waba_id, MARKETING).get("status", "ELIGIBLE"))

    def is_onboarded(self, waba_id: str) -> bool:
        """True if the account's owner has accepted the terms."""
        return self.find_status(waba_id) == "ONBOARDED"

    def check(self, waba_id: str, request: dict[str, Any], template: SimulatedTemplate | None) -> bool:
        """Check a request, whose content has been checked.

        Returns:
            True if the message is sent through this API; false if it is sent as any other, because the account's owner
            has not accepted the terms.

        Raises:
            GraphApiError: 134100, no marketing template; 100, an unknown product policy or a sharing that is no boolean;
                131055, a strict policy without accepted terms.

        Source: the operator's page "Send Marketing Messages"; facts 5.2.
        """
        if template is None or template.category != "MARKETING":
            raise message_error(134100, "Only templates of the category MARKETING are sent through this API.")
        policy = request.get("product_policy", _POLICIES[0])
        if policy not in _POLICIES:
            raise bad_parameter(f"Param product_policy must be one of {{{', '.join(_POLICIES)}}}.")
        if type(request.get("message_activity_sharing", False)) is not bool:
            raise bad_parameter("Param message_activity_sharing must be a boolean.")
        if self.is_onboarded(waba_id):
            return True
        if policy == "STRICT":
            raise message_error(131055, "The terms of the Marketing Messages API have not been accepted.")
        return False
