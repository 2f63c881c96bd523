"""Template calls: submit, edit and delete, each safe to repeat.

Unlike with messages, a lost response is not uncertain here: the call is repeated. If the operator
then rejects it because it was done already, its template is compared with the request.
"""

from collections.abc import Mapping
from typing import Any, Final

from waypost.base.json_values import list_of, object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import OperatorAccepted, OperatorRejected, OperatorUnavailable, Outcome, OutcomeUncertain
from waypost.domain.templates.template import Template
from waypost.operators.cloud.error_codes import name_conflict
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.operators.cloud.paging import list_pages
from waypost.operators.cloud.templates.bodies import template_body
from waypost.operators.cloud.tolerant_json import parse_name, parse_text

DELETION_STATUSES: Final = {"DELETED", "PENDING_DELETION"}
"""Statuses of a template that is deleted, or about to be."""
_COMPARED_MEMBERS: Final = ("type", "format", "text", "url", "phone_number", "flow_id")


async def submit(
    call: CloudHttpClient, account: OperatorAccount, template: Template, copies: Mapping[str, str]
) -> Outcome:
    """Submit a template for review.

    A name is unique at the operator, so an existing template with our name is the one submitted
    before.
    """
    body, owner = template_body(template, copies), template.business_account_id
    response = _resolve_uncertain(await call(account, "POST", _templates_path(template), body=body, business=owner))
    match response:
        case {"id": str(operator_id)}:
            category = parse_text(object_of(response).get("category")).upper() or None
            return OperatorAccepted(parse_name(operator_id), status=_status(response), category=category)
        case {"error": error}:  # the name already exists: every other error is an outcome already
            return await find(call, account, template) or name_conflict(object_of(error))
        case dict():
            return OperatorUnavailable("the operator's response has no template id")
        case _:
            return response


async def edit(
    call: CloudHttpClient, account: OperatorAccount, template: Template, copies: Mapping[str, str]
) -> Outcome:
    """Submit a template in place of the operator's version; if the operator has none, as a new one.

    Source: operator's facts 2.1, 2.6.
    """
    operator_id, owner = template.operator_template_id, template.business_account_id
    if not operator_id:
        existing = await find(call, account, template)
        if existing is None:
            return await submit(call, account, template, copies)
        if not isinstance(existing, OperatorAccepted):
            return existing
        operator_id = existing.operator_id
    body = template_body(template, copies)
    changes = {name: value for name, value in body.items() if name not in ("name", "language")}
    response = _resolve_uncertain(await call(account, "POST", operator_id, body=changes, business=owner))
    match response:
        case {"success": True}:
            return OperatorAccepted(operator_id, status=_status(response))
        case OperatorRejected():
            # Perhaps it was done already and the response was lost: then it must not be done twice.
            query = {"fields": "components,status"}
            current = _resolve_uncertain(await call(account, "GET", operator_id, query=query, business=owner))
            if isinstance(current, OperatorUnavailable):
                return current
            theirs = list_of(object_of(current).get("components"))
            is_done = _components_match(body["components"], theirs)
            return OperatorAccepted(operator_id, status=_status(current)) if is_done else response
        case dict():
            return OperatorUnavailable("the operator does not say that it has changed the template")
        case _:
            return response


async def delete(call: CloudHttpClient, account: OperatorAccount, template: Template) -> Outcome:
    """Delete one template; return `OperatorAccepted` also where the operator has none.

    Source: operator's facts 2.1: by id and name, so that other languages of the name stay.
    """
    operator_id, owner = template.operator_template_id, template.business_account_id
    if not operator_id:
        existing = await find(call, account, template)
        if not isinstance(existing, OperatorAccepted):
            return OperatorAccepted("") if existing is None else existing
        operator_id = existing.operator_id
    query = {"hsm_id": operator_id, "name": str(template.draft.element_name)}
    response = _resolve_uncertain(await call(account, "DELETE", _templates_path(template), query=query, business=owner))
    match response:
        case {"success": True}:
            return OperatorAccepted(operator_id)
        case OperatorRejected():
            existing = await find(call, account, template)
            if isinstance(existing, OperatorUnavailable):
                return existing
            is_deleted = existing is None or (
                isinstance(existing, OperatorAccepted) and existing.operator_id != operator_id
            )
            return OperatorAccepted(operator_id) if is_deleted else response
        case dict():
            return OperatorUnavailable("the operator does not say that it has deleted the template")
        case _:
            return response


async def find(call: CloudHttpClient, account: OperatorAccount, template: Template) -> Outcome | None:
    """Return the operator's template of this name and language; None if the complete list has none.

    A list that is cut short or cannot be read proves nothing about missing templates: `OperatorUnavailable`.
    """
    draft, owner = template.draft, template.business_account_id
    query = {"name": str(draft.element_name)}
    async for page in list_pages(call, account, _templates_path(template), query, name="templates", business=owner):
        if not isinstance(page, list):
            return OperatorUnavailable(page.text) if isinstance(page, OutcomeUncertain) else page
        for item in page:
            match item:
                case {"id": str(operator_id), "name": name, "language": language} if (
                    name == draft.element_name
                    and language == draft.language_code
                    and _status(item) not in DELETION_STATUSES
                ):
                    return OperatorAccepted(parse_name(operator_id), status=_status(item))
                case {"id": str()}:
                    continue
                case _:
                    return OperatorUnavailable("the operator's list has what is no template")
    return None


def _templates_path(template: Template) -> str:
    return f"{template.business_account_id}/message_templates"


def _resolve_uncertain(response: dict[str, Any] | Outcome) -> dict[str, Any] | Outcome:
    """Return `OperatorUnavailable` for a lost response, so that it is retried: nothing here is done twice."""
    return OperatorUnavailable(response.text) if isinstance(response, OutcomeUncertain) else response


def _status(response: Any) -> str | None:
    return parse_text(object_of(response).get("status")).upper() or None


def _components_match(ours: list[Any], theirs: list[Any]) -> bool:
    """True if the operator's components equal ours, apart from what only the operator adds."""
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(_component_matches(object_of(a), object_of(b)) for a, b in pairs)


def _component_matches(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    # A button for a code is read back as a URL. Source: operator's facts 2.1
    compared = ("text",) if parse_text(ours.get("type")).upper() == "OTP" else _COMPARED_MEMBERS
    is_same = all(parse_text(ours[name]) == parse_text(theirs.get(name)) for name in compared if ours.get(name))
    inner = (name for name in ("buttons", "cards", "components") if name in ours)
    return is_same and all(_components_match(list_of(ours.get(name)), list_of(theirs.get(name))) for name in inner)
