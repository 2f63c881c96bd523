"""Partners for tests: the calls of the control API about them, which `assembly` implements.

There is one partner for each test, with its messages and its callbacks.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Final, Literal, Protocol

from msgspec import UNSET, Meta, Struct, UnsetType, field
from starlette.requests import Request

from waypost.simulator.apis.control_operations import (
    ClientLeftDuringWork,
    ControlBody,
    ControlOperations,
    ControlQuery,
    Endpoint,
    Function,
    Method,
    json_response,
    member_of_state,
    run_while_connected,
)
from waypost.simulator.apis.field_types import Digits, Name, Position, WaitMs, accepts

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
    """Conditions of a callback; empty ones match every callback."""

    kind: ShortText = ""  # such as `delivered`, `quick_reply` or `status-update`
    message_id: ShortText = ""  # the service's id of the message it is about
    phone: ShortText = ""
    text: Words = ""  # a part of its text
    postback_text: Words = ""  # of the tapped button


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


class CallbackSettings(Struct, frozen=True):
    """The subscription and responses of a partner's inbox; `forward_to` is empty if callbacks are not forwarded."""

    forward_to: str
    status: int
    version: int
    modes: tuple[str, ...]
    headers: dict[str, str]


class PartnerView(Struct, frozen=True):
    """A partner for one test; `env` has the variables of its application, `phones` digits by the names of persons."""

    id: str
    name: str
    created_on_ms: int
    env: dict[str, str]
    phones: dict[str, str]
    inbox_url: str
    callbacks: CallbackSettings


class PartnerPhone(Struct, frozen=True):
    """A person's phone."""

    name: str
    phone: str


class PartnerRates(Struct, frozen=True):
    """The rates of a partner's app: every row, with its own, the service's and the one in force."""

    app_id: str
    limits_requests: bool
    rates: list[dict[str, Any]]


class CallbackAttemptView(Struct, frozen=True):
    """One received attempt of a callback, and the response to it, as the control API shows it; unknown is empty."""

    position: int  # counts the attempts of the inbox from 1
    id: str  # the header `Waypost-Callback-Id`, the same for every attempt of one callback
    sequence: int  # the header `Waypost-Sequence`
    # the event: `delivered`, `failed`, `text`, `quick_reply`, `status-update` and so on. In version 2 it is the value
    # of `payload.type`; in version 3 the status, the message's type, or the field.
    kind: str
    message_id: str  # our id of the message it is about, or of the message that was replied to
    phone: str  # the digits of the phone it is about
    text: str  # of an inbound message, or the label of the tapped button
    postback_text: str  # that the sender set for the tapped button
    reason: str  # why a message failed or a template was rejected
    status: int  # of the response; 0 if the application did not respond
    response: str  # the beginning of the response's body, or why there was none
    headers: dict[str, str]  # of the request; names in lower case
    body: dict[str, Any]

    @property
    def was_delivered(self) -> bool:
        """True if the status is 2xx, which counts as delivered."""
        return 200 <= self.status < 300

    def matches(self, wanted: CallbackFilterBody) -> bool:
        """True if all conditions are met."""
        return (
            wanted.kind in ("", self.kind)
            and wanted.message_id in ("", self.message_id)
            and wanted.phone.lstrip("+") in ("", self.phone)
            and wanted.text in self.text
            and wanted.postback_text in ("", self.postback_text)
        )


class NotReceived(Exception):
    """A wait failed: what was expected did not arrive in time, or what was not expected did.

    Attributes:
        explanation: several lines: the first says what failed, the others what happened instead.
    """

    def __init__(self, explanation: str) -> None:
        super().__init__(explanation.partition("\n")[0])
        self.explanation = explanation


operation = ControlOperations()


_ALONE: Final = "this simulator stands alone, and a partner is at the service"
_PARTNERS: Final = member_of_state("partners", "partners", _ALONE, "the control API of `waypost dev`")


def _partner_call(
    method: Method, path: str, member: str = "", *, waits: bool = False
) -> Callable[[Function], Function]:
    """Declare the method below as a call; its result is the response, or a member of it.

    One that waits is cancelled if the client disconnects, and `NotReceived` becomes a response of 422.
    """

    def declare(function: Function) -> Function:
        async def run(partners: Any, *values: Any) -> Any:
            result = await getattr(partners, function.__name__)(*values)
            return {member: result} if member else result

        async def wait(request: Request, partners: Any, *values: Any) -> Any:
            try:
                return await run_while_connected(request, run(partners, *values))
            except ClientLeftDuringWork:
                return {member: None}  # the client is gone
            except NotReceived as error:
                return json_response({"error": str(error), "explanation": error.explanation}, 422)

        called: Any = wait if waits else run
        endpoint: Endpoint = wraps(function)(called)
        _, *parameters = signature(function).parameters.values()
        own = [
            Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request),
            Parameter("partners", Parameter.POSITIONAL_OR_KEYWORD, annotation=Annotated[Any, _PARTNERS]),
        ]
        vars(endpoint)["__signature__"] = signature(function).replace(parameters=[*own[not waits :], *parameters])
        result = signature(function).return_annotation
        operation(method, path, **({member: result} if member else {}))(endpoint)
        return function

    return declare


