"""Tables of the kinds of faults, their triggers and their filters."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from waypost.simulator.apis.members import MemberDeclaration
from waypost.simulator.state.embedded_signup import BREAKS, SCREENS, SESSION_OPENED, WINDOW_ERRORS

CALL: Final = "call"
WEBHOOK: Final = "webhook"
ONBOARDING: Final = "onboarding"
ENDPOINT: Final = "endpoint"
TARGETS: Final = (CALL, WEBHOOK, ONBOARDING, ENDPOINT)
ANY: Final = "*"
"""The name that matches every call, webhook, screen of an embedded signup, or request to an endpoint of a Flow."""

_WEEK_MS: Final = 7 * 24 * 3600 * 1000
_MAX_DELAY_MS: Final = 10 * 60 * 1000
_MAX_ERROR_CODE: Final = 9_999_999


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault."""

    # the unit it counts: a call, an update that a webhook would carry, a POST, an embedded signup or a screen of it, or
    # a request to an endpoint
    each: Literal["call", "update", "post", "screen", "session", "exchange"]
    parameter: MemberDeclaration  # the member of `what` that names the kind, and its values
    effect: str  # the effect on the business, for people
    source: str
    extra_parameters: tuple[MemberDeclaration, ...] = ()  # optional members in addition to it
    only_call: str = ""  # the only call, or name of another target, that it applies to; empty for all

    @property
    def name(self) -> str:
        """The name of its member of `what`."""
        return self.parameter.name

    @property
    def target(self) -> str:
        """The target: `call`, `webhook`, `onboarding` or `endpoint`."""
        targets = {"call": CALL, "screen": ONBOARDING, "session": ONBOARDING, "exchange": ENDPOINT}
        return targets.get(self.each, WEBHOOK)


_IS_CARRIED_OUT: Final = MemberDeclaration("processed", "boolean")
_GARBAGE_FORMS: Final = ("html", "truncated", "empty", "not_json")
_ENDPOINT_PAGE: Final = 'the operator\'s page "Implementing endpoint for Flows"'
_DIRECTIONS: Final = ("request", "response")

FAULT_KINDS: Final = (
    FaultKind(
        "call",
        parameter=MemberDeclaration("error", "whole", 0, _MAX_ERROR_CODE),
        extra_parameters=(
            MemberDeclaration("subcode", "whole", 0, _MAX_ERROR_CODE),
            MemberDeclaration("status", "whole", 400, 599),
            MemberDeclaration("details", "text", at_most=1000),
            MemberDeclaration("retry_after_s", "whole", 0, 86_400),
        ),
        effect="The call fails with this error code and is not carried out. The default `status` is that of the code.",
        source="facts 5.1, 5.2",
    ),
    FaultKind(
        "call",
        parameter=MemberDeclaration("fail", "whole", 0, _MAX_ERROR_CODE),
        effect="The message is accepted as usual; then a `failed` status with this code replaces `sent`.",
        source="facts 5.2, mode A",
        only_call="messages.send",
    ),
    FaultKind(
        "call",
        parameter=MemberDeclaration("timeout", "true"),
        extra_parameters=(_IS_CARRIED_OUT,),
        effect="The call gets no response; it is carried out unless `processed` is false.",
        source="facts 5.1",
    ),
    FaultKind(
        "call",
        parameter=MemberDeclaration("reset", "choice", choices=("before", "after")),
        effect="The connection breaks without a response: before the call is carried out, or after it.",
        source="facts 5.1",
    ),
    FaultKind(
        "call",
        parameter=MemberDeclaration("slow_ms", "whole", 1, _MAX_DELAY_MS),
        effect="The call is carried out at once; its response is delayed by this real time.",
        source="facts 5.1",
    ),
    FaultKind(
        "call",
        parameter=MemberDeclaration("garbage", "choice", choices=_GARBAGE_FORMS),
        extra_parameters=(MemberDeclaration("status", "whole", 200, 599), _IS_CARRIED_OUT),
        effect="The response is an HTML page, truncated, empty, or not JSON; the default `status` is 502, "
        "and the call is carried out only if `processed` is true.",
        source="facts 5.1",
    ),
    FaultKind("update", MemberDeclaration("drop", "true"), "The update is never sent.", "facts 7.3"),
    FaultKind(
        "update",
        parameter=MemberDeclaration("delay_ms", "whole", 1, _WEEK_MS),
        effect="The update is sent later by this time of the clock, with its original timestamp; others overtake it.",
        source="facts 7.1",
    ),
    FaultKind(
        "update",
        parameter=MemberDeclaration("duplicate", "whole", 1, 100),
        effect="The update is sent again this many times, each time in its own POST.",
        source="facts 7.1",
    ),
    FaultKind(
        "update",
        parameter=MemberDeclaration("reorder", "true"),
        effect="The update is sent after the account's next one, or alone if there is none within 5 s.",
        source="facts 7.1",
    ),
    FaultKind(
        "update",
        parameter=MemberDeclaration("batch", "whole", 2, 1000),
        effect="The update waits until this many share one POST, or until the first has waited 5 s.",
        source="facts 7.1",
    ),
    FaultKind(
        "post",
        parameter=MemberDeclaration("wrong_signature", "true"),
        effect="The POST is signed with another secret; after a rejection it is retried as usual.",
        source="facts 7.1",
    ),
    FaultKind(
        "post",
        parameter=MemberDeclaration("unsigned", "true"),
        effect="The POST has no signature; after a rejection it is retried as usual.",
        source="facts 7.1",
    ),
    FaultKind(
        "post",
        parameter=MemberDeclaration("garbage", "true"),
        effect="A correctly signed POST that is not JSON is sent before the real one.",
        source="facts 7.1",
    ),
    FaultKind(
        "screen",
        parameter=MemberDeclaration("window_error", "whole", min(WINDOW_ERRORS), max(WINDOW_ERRORS)),
        extra_parameters=(MemberDeclaration("ends", "boolean"),),
        effect="The window shows this error when something is entered; with `ends` it ends, and the page gets `ERROR`. "
        "Without a name it is shown on the first screen that can show it.",
        source="facts 14.7",
    ),
    FaultKind(
        "session",
        parameter=MemberDeclaration("break", "choice", choices=tuple(BREAKS)),
        effect="The signup goes wrong in this way, as `breaks` below says.",
        source="facts 14.9",
        only_call=SESSION_OPENED,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("slow_ms", "whole", 1, _MAX_DELAY_MS),
        effect="The handset gets the response later by this real time; beyond its time limit it gives up.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("status", "whole", 300, 599),
        extra_parameters=(MemberDeclaration("error_msg", "text", at_most=200), _IS_CARRIED_OUT),
        effect="The handset gets this HTTP status without a body, with 427 the text `error_msg`; the endpoint gets the "
        "request only if `processed` is true.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("reset", "choice", choices=("before", "after")),
        effect="The connection is refused before the endpoint gets the request, or breaks after it got it.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("garbage", "choice", choices=(*_GARBAGE_FORMS, "quoted")),
        effect="The endpoint gets the request; of its response the handset gets an HTML page, the first half, nothing, "
        "a text that is no base64, or the response in quotes.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("wrong_tag", "choice", choices=_DIRECTIONS),
        effect="A bit of the tag is wrong: of the request, to which the endpoint must respond 421, or of the response.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("wrong_iv", "choice", choices=_DIRECTIONS),
        effect="The initial vector is another: of the request, to which the endpoint must respond 421; or the response "
        "is encrypted with the vector of the request, not flipped.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("stale_key", "true"),
        effect="The handset has an old public key, as if the business had changed it between two screens. After the "
        "421 of the endpoint it fetches the key and tries again.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("replay", "true"),
        effect="The endpoint gets the same bytes a second time. The handset uses the first response; the exchange says "
        "how the endpoint took the second request.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("wrong_signature", "true"),
        effect="The request is signed with another secret; the endpoint must respond 432.",
        source=_ENDPOINT_PAGE,
    ),
    FaultKind(
        "exchange",
        parameter=MemberDeclaration("unsigned", "true"),
        effect="The request has no signature; the endpoint must respond 432.",
        source=_ENDPOINT_PAGE,
    ),
)

