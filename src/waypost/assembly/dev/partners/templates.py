"""Decisions about the templates of a partner for a test: submitted by its application, decided by the test."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from waypost.assembly.dev.partners.explanations import explain_unmet_condition
from waypost.assembly.dev.partners.partner import PartnerForTest
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.dev_interfaces import NotReceived

# fmt: off
TEMPLATE_STATUSES: Final = {
    # action   status of the record after it
    "approve": "APPROVED",
    "reject":  "REJECTED",
    "pause":   "PAUSED",
    "disable": "DISABLED",
}
# fmt: on
_REJECTED_STATUSES: Final = ("REJECTED", "FAILED")
_TEMPLATE_POLL_INTERVAL_S: Final = 0.01


async def decide_on_template(
    partner: PartnerForTest, template: str, action: str, details: Mapping[str, str], timeout_ms: int
) -> dict[str, Any]:
    """Make the operator decide on a template, and return its record once that has the new status.

    Args:
        partner: the partner.
        template: its name or the service's id; the application may still be submitting it.
        action: a key of `TEMPLATE_STATUSES`.
        details: body of the action in the control API.
        timeout_ms: real time until it reaches the operator, and until its record has the status.

    Raises:
        NotReceived: one of both did not happen.
        ControlApiError: there is no such action.
        ApiResponseError: the simulator rejected the action.
    """
    if action not in TEMPLATE_STATUSES:
        raise ControlApiError("action", "is not a decision", ", ".join(TEMPLATE_STATUSES), status=404)
    timeout = f"within {timeout_ms / 1000:g} s"

    async def find_submitted() -> dict[str, Any] | None:
        record = await _find_template(partner, template)
        is_submitted = record and (record["operator_template_id"] or record["status"] in _REJECTED_STATUSES)
        return record if is_submitted else None

    submitted = await _poll(partner, find_submitted, timeout_ms)
    if submitted is None:
        raise await _not_met(partner, f"no template {template} reached the operator {timeout}")
    if not submitted["operator_template_id"]:
        raise await _not_met(partner, f"template {template} was not reviewed: the operator rejected it at once")
    path = f"/control/templates/{submitted['operator_template_id']}/{action}"
    await partner.clients.control.json("POST", path, dict(details))
    status = TEMPLATE_STATUSES[action]

    async def find_decided() -> dict[str, Any] | None:
        record = await _find_template(partner, template)
        return record if record and record["status"] == status else None

    decided = await _poll(partner, find_decided, timeout_ms)
    if decided is None:
        raise await _not_met(partner, f"template {template} did not become {status} {timeout}")
    return decided


async def _not_met(partner: PartnerForTest, text: str) -> NotReceived:
    return NotReceived(await explain_unmet_condition(text, partner, {}))


async def _find_template(partner: PartnerForTest, template: str) -> dict[str, Any] | None:
    views = (await partner.clients.admin.json("GET", f"/admin/apps/{partner.app_id}/templates"))["templates"]
    return next((view for view in views if template in (view["id"], view["element_name"])), None)


async def _poll(
    partner: PartnerForTest, lookup: Callable[[], Awaitable[dict[str, Any] | None]], timeout_ms: int
) -> dict[str, Any] | None:
    """Return the first result that is not None, or None after the timeout; looks at least once."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + timeout_ms / 1000
    while (found := await lookup()) is None and loop.time() < ends_s:
        partner.check_exists()
        await asyncio.sleep(_TEMPLATE_POLL_INTERVAL_S)
    return found
