"""Control API calls for partners of tests: one for each test, its messages and its callbacks."""

from collections.abc import Awaitable
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field
from starlette.requests import Request
from starlette.responses import Response

from waypost.simulator.control.endpoints import (
    ClientLeftDuringWork,
    ControlBody,
    ControlOperations,
    ControlQuery,
    json_response,
    present_members,
    run_while_connected,
)
from waypost.simulator.dev_interfaces import CallbackFilter, DevPartners, NotReceived, PhoneMessageFilter
from waypost.simulator.field_types import Digits, Name, Position, WaitMs, accepts

_BASE_URL: Final = accepts("a URL such as http://waypost:8080, or empty: the server's own", "^(https?://[^/?#]+/?)?$")
_APPLICATION_URL: Final = accepts(
    "an http or https URL, or empty: not forwarded", "^(https?://[^/].*)?$", max_length=2000
)
_DEFAULT_TIMEOUT_MS: Final = 5000

BaseUrl = Annotated[str, _BASE_URL]
Words = Annotated[str, Meta(max_length=4096)]
ShortText = Annotated[str, Meta(max_length=256)]
HeaderName = Annotated[str, accepts("letters, digits and hyphens", "^[A-Za-z0-9-]{1,64}$")]
HeaderValue = Annotated[str, accepts("visible characters", "^[\\x21-\\x7e][\\x20-\\x7e]{0,999}$")]
RateName = Annotated[str, accepts("lower-case letters and underscores", "^[a-z_]{1,32}$")]
RateText = Annotated[str, accepts("requests and a period, such as 20/60s", "^.{1,32}$")]
SubscriptionMode = Literal[
    "ENQUEUED", "SENT", "DELIVERED", "READ", "DELETED", "FAILED", "MESSAGE", "TEMPLATE", "ACCOUNT",
    "OTHERS", "PAYMENTS", "FLOWS_MESSAGE",
]  # fmt: skip


class PartnerBody(ControlBody, frozen=True):
    """A partner's name, and base URLs that replace the server's own in its variables."""

    name: Words = ""
    api_url: BaseUrl = ""
    graph_url: BaseUrl = ""


class PartnerPhoneBody(ControlBody, frozen=True):
    """A person, and optionally the phone's number."""

    name: Name
    number: Annotated[Digits | None, accepts("8 to 15 digits, the first not 0, or null: derived from the names")] = None


class CallbacksBody(ControlBody, frozen=True):
    """The application that a partner's callbacks go to, and the subscription of its inbox."""

    forward_to: Annotated[str, _APPLICATION_URL] | UnsetType = UNSET
    status: Annotated[int, Meta(ge=200, le=599)] | UnsetType = UNSET
    version: Literal[2, 3] | UnsetType = UNSET
    modes: Annotated[tuple[SubscriptionMode, ...], Meta(min_length=1, max_length=20)] | UnsetType = UNSET
    headers: (
        Annotated[dict[HeaderName, HeaderValue], accepts("at most 10 texts by name", max_length=10)] | UnsetType
    ) = UNSET


class RatesBody(ControlBody, frozen=True):
    """Rates of a partner's app, and whether its other ones are removed first."""

    rates: Annotated[
        dict[RateName, RateText | None],
        accepts('rates by row, such as {"templates": "20/60s"}, where null removes one', max_length=50),
    ] = field(default_factory=dict[RateName, RateText | None])
    reset: bool = False


class CallbacksQuery(ControlQuery, frozen=True):
    """Page of the callbacks."""

    after: Position = 0
    limit: Annotated[int, Meta(ge=0, le=1000)] = 100


class MessageWaitBody(ControlBody, frozen=True):
    """Conditions of a message, and the real time to wait."""

    phone: Annotated[str, accepts("8 to 15 digits, or the name of one of its phones", min_length=1, max_length=256)]
    text: Words = ""
    type: ShortText = ""
    message_id: ShortText = ""
    button: ShortText = ""
    timeout_ms: WaitMs = _DEFAULT_TIMEOUT_MS


class CallbackFilterBody(ControlBody, frozen=True, kw_only=True):
    """Conditions of a callback."""

    kind: ShortText = ""
    message_id: ShortText = ""
    phone: ShortText = ""
    text: Words = ""
    postback_text: Words = ""

    def make_filter(self) -> CallbackFilter:
        """Return the conditions."""
        return CallbackFilter(
            kind=self.kind,
            message_id=self.message_id,
            phone=self.phone.lstrip("+"),
            text=self.text,
            postback_text=self.postback_text,
        )


class CallbackWaitBody(CallbackFilterBody, frozen=True, kw_only=True):
    """Conditions of a callback, and the real time to wait."""

    timeout_ms: WaitMs = _DEFAULT_TIMEOUT_MS


class NoCallbackBody(CallbackFilterBody, frozen=True, kw_only=True):
    """Conditions of a callback that must not arrive, and the real time to wait."""

    ms: WaitMs


class TemplateDecisionBody(ControlBody, frozen=True):
    """Reason of a rejection, and the real time to wait for the template and for its status."""

    reason: ShortText = ""
    explanation: Annotated[str, Meta(max_length=1024)] = ""
    timeout_ms: WaitMs = _DEFAULT_TIMEOUT_MS


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
