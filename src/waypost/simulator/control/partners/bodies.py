"""Bodies and queries of the calls for partners of tests."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from waypost.simulator.control.request_structs import ControlBody, ControlQuery
from waypost.simulator.dev_partners import CallbackFilter
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
