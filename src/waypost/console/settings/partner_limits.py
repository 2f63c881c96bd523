"""Retention periods and quotas of the partner on the profile page, which an administrator can change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.settings.field_errors import is_number_up_to
from waypost.console.settings.profile import QUOTAS, profile_page
from waypost.console.web.page_request import PageRequest
from waypost.domain.quotas import MAX_QUOTA


@dataclass(frozen=True, slots=True)
class _NumberField:
    """A field for a number, or for nothing: the setting of the service then applies."""

    unit: str
    minimum: int
    maximum: int

    def problem(self, text: str) -> str:
        """Return the error of what was typed; empty without one."""
        if not text or is_number_up_to(self.maximum, text, minimum=self.minimum):
            return ""
        return f"Enter a number{self.unit} from {self.minimum} to {self.maximum}, or nothing."


_QUOTA_FIELDS: Final = {field: _NumberField("", 0, MAX_QUOTA) for _, field, _, _ in QUOTAS}


async def change_retention(tools: PageTools, page_request: PageRequest) -> Response:
    """Set the partner's own periods; an empty field is the service's setting."""
    path = f"/admin/partners/{page_request.partner.id}/retention"
    periods = await tools.services.apis.admin.json("GET", path)
    fields = {name: _NumberField(" of days", 1, period["service_days"]) for name, period in periods.items()}
    rejected = await _put_numbers(tools, page_request, path, fields)
    return rejected or tools.redirect(
        "/settings", "Retention periods changed.", hint="The next hourly run applies them."
    )


async def change_quotas(tools: PageTools, page_request: PageRequest) -> Response:
    """Set the partner's own quotas; an empty field is the service's setting."""
    path = f"/admin/partners/{page_request.partner.id}/quotas"
    rejected = await _put_numbers(tools, page_request, path, _QUOTA_FIELDS)
    return rejected or tools.redirect("/settings", "Quotas changed.", hint="They apply at once.")


async def _put_numbers(
    tools: PageTools, page_request: PageRequest, path: str, fields: Mapping[str, _NumberField]
) -> Response | None:
    """Send the numbers of a form to the admin API; return the page with the errors if one is invalid."""
    typed = {name: (await page_request.field(name)).strip() for name in fields}
    problems = {name: field.problem(typed[name]) for name, field in fields.items()}
    wrong = {name: problem for name, problem in problems.items() if problem}
    if wrong:
        return await profile_page(tools, page_request, typed=typed, wrong=wrong)
    body: dict[str, Any] = {name: int(text) if text else None for name, text in typed.items()}
    await tools.services.apis.admin.json("PUT", path, body)
    return None
