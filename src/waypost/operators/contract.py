"""The contract of operator adapters, and the fields of their accounts."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from waypost.domain.app import App, OperatorAccount
from waypost.domain.direct_calls import CallFailure, OperatorCall, OperatorProblem, Response
from waypost.domain.event import Event, WebhookItem
from waypost.domain.media import UploadedMedia
from waypost.domain.message import Message
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, Outcome
from waypost.domain.templates.template import Template


@dataclass(frozen=True, slots=True)
class OperatorUpload:
    """The operator's id or handle of an uploaded media file, and its lifetime by our clock."""

    operator_id: str
    life_ms: int


class LimitUsage(NamedTuple):
    """Usage of one rate limit, as last reported by the operator."""

    business_id: str  # the business account with the limit; empty: our app at the operator
    type: str  # the operator's name of the limit, such as `whatsapp_business_management`
    percent: int  # used share of the limit, by the highest of its counts; at 100 the operator rejects calls
    minutes_until_reset: int  # minutes until calls are possible again; 0 if they are possible now
    seen_ms: int  # time of the report, by our clock


@dataclass(frozen=True, slots=True)
class AccountField:
    """A field of an operator account that its adapter needs, in addition to the base URL."""

    name: str
    meaning: str  # description for the administrator
    accepts: Callable[[str], bool]  # returns True for a valid value
    accepted: str  # description of valid values, for the error text
    is_secret: bool = False  # never shown
    default: str | None = None  # of an account that sets none; None: the field is required
    is_generated: bool = False  # a new account that sets none gets a generated secret, which is shown once


class GraphFile(NamedTuple):
    """A file of a request that is a form in parts."""

    name: str
    mime_type: str
    content: bytes


class GraphRequest(NamedTuple):
    """A request of the Graph API."""

    method: str  # of HTTP
    path: str  # below the version
    body: Mapping[str, Any] | None = None  # JSON; with files, the texts of a form in parts
    query: Mapping[str, str] | None = None  # of the URL
    files: Mapping[str, GraphFile] | None = None  # by the names of their parts
    business: str = ""  # the business account that is called itself; the request counts toward its limits only
    is_message: bool = False  # True if it counts toward the limits of messages


class GraphClient(Protocol):
    """The capability of an operator that speaks the Graph API: its responses are passed on to partners."""

    marketing_terms: ClassVar[str]
    """The page where the owner of a business account accepts the terms for marketing messages: `asset_id`, `locale`."""

    async def request(self, account: OperatorAccount, request: GraphRequest) -> dict[str, Any] | CallFailure:
        """Make one request, which takes at most ten seconds; return the object of its response."""
        ...

    async def list_all(self, account: OperatorAccount, request: GraphRequest, name: str) -> list[Any] | CallFailure:
        """Return the items of all pages; `name` is what the text of a failure calls them."""
        ...