FAULT_TRIGGERS: Final = (
    # member                                        fires
    (MemberDeclaration("always", "true"), "each time"),
    (MemberDeclaration("next", "whole", 1, 1_000_000), "this many times, then never again"),
    (MemberDeclaration("every", "whole", 2, 1_000_000), "at each multiple: with 3 the third time, the sixth, …"),
    (
        MemberDeclaration("probability", "fraction", 0, 1),
        "with this probability, drawn from `seed`, the fault's id and the number of evaluations",
    ),
)

STATUSES: Final = ("sent", "delivered", "read", "failed", "played", "deleted", "warning")  # facts 7.3
TEMPLATE_FIELDS: Final = (  # Source: facts 3.3, 7.2
    "message_template_status_update",
    "message_template_quality_update",
    "template_category_update",
    "message_template_components_update",
)
OTHER_FIELDS: Final = (  # Source: facts 7.2; updates that the control API sends under a field's name
    "account_alerts",
    "account_review_update",
    "account_update",
    "business_capability_update",
    "flows",
    "messages",
    "phone_number_name_update",
    "phone_number_quality_update",
    "user_preferences",
)
INBOUND: Final = "message"
WEBHOOKS: Final = (*STATUSES, INBOUND, *TEMPLATE_FIELDS, *OTHER_FIELDS)
"""Names of updates: a message's status, `message` for a phone's message, or the field's name."""
SIGNUP_NAMES: Final = (SESSION_OPENED, *(name for name in SCREENS if name != "done"))
"""Names of an embedded signup: that it is opened, and its screens."""
ENDPOINT_REQUESTS: Final = ("ping", "INIT", "data_exchange", "BACK", "error_notice")
"""Names of requests to an endpoint: their action, or `error_notice`. Source: the page "Implementing endpoint for Flows"."""

FAULT_FILTERS: Final = {
    # member    accepted
    "app": "an app's id at the operator: digits",
    "waba_id": "a business account's id: digits",
    "number": "a business number's id or its digits",
    "phone": "a phone's digits, without +",
    "template": "a template's name",
    "flow": "a Flow's id: digits",
}


def find_fault_kind(on: str, what: dict[str, Any]) -> FaultKind:
    """Return the kind of a checked `what`."""
    return next(kind for kind in FAULT_KINDS if kind.target == on and kind.name in what)