class DevPartners(Protocol):
    """Creates partners for tests, and waits for their messages and callbacks.

    Every method raises `ControlApiError` if the partner is unknown or an API rejects a request, and one that waits
    `NotReceived`.
    """

    @_partner_call("GET", "/control/partners", "partners")
    async def list_partners(self) -> list[PartnerView]:
        """Return the partners that were created and not deleted, oldest first."""
        ...

    @_partner_call("POST", "/control/partners")
    async def create_partner(self, body: PartnerBody) -> PartnerView:
        """Create a partner for one test: own app, number, accounts, credentials and callback inbox.

        `env` has the variables of the application under test. The same `name` gets the same numbers at each
        start of the server. Its templates wait for a decision.
        """
        ...

    @_partner_call("GET", "/control/partners/{partner_id}")
    async def show_partner(self, partner_id: str) -> PartnerView:
        """Return a partner."""
        ...

    @_partner_call("DELETE", "/control/partners/{partner_id}", "deleted")
    async def delete_partner(self, partner_id: str) -> str:
        """Delete a partner's subscriptions and faults, and close its inbox; its messages stay."""
        ...

    @_partner_call("POST", "/control/partners/{partner_id}/phones")
    async def add_phone(self, partner_id: str, body: PartnerPhoneBody) -> PartnerPhone:
        """Return the phone of a person, the same for the same name; its number belongs to this partner's test only."""
        ...

    @_partner_call("GET", "/control/partners/{partner_id}/callbacks", "callbacks")
    async def list_callbacks(self, partner_id: str, query: CallbacksQuery) -> list[CallbackAttemptView]:
        """Return the newest attempts of callbacks, oldest first; the inbox has at most 1000 and 1 MB."""
        ...

    @_partner_call("PUT", "/control/partners/{partner_id}/callbacks")
    async def change_callbacks(self, partner_id: str, body: CallbacksBody) -> PartnerView:
        """Forward callbacks to an application, or set status, version, modes or headers; absent members stay.

        A forwarded callback gets the application's response, so that the service retries a failed one.
        """
        ...

    @_partner_call("PUT", "/control/partners/{partner_id}/rates")
    async def change_rates(self, partner_id: str, body: RatesBody) -> PartnerRates:
        """Give a partner's app rates of its own, or remove them; returns all rows, and where each comes from.

        They apply at once, unless the server limits no requests: `limits_requests` is then false.
        """
        ...

    @_partner_call("POST", "/control/partners/{partner_id}/wait-for-message", "message", waits=True)
    async def wait_for_message(self, partner_id: str, body: MessageWaitBody) -> dict[str, Any]:
        """Return the first matching message on a phone, each once; 422 with an `explanation` after the time."""
        ...

    @_partner_call("POST", "/control/partners/{partner_id}/wait-for-callback", "callback", waits=True)
    async def wait_for_callback(self, partner_id: str, body: CallbackWaitBody) -> CallbackAttemptView:
        """Return the first matching callback with a 2xx response, each once; 422 with an `explanation` without one."""
        ...

    @_partner_call("POST", "/control/partners/{partner_id}/no-callback-within", "callback", waits=True)
    async def expect_no_callback(self, partner_id: str, body: NoCallbackBody) -> None:
        """Return after `ms` without a matching callback; 422 with an `explanation` at once if there is one.

        A callback that a wait has returned does not count.
        """

    @_partner_call("POST", "/control/partners/{partner_id}/templates/{name}/{action}", "template", waits=True)
    async def decide_template(
        self, partner_id: str, name: str, action: str, body: TemplateDecisionBody
    ) -> dict[str, Any]:
        """Approve, reject, pause or disable a template of a partner by name or id; waits until it is submitted.

        Returns it once the service has the new status; 422 with an `explanation` if that does not happen in time.
        """
        ...

    @_partner_call("GET", "/control/partners/{partner_id}/explanation", "explanation")
    async def explain_partner(self, partner_id: str) -> str:
        """Return the report that explains failures: phones, callbacks, unfinished messages, likely causes."""
        ...