class Operator(Protocol):
    """An adapter: sends submissions to the operator, and reads its responses and webhooks.

    No method raises for an error of the operator; that is an outcome. All are safe to call concurrently.
    """

    fields: ClassVar[Sequence[AccountField]]
    """Fields of its operator accounts, in the order of checks and display."""

    @property
    def graph(self) -> GraphClient | None:
        """Its Graph API; None: it has none, and operations that only pass its responses on return an error."""
        ...

    async def open(self) -> None:
        """Create the connection pool."""
        ...

    async def close(self) -> None:
        """Close the pool."""
        ...

    async def send(
        self,
        account: OperatorAccount,
        app: App,
        message: Message,
        *,
        template: Template | None,
        reply_to: str | None,
        copies: Mapping[str, str],
    ) -> Outcome:
        """Send one message to the operator and return the outcome.

        Args:
            reply_to: the operator's id of the message that it replies to.
            copies: the operator's media ids by ours; an id without a copy is sent unchanged.
        """
        ...

    async def submit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        """Submit a template for review. Submitting the same one twice is harmless.

        Args:
            copies: the operator's handles by ours and by our media ids; one without a copy is sent unchanged.
        """
        ...

    async def edit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        """Submit a template in place of the operator's version; safe to repeat."""
        ...

    async def delete_template(self, account: OperatorAccount, template: Template) -> Outcome:
        """Delete one template, not its name in other languages; `OperatorAccepted` also where the operator has none."""
        ...

    async def upload_media(
        self, account: OperatorAccount, app: App, media: UploadedMedia, path: Path
    ) -> OperatorUpload | OperatorRejected | OperatorUnavailable:
        """Upload a file for sending from the app's number; safe to repeat."""
        ...

    async def upload_sample(
        self, account: OperatorAccount, media: UploadedMedia, path: Path
    ) -> OperatorUpload | OperatorRejected | OperatorUnavailable:
        """Upload a file as a template's sample; the result is a handle, which may contain line breaks."""
        ...

    def fetch_media(
        self, account: OperatorAccount, operator_media_id: str, *, phone_number_id: str | None = None
    ) -> AsyncIterator[bytes | OperatorRejected | OperatorUnavailable]:
        """Yield the bytes of a recipient's media file in chunks; an outcome ends it when there are none.

        An outcome may also come after bytes: then they are not complete and must not be used.

        Args:
            phone_number_id: the number that must have received it; None: any of the account.
        """
        ...

    async def call(self, account: OperatorAccount, request: OperatorCall[Response]) -> Response | CallFailure:
        """Make a direct call; each request to the operator takes at most ten seconds."""
        ...

    def usage(self, operator_account_id: str) -> Sequence[LimitUsage]:
        """Return the limit usage last reported for an operator account since this process began."""
        ...

    def sample_owner(self, account: OperatorAccount) -> str:
        """Return the owner of an account's samples besides the account: handles of another owner are of no use."""
        ...

    def explain(self, code: int) -> OperatorProblem | None:
        """Return the problem that the error code of a direct call points to; None: only the operator's text."""
        ...

    def handshake(self, account: OperatorAccount, challenge: str, *, is_right: bool) -> Mapping[str, str] | None:
        """Return the query of the operator's webhook handshake, or of a wrong one; None: it has no handshake.

        The query is the same each time for the same arguments.
        """
        ...

    def verify_handshake(self, account: OperatorAccount, query: Mapping[str, str]) -> str | None:
        """Return the response body to a correct webhook handshake; None for a wrong one."""
        ...

    def is_signed(self, account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
        """True if the operator signed exactly these bytes."""
        ...

    def split(self, account: OperatorAccount, body: bytes) -> Sequence[WebhookItem]:
        """Return the items of a webhook body; what cannot be read of it is made by `unreadable_item`."""
        ...

    def read(self, item: bytes) -> Event:
        """Return the event of one item."""
        ...


class Operators:
    """The adapters of this service, by operator kind."""

    def __init__(self, adapters: Mapping[str, Operator]) -> None:
        self._adapters = adapters

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds that an operator account can have."""
        return tuple(self._adapters)

    def adapter(self, account: OperatorAccount) -> Operator:
        """Return the adapter of an operator account.

        Raises:
            LookupError: there is no adapter of its kind.
        """
        return self._adapters.get(account.kind) or self.adapter_of_kind(account.kind)

    def adapter_of_kind(self, kind: str) -> Operator:
        """Return the adapter of a kind.

        Raises:
            LookupError: there is no such adapter.
        """
        adapter = self._adapters.get(kind)
        if adapter is None:
            raise LookupError(f"this version has no adapter for operators of kind {kind}")
        return adapter

    async def open(self) -> None:
        """Open every adapter."""
        for adapter in self._adapters.values():
            await adapter.open()

    async def close(self) -> None:
        """Close every adapter."""
        for adapter in self._adapters.values():
            await adapter.close()
