"""Template calls: submit, edit and delete, each safe to repeat.

Unlike with messages, a lost response is not uncertain here: the call is repeated. If the operator
then rejects it because it was done already, its template is compared with the request.
"""

from collections.abc import Mapping
from typing import Any, Final

from waypost.base.json_values import list_of, object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import Outcome, Rejected, Sent, Unavailable, Uncertain
from waypost.domain.templates.template import Template
from waypost.operators.cloud.error_codes import name_is_taken
from waypost.operators.cloud.http_calls import Calls
from waypost.operators.cloud.paging import pages
from waypost.operators.cloud.templates.bodies import template_body
from waypost.operators.cloud.tolerant_json import as_name, as_text

GOING: Final = {"DELETED", "PENDING_DELETION"}
"""Statuses of a template that is deleted, or about to be."""
_COMPARED: Final = ("type", "format", "text", "url", "phone_number", "flow_id")


async def submit(call: Calls, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
    """Submit a template for review.

    A name is unique at the operator, so an existing template with our name is the one submitted
    before.
    """
    body, owner = template_body(template, copies), template.business_account_id
    response = _certain(await call(account, "POST", _list_of(template), body=body, business=owner))
    match response:
        case {"id": str(operator_id)}:
            category = as_text(object_of(response).get("category")).upper() or None
            return Sent(as_name(operator_id), status=_status(response), category=category)
        case {"error": error}:  # the name already exists: every other error is an outcome already
            return await find(call, account, template) or name_is_taken(object_of(error))
        case dict():
            return Unavailable("the operator's answer has no template id")
        case _:
            return response


async def edit(call: Calls, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
    """Submit a template in place of the operator's version; if the operator has none, as a new one.

    Source: operator's facts 2.1, 2.6.
    """
    operator_id, owner = template.operator_template_id, template.business_account_id
    if not operator_id:
        existing = await find(call, account, template)
        if existing is None:
            return await submit(call, account, template, copies)
        if not isinstance(existing, Sent):
            return existing
        operator_id = existing.operator_id
    body = template_body(template, copies)
    changes = {name: value for name, value in body.items() if name not in ("name", "language")}
    response = _certain(await call(account, "POST", operator_id, body=changes, business=owner))
    match response:
        case {"success": True}:
            return Sent(operator_id, status=_status(response))
        case Rejected():
            # Perhaps it was done already and the response was lost: then it must not be done twice.
            query = {"fields": "components,status"}
            current = _certain(await call(account, "GET", operator_id, query=query, business=owner))
            if isinstance(current, Unavailable):
                return current
            theirs = list_of(object_of(current).get("components"))
            is_done = _says_as_much(body["components"], theirs)
            return Sent(operator_id, status=_status(current)) if is_done else response
        case dict():
            return Unavailable("the operator does not say that it has changed the template")
        case _:
            return response


async def delete(call: Calls, account: OperatorAccount, template: Template) -> Outcome:
    """Delete one template; return `Sent` also where the operator has none.

    Source: operator's facts 2.1: by id and name, so that other languages of the name stay.
    """
    operator_id, owner = template.operator_template_id, template.business_account_id
    if not operator_id:
        existing = await find(call, account, template)
        if not isinstance(existing, Sent):
            return Sent("") if existing is None else existing
        operator_id = existing.operator_id
    query = {"hsm_id": operator_id, "name": str(template.draft.element_name)}
    response = _certain(await call(account, "DELETE", _list_of(template), query=query, business=owner))
    match response:
        case {"success": True}:
            return Sent(operator_id)
        case Rejected():
            existing = await find(call, account, template)
            if isinstance(existing, Unavailable):
                return existing
            is_deleted = existing is None or (isinstance(existing, Sent) and existing.operator_id != operator_id)
            return Sent(operator_id) if is_deleted else response
        case dict():
            return Unavailable("the operator does not say that it has deleted the template")
        case _:
            return response


async def find(call: Calls, account: OperatorAccount, template: Template) -> Outcome | None:
    """Return the operator's template of this name and language; None if the complete list has none.

    A list that is cut short or cannot be read proves nothing about missing templates: `Unavailable`.
    """
    draft, owner = template.draft, template.business_account_id
    query = {"name": str(draft.element_name)}
    async for page in pages(call, account, _list_of(template), query, name="templates", business=owner):
        if not isinstance(page, list):
            return Unavailable(page.text) if isinstance(page, Uncertain) else page
        for item in page:
            match item:
                case {"id": str(operator_id), "name": name, "language": language} if (
                    name == draft.element_name and language == draft.language_code and _status(item) not in GOING
                ):
                    return Sent(as_name(operator_id), status=_status(item))
                case {"id": str()}:
                    continue
                case _:
                    return Unavailable("the operator's list has what is no template")
    return None


def _list_of(template: Template) -> str:
    return f"{template.business_account_id}/message_templates"


def _certain(answer: dict[str, Any] | Outcome) -> dict[str, Any] | Outcome:
    """Return `Unavailable` for a lost response, so that it is retried: nothing here is done twice."""
    return Unavailable(answer.text) if isinstance(answer, Uncertain) else answer


def _status(answer: Any) -> str | None:
    return as_text(object_of(answer).get("status")).upper() or None


def _says_as_much(ours: list[Any], theirs: list[Any]) -> bool:
    """True if the operator's components equal ours, apart from what only the operator adds."""
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(_says(object_of(a), object_of(b)) for a, b in pairs)


def _says(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    # A button for a code is read back as a URL. Source: operator's facts 2.1
    compared = ("text",) if as_text(ours.get("type")).upper() == "OTP" else _COMPARED
    is_same = all(as_text(ours[name]) == as_text(theirs.get(name)) for name in compared if ours.get(name))
    inner = (name for name in ("buttons", "cards", "components") if name in ours)
    return is_same and all(_says_as_much(list_of(ours.get(name)), list_of(theirs.get(name))) for name in inner)
