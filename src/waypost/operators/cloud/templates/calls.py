"""Templates at the operator: handed in, edited, deleted; each safe to repeat.

An answer that was lost is no doubt here, as it is with messages: the call is made again, and where
the operator then refuses what it has done already, what it has is compared with what was asked.
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
"""Statuses of a template that is gone, or about to be."""
_COMPARED: Final = ("type", "format", "text", "url", "phone_number", "flow_id")


async def submit(call: Calls, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
    """Hand in a template for review.

    A name is unique at the operator, so a template that is already there under our name is the one
    we handed in before.
    """
    body, owner = template_body(template, copies), template.business_account_id
    answer = _certain(await call(account, "POST", _list_of(template), body=body, business=owner))
    match answer:
        case {"id": str(operator_id)}:
            category = as_text(object_of(answer).get("category")).upper() or None
            return Sent(as_name(operator_id), status=_status(answer), category=category)
        case {"error": error}:  # the name is taken: everything else is an outcome already
            return await find(call, account, template) or name_is_taken(object_of(error))
        case dict():
            return Unavailable("the operator's answer has no template id")
        case _:
            return answer


async def edit(call: Calls, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
    """Hand in a template anew, in place of what the operator has; where it has none, as a new one.

    Source: operator's facts 2.1, 2.6.
    """
    operator_id, owner = template.operator_template_id, template.business_account_id
    if not operator_id:
        found = await find(call, account, template)
        if found is None:
            return await submit(call, account, template, copies)
        if not isinstance(found, Sent):
            return found
        operator_id = found.operator_id
    body = template_body(template, copies)
    changes = {name: value for name, value in body.items() if name not in ("name", "language")}
    answer = _certain(await call(account, "POST", operator_id, body=changes, business=owner))
    match answer:
        case {"success": True}:
            return Sent(operator_id, status=_status(answer))
        case Rejected():
            # Perhaps it has been done already, and the answer was lost: then it may not be done twice.
            query = {"fields": "components,status"}
            shown = _certain(await call(account, "GET", operator_id, query=query, business=owner))
            if isinstance(shown, Unavailable):
                return shown
            theirs = list_of(object_of(shown).get("components"))
            is_done = _says_as_much(body["components"], theirs)
            return Sent(operator_id, status=_status(shown)) if is_done else answer
        case dict():
            return Unavailable("the operator does not say that it has changed the template")
        case _:
            return answer


async def delete(call: Calls, account: OperatorAccount, template: Template) -> Outcome:
    """Delete one template; `Sent` also where the operator has none.

    Source: operator's facts 2.1: by id and name, so that other languages of the name stay.
    """
    operator_id, owner = template.operator_template_id, template.business_account_id
    if not operator_id:
        found = await find(call, account, template)
        if not isinstance(found, Sent):
            return Sent("") if found is None else found
        operator_id = found.operator_id
    query = {"hsm_id": operator_id, "name": str(template.draft.element_name)}
    answer = _certain(await call(account, "DELETE", _list_of(template), query=query, business=owner))
    match answer:
        case {"success": True}:
            return Sent(operator_id)
        case Rejected():
            found = await find(call, account, template)
            if isinstance(found, Unavailable):
                return found
            is_gone = found is None or (isinstance(found, Sent) and found.operator_id != operator_id)
            return Sent(operator_id) if is_gone else answer
        case dict():
            return Unavailable("the operator does not say that it has deleted the template")
        case _:
            return answer


async def find(call: Calls, account: OperatorAccount, template: Template) -> Outcome | None:
    """The operator's template of this name and language; None when its whole list has none.

    A list that is cut short or cannot be read says nothing about what is not on it: `Unavailable`.
    """
    draft, owner = template.draft, template.business_account_id
    query = {"name": str(draft.element_name)}
    async for page in pages(call, account, _list_of(template), query, name="templates", business=owner):
        if not isinstance(page, list):
            return Unavailable(page.text) if isinstance(page, Uncertain) else page
        for one in page:
            match one:
                case {"id": str(operator_id), "name": name, "language": language} if (
                    name == draft.element_name and language == draft.language_code and _status(one) not in GOING
                ):
                    return Sent(as_name(operator_id), status=_status(one))
                case {"id": str()}:
                    continue
                case _:
                    return Unavailable("the operator's list has what is no template")
    return None


def _list_of(template: Template) -> str:
    return f"{template.business_account_id}/message_templates"


def _certain(answer: dict[str, Any] | Outcome) -> dict[str, Any] | Outcome:
    """An answer that was lost is tried again: nothing here is done twice."""
    return Unavailable(answer.text) if isinstance(answer, Uncertain) else answer


def _status(answer: Any) -> str | None:
    return as_text(object_of(answer).get("status")).upper() or None


def _says_as_much(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether the operator's components say what ours do; what only the operator fills in does not count."""
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(_says(object_of(a), object_of(b)) for a, b in pairs)


def _says(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    # A button for a code is read back as a URL. Source: operator's facts 2.1
    compared = ("text",) if as_text(ours.get("type")).upper() == "OTP" else _COMPARED
    same = all(as_text(ours[name]) == as_text(theirs.get(name)) for name in compared if ours.get(name))
    inner = (name for name in ("buttons", "cards", "components") if name in ours)
    return same and all(_says_as_much(list_of(ours.get(one)), list_of(theirs.get(one))) for one in inner)
