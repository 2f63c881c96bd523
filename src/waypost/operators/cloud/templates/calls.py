"""Template calls: submit, edit and delete, each safe to repeat.

Unlike with messages, a lost response is not uncertain here: the call is repeated. If the operator
then rejects it because it was done already, its template is compared with the request.
"""

from collections.abc import Mapping
from typing import Any, Final

from waypost.base.json_values import object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls.templates import OperatorTemplate
from waypost.domain.outcome import OperatorAccepted, OperatorRejected, OperatorUnavailable, Outcome, OutcomeUncertain
from waypost.domain.templates.template import Template, have_same_contents
from waypost.operators.cloud.error_codes import INVALID_PARAMETER, name_conflict
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.operators.cloud.paging import list_pages
from waypost.operators.cloud.templates.bodies import template_body
from waypost.operators.cloud.templates.contents import parse_template, read_draft
from waypost.operators.cloud.tolerant_json import parse_name, parse_text

NAME_TAKEN: Final = (
    "The operator already has another template of this name and language, with other contents. "
    "Synchronise the templates to have it here, or take another name."
)


async def submit(
    call: CloudHttpClient, account: OperatorAccount, template: Template, copies: Mapping[str, str]
) -> Outcome:
    """Submit a template for review.

    A name is unique at the operator. An existing template with our name and our contents is the one submitted
    before, whose response was lost; one with other contents was made elsewhere, and is not ours (decision 0021).
    """
    body, owner = template_body(template, copies), template.business_account_id
    response = _resolve_uncertain(await call(account, "POST", _templates_path(template), body=body, business=owner))
    match response:
        case {"id": str(operator_id)}:
            category = parse_text(object_of(response).get("category")).upper() or None
            return OperatorAccepted(parse_name(operator_id), status=_status(response), category=category)
        case {"error": error}:  # the name already exists: every other error is an outcome already
            existing = await find(call, account, template)
            return name_conflict(object_of(error)) if existing is None else _adopt(template, existing)
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
        outcome = _adopt(template, existing)
        if not isinstance(existing, OperatorTemplate) or existing.draft is not None:
            return outcome
        operator_id = existing.id
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
            theirs = read_draft({"category": template.category.value, **object_of(current)})
            is_done = have_same_contents(template.draft, theirs)
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
        if not isinstance(existing, OperatorTemplate):
            return OperatorAccepted("") if existing is None else existing
        if not _is_same(template, existing):  # made elsewhere under its name
            return OperatorAccepted("")
        operator_id = existing.id
    query = {"hsm_id": operator_id, "name": str(template.draft.element_name)}
    response = _resolve_uncertain(await call(account, "DELETE", _templates_path(template), query=query, business=owner))
    match response:
        case {"success": True}:
            return OperatorAccepted(operator_id)
        case OperatorRejected():
            existing = await find(call, account, template)
            if existing is not None and not isinstance(existing, OperatorTemplate):
                return existing
            is_deleted = existing is None or existing.id != operator_id
            return OperatorAccepted(operator_id) if is_deleted else response
        case dict():
            return OperatorUnavailable("the operator does not say that it has deleted the template")
        case _:
            return response


async def find(
    call: CloudHttpClient, account: OperatorAccount, template: Template
) -> OperatorTemplate | Outcome | None:
    """Return the operator's template of this name and language; None if the complete list has none.

    A list that is cut short or cannot be read proves nothing about missing templates: `OperatorUnavailable`.
    """
    draft, owner = template.draft, template.business_account_id
    query = {"name": str(draft.element_name)}
    async for page in list_pages(call, account, _templates_path(template), query, name="templates", business=owner):
        if not isinstance(page, list):
            return OperatorUnavailable(page.text) if isinstance(page, OutcomeUncertain) else page
        for member in page:
            item = parse_template({**object_of(member), "id": parse_name(object_of(member).get("id"))})
            if item is None:
                return OperatorUnavailable("the operator's list has what is no template")
            names = (item.name, item.language.replace("-", "_"))
            if names == (draft.element_name, draft.language_code) and not item.is_being_deleted:
                return item
    return None


def _adopt(template: Template, existing: OperatorTemplate | Outcome) -> Outcome:
    """Return the outcome of a template whose name the operator has: accepted only if it has the same contents."""
    if not isinstance(existing, OperatorTemplate):
        return existing
    if not _is_same(template, existing):
        return OperatorRejected(INVALID_PARAMETER, NAME_TAKEN, existing_id=existing.id)
    return OperatorAccepted(existing.id, status=existing.status, category=existing.category or None)


def _is_same(template: Template, existing: OperatorTemplate) -> bool:
    """True if the operator's template has our contents. A list without contents proves nothing: it is taken for ours."""
    return existing.draft is None or have_same_contents(template.draft, existing.draft)


def _templates_path(template: Template) -> str:
    return f"{template.business_account_id}/message_templates"


def _resolve_uncertain(response: dict[str, Any] | Outcome) -> dict[str, Any] | Outcome:
    """Return `OperatorUnavailable` for a lost response, so that it is retried: nothing here is done twice."""
    return OperatorUnavailable(response.text) if isinstance(response, OutcomeUncertain) else response


def _status(response: Any) -> str | None:
    return parse_text(object_of(response).get("status")).upper() or None
