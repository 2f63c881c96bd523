"""A partner's templates: created, reviewed and paused by a test."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_waypost.client import is_api_error
from pytest_waypost.failures import poll, unmet_condition
from pytest_waypost.partner_setup import Tenancy

__tracebackhide__ = is_api_error

_REJECTED_STATUSES: Final = ("REJECTED", "FAILED")


@dataclass(frozen=True, slots=True)
class Template:
    """A template as the service has it.

    Attributes:
        id: ours; used to send.
        name: its element name.
        language: such as `en_US`.
        status: `PENDING`, `APPROVED`, `REJECTED`, `PAUSED`, `DISABLED` and so on.
        reason: why it was rejected; otherwise empty.
        operator_id: the operator's id of it; empty until it has one.
    """

    id: str
    name: str
    language: str
    status: str
    reason: str = ""
    operator_id: str = ""


def create_template(tenancy: Tenancy, fields: Mapping[str, str]) -> Template:
    """Submit a template through the partner API."""
    response = tenancy.partner_api.form("POST", "/templates", fields)
    return _parse_template(response["template"])


def template_form(
    name: str,
    content: str,
    *,
    example: str,
    category: str,
    buttons: Sequence[str | Mapping[str, Any]],
    language: str,
    extra_fields: Mapping[str, str],
) -> dict[str, str]:
    """Return the form of a template, of type TEXT unless the further fields set another."""
    form = {
        "elementName": name,
        "content": content,
        "example": example or content.replace("{{", "[").replace("}}", "]"),
        "category": category,
        "languageCode": language,
        "templateType": "TEXT",
        "vertical": "Test",
    }
    if buttons:
        form["buttons"] = json.dumps(
            [{"type": "QUICK_REPLY", "text": each} if isinstance(each, str) else dict(each) for each in buttons]
        )
    return form | dict(extra_fields)


def find_template(tenancy: Tenancy, template: str | Template) -> Template | None:
    """Return a template by its id or its name; None if the partner has no such template.

    Uses the admin API, so that it does not count toward the application's rates.
    """
    key = template.id if isinstance(template, Template) else template
    path = f"/apps/{tenancy.app_id}/templates"
    for view in tenancy.service.admin.json("GET", path)["templates"]:
        if key in (view["id"], view["element_name"]):
            return Template(
                id=view["id"],
                name=view["element_name"],
                language=view["language_code"],
                status=view["status"],
                reason=view["reason"] or "",
                operator_id=view["operator_template_id"] or "",
            )
    return None


def decide_template(
    tenancy: Tenancy, template: str | Template, action: str, status: str, body: Mapping[str, str] | None = None
) -> Template:
    """Make the operator decide on a template, and return once the partner's record has the new status.

    Args:
        tenancy: the partner.
        template: the template, its id or its name; the application may still be submitting it.
        action: the action, as in the control API.
        status: the status that the record gets.
        body: the body of the action.

    Raises:
        NotSeen: the template did not reach the operator, or the decision did not reach the record.
    """
    __tracebackhide__ = True
    within_s = tenancy.service.within_s
    name = template.name if isinstance(template, Template) else template
    submitted = poll(lambda: _find_submitted(tenancy, template), within_s)
    if submitted is None:
        raise unmet_condition(f"no template {name} reached the operator within {within_s:g} s", tenancy, {})
    if not submitted.operator_id:
        raise unmet_condition(f"template {name} was not reviewed: the operator rejected it at once", tenancy, {})
    tenancy.service.control.json("POST", f"/templates/{submitted.operator_id}/{action}", dict(body or {}))

    def decided() -> Template | None:
        record = find_template(tenancy, template)
        return record if record is not None and record.status == status else None

    record = poll(decided, within_s)
    if record is None:
        raise unmet_condition(f"template {name} did not become {status} within {within_s:g} s", tenancy, {})
    return record


def _find_submitted(tenancy: Tenancy, template: str | Template) -> Template | None:
    """Return the template once the operator has accepted or rejected it; None before that."""
    record = find_template(tenancy, template)
    if record is None:
        return None
    return record if record.operator_id or record.status in _REJECTED_STATUSES else None


def _parse_template(record: Mapping[str, Any]) -> Template:
    return Template(
        id=str(record["id"]),
        name=str(record["elementName"]),
        language=str(record["languageCode"]),
        status=str(record["status"]),
        reason=str(record.get("reason") or ""),
    )
