"""A partner's templates: made, reviewed and paused at a word of the test."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from waypost.client.responses import is_told
from waypost.testing.failures import not_so
from waypost.testing.partner_setup import Tenancy
from waypost.testing.waiting import looked_up

__tracebackhide__ = is_told

_REFUSED: Final = ("REJECTED", "FAILED")


@dataclass(frozen=True, slots=True)
class Template:
    """A template as the service has it.

    Attributes:
        id: ours; what a send names.
        name: its element name.
        language: such as `en_US`.
        status: `PENDING`, `APPROVED`, `REJECTED`, `PAUSED`, `DISABLED` and so on.
        reason: why it was rejected; empty for all else.
        operator_id: the operator's id of it; empty until it is there.
    """

    id: str
    name: str
    language: str
    status: str
    reason: str = ""
    operator_id: str = ""


def create(tenancy: Tenancy, fields: Mapping[str, str]) -> Template:
    """Submit a template through the partner API."""
    answer = tenancy.app_door.form("POST", "/templates", fields)
    return _template_of(answer["template"])


def fields_of(
    name: str,
    content: str,
    *,
    example: str,
    category: str,
    buttons: Sequence[str | Mapping[str, Any]],
    language: str,
    more: Mapping[str, str],
) -> dict[str, str]:
    """The form of a TEXT template, unless `more` says otherwise."""
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
            [{"type": "QUICK_REPLY", "text": one} if isinstance(one, str) else dict(one) for one in buttons]
        )
    return form | dict(more)


def known(tenancy: Tenancy, template: str | Template) -> Template | None:
    """A template by its id or its name; None when the partner has none such.

    Asked at the administration door, so that it spends nothing of the application's rates.
    """
    wanted = template.id if isinstance(template, Template) else template
    path = f"/apps/{tenancy.app_id}/templates"
    for one in tenancy.service.admin.json("GET", path)["templates"]:
        if wanted in (one["id"], one["element_name"]):
            return Template(
                id=one["id"],
                name=one["element_name"],
                language=one["language_code"],
                status=one["status"],
                reason=one["reason"] or "",
                operator_id=one["operator_template_id"] or "",
            )
    return None


def decide(
    tenancy: Tenancy, template: str | Template, act: str, becomes: str, wish: Mapping[str, str] | None = None
) -> Template:
    """Let the operator decide on a template, and return once the partner's own record says so.

    Args:
        tenancy: whose it is.
        template: itself, its id or its name; the application may just be submitting it.
        act: as the control door calls it.
        becomes: the status that the record gets.
        wish: what goes along with the act.

    Raises:
        NotSeen: the template did not reach the operator, or the decision not the record.
    """
    __tracebackhide__ = True
    within_s = tenancy.service.within_s
    name = template.name if isinstance(template, Template) else template
    reached = looked_up(lambda: _reviewed(tenancy, template), within_s)
    if reached is None:
        raise not_so(f"no template {name} reached the operator within {within_s:g} s", tenancy, {})
    if not reached.operator_id:
        raise not_so(f"template {name} never came to its review: the operator refused it at once", tenancy, {})
    tenancy.service.control.json("POST", f"/templates/{reached.operator_id}/{act}", dict(wish or {}))

    def has_become() -> Template | None:
        record = known(tenancy, template)
        return record if record is not None and record.status == becomes else None

    record = looked_up(has_become, within_s)
    if record is None:
        raise not_so(f"template {name} did not become {becomes} within {within_s:g} s", tenancy, {})
    return record


def _reviewed(tenancy: Tenancy, template: str | Template) -> Template | None:
    """The template once the operator has it, or has refused it; None while it may still come."""
    record = known(tenancy, template)
    if record is None:
        return None
    return record if record.operator_id or record.status in _REFUSED else None


def _template_of(record: Mapping[str, Any]) -> Template:
    return Template(
        id=str(record["id"]),
        name=str(record["elementName"]),
        language=str(record["languageCode"]),
        status=str(record["status"]),
        reason=str(record.get("reason") or ""),
    )
