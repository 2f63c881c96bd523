"""Functions of the calls for partners of tests."""

from collections.abc import Awaitable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from waypost.simulator.control.endpoints import (
    ClientLeftDuringWork,
    ControlOperations,
    json_response,
    run_while_connected,
)
from waypost.simulator.control.partners.bodies import (
    CallbacksBody,
    CallbacksQuery,
    CallbackWaitBody,
    MessageWaitBody,
    NoCallbackBody,
    PartnerBody,
    PartnerPhoneBody,
    RatesBody,
    TemplateDecisionBody,
)
from waypost.simulator.control.request_structs import present_members
from waypost.simulator.dev_partners import DevPartners, NotReceived, PhoneMessageFilter

operation = ControlOperations()


@operation("GET", "/control/partners")
async def list_partners(partners: DevPartners) -> dict[str, Any]:
    """Return the partners that were created and not deleted, oldest first."""
    return {"partners": partners.list_all()}


@operation("POST", "/control/partners")
async def create_partner(partners: DevPartners, body: PartnerBody) -> dict[str, Any]:
    """Create a partner for one test: own app, number, accounts, credentials and callback inbox.

    `env` has the variables of the application under test. The same `name` gets the same numbers at each
    start of the server. Its templates wait for a decision.
    """
    return await partners.create(name=body.name, api_url=body.api_url, graph_url=body.graph_url)


@operation("GET", "/control/partners/{partner_id}")
async def show_partner(partners: DevPartners, partner_id: str) -> dict[str, Any]:
    """Return a partner."""
    return partners.show(partner_id)


@operation("DELETE", "/control/partners/{partner_id}")
async def delete_partner(partners: DevPartners, partner_id: str) -> dict[str, Any]:
    """Delete a partner's subscriptions and faults, and close its inbox; its messages stay."""
    await partners.delete(partner_id)
    return {"deleted": partner_id}


@operation("POST", "/control/partners/{partner_id}/phones")
async def add_phone(partners: DevPartners, partner_id: str, body: PartnerPhoneBody) -> dict[str, Any]:
    """Return the phone of a person, the same for the same name; its number belongs to this partner's test only."""
    return await partners.add_phone(partner_id, name=body.name, number=body.number or "")


@operation("GET", "/control/partners/{partner_id}/callbacks")
async def list_callbacks(partners: DevPartners, partner_id: str, query: CallbacksQuery) -> dict[str, Any]:
    """Return the newest attempts of callbacks, oldest first; the inbox has at most 1000 and 1 MB."""
    return {"callbacks": partners.list_callbacks(partner_id, after=query.after, limit=query.limit)}


@operation("PUT", "/control/partners/{partner_id}/callbacks")
async def change_callbacks(partners: DevPartners, partner_id: str, body: CallbacksBody) -> dict[str, Any]:
    """Forward callbacks to an application, or set status, version, modes or headers; absent members stay.

    A forwarded callback gets the application's response, so that the service retries a failed one.
    """
    changes = present_members(body)
    if "headers" in changes:
        changes["headers"] = tuple(sorted(changes["headers"].items()))
    return await partners.change_callbacks(partner_id, changes)


@operation("PUT", "/control/partners/{partner_id}/rates")
async def change_rates(partners: DevPartners, partner_id: str, body: RatesBody) -> dict[str, Any]:
    """Give a partner's app rates of its own, or remove them; returns all rows, and where each comes from.

    They apply at once, unless the server limits no requests: `limits_requests` is then false.
    """
    return await partners.change_rates(partner_id, rates=body.rates, reset=body.reset)


@operation("POST", "/control/partners/{partner_id}/wait-for-message")
async def wait_for_message(
    request: Request, partners: DevPartners, partner_id: str, body: MessageWaitBody
) -> dict[str, Any] | Response:
    """Return the first matching message on a phone, each once; 422 with an `explanation` after the time."""
    wanted = PhoneMessageFilter(text=body.text, type=body.type, message_id=body.message_id, button=body.button)
    work = partners.wait_for_message(partner_id, phone=body.phone, wanted=wanted, timeout_ms=body.timeout_ms)
    return await _respond_to_wait(request, "message", work)


@operation("POST", "/control/partners/{partner_id}/wait-for-callback")
async def wait_for_callback(
    request: Request, partners: DevPartners, partner_id: str, body: CallbackWaitBody
) -> dict[str, Any] | Response:
    """Return the first matching callback with a 2xx response, each once; 422 with an `explanation` after the time."""
    work = partners.wait_for_callback(partner_id, wanted=body.make_filter(), timeout_ms=body.timeout_ms)
    return await _respond_to_wait(request, "callback", work)


@operation("POST", "/control/partners/{partner_id}/no-callback-within")
async def expect_no_callback(
    request: Request, partners: DevPartners, partner_id: str, body: NoCallbackBody
) -> dict[str, Any] | Response:
    """Return after `ms` without a matching callback; 422 with an `explanation` at once if there is one.

    A callback that a wait has returned does not count.
    """
    work = partners.expect_no_callback(partner_id, unwanted=body.make_filter(), within_ms=body.ms)
    return await _respond_to_wait(request, "callback", work)


@operation("POST", "/control/partners/{partner_id}/templates/{name}/{action}")
async def decide_template(
    request: Request, partners: DevPartners, partner_id: str, name: str, action: str, body: TemplateDecisionBody
) -> dict[str, Any] | Response:
    """Approve, reject, pause or disable a template of a partner by name or id; waits until it is submitted.

    Returns it once the service has the new status; 422 with an `explanation` if that does not happen in time.
    """
    details = {key: text for key, text in (("reason", body.reason), ("explanation", body.explanation)) if text}
    work = partners.decide_template(
        partner_id, template=name, action=action, details=details, timeout_ms=body.timeout_ms
    )
    return await _respond_to_wait(request, "template", work)


@operation("GET", "/control/partners/{partner_id}/explanation")
async def explain_partner(partners: DevPartners, partner_id: str) -> dict[str, Any]:
    """Return the report that explains failures: phones, callbacks, unfinished messages, likely causes."""
    return {"explanation": await partners.explain(partner_id)}


async def _respond_to_wait(request: Request, name: str, work: Awaitable[Any]) -> dict[str, Any] | Response:
    try:
        return {name: await run_while_connected(request, work)}
    except ClientLeftDuringWork:
        return {name: None}  # the client is gone
    except NotReceived as error:
        return json_response({"error": str(error), "explanation": error.explanation}, 422)
