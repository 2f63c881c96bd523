"""What an adapter gives, and what it must say about itself."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from waypost.domain.app import App, OperatorAccount
from waypost.domain.direct_calls import Failure, OperatorCall, Problem, Response
from waypost.domain.event import Event
from waypost.domain.inbound_webhook import WebhookItem
from waypost.domain.media import Media
from waypost.domain.message import Message
from waypost.domain.outcome import Outcome, Rejected, Unavailable
from waypost.domain.templates.template import Template


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The operator has a medium, and this is its id or handle for it; until when, by our clock's count."""

    operator_id: str
    life_ms: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a limit has been used, as the operator last said.

    Attributes:
        business_id: whose limit: a business account's id; empty: our app's at the operator.
        type: the operator's word for what spends it, such as `whatsapp_business_management`.
        percent: of what may be used, by the fullest of its counts; at 100 the operator refuses.
        regain_minutes: how long until it may be used again; 0 where it may be used now.
        seen_ms: when the operator said so, by our clock.
    """

    business_id: str
    type: str
    percent: int
    regain_minutes: int
    seen_ms: int


@dataclass(frozen=True, slots=True)
class AccountField:
    """A field that an operator account has for its adapter, beside its base URL.

    Attributes:
        meaning: for the administrator.
        accepts: whether a value can be used.
        accepted: what can be used, for the error text.
        is_secret: never shown.
        default: of an account that names none; None: it is needed.
        is_made: a new account that names none gets a secret that nobody can guess, shown once.
    """

    name: str
    meaning: str
    accepts: Callable[[str], bool]
    accepted: str
    is_secret: bool = False
    default: str | None = None
    is_made: bool = False


class Operator(Protocol):
    """Carries submissions to the operator, and reads what the operator says.

    No method raises for what the operator does; that is an outcome. All are safe to call side by side.
    """

    fields: ClassVar[Sequence[AccountField]]
    """Of its operator accounts, in the order in which they are checked and shown."""

    async def open(self) -> None:
        """Make the connection pool."""
        ...

    async def close(self) -> None:
        """Close it."""
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
        """Hand one message to the operator and say what became of it.

        Args:
            account: credentials and address.
            app: whose number sends.
            message: what to send.
            template: of a template message.
            reply_to: the operator's id of the message it answers.
            copies: the operator's media ids by ours; an id that is not there goes as it is.
        """
        ...

    async def submit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        """Hand in a template for review. Handing in the same one again is harmless.

        Args:
            account: credentials and address.
            template: what to hand in.
            copies: the operator's handles by ours and by our media ids; one that is not there goes as it is.
        """
        ...

    async def edit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        """Hand in a template anew, in place of what the operator has; safe to repeat."""
        ...

    async def delete_template(self, account: OperatorAccount, template: Template) -> Outcome:
        """Delete one template, not its name in other languages; `Sent` also where the operator has none."""
        ...

    async def upload_media(
        self, account: OperatorAccount, app: App, media: Media, path: Path
    ) -> Uploaded | Rejected | Unavailable:
        """Upload a file for sending from the app's number; safe to repeat."""
        ...

    async def upload_sample(
        self, account: OperatorAccount, media: Media, path: Path
    ) -> Uploaded | Rejected | Unavailable:
        """Upload a file as a template's sample; what is given back is a handle, line breaks and all."""
        ...

    def fetch_media(
        self, account: OperatorAccount, operator_media_id: str, *, phone_number_id: str | None = None
    ) -> AsyncIterator[bytes | Rejected | Unavailable]:
        """The bytes of what a recipient has sent, part by part; an outcome ends it when there are none.

        An outcome may also come after bytes: then what came is not whole, and not to be used.

        Args:
            account: credentials and address.
            operator_media_id: the operator's id.
            phone_number_id: whose it must be; without it any of the account's.
        """
        ...

    async def call(self, account: OperatorAccount, request: OperatorCall[Response]) -> Response | Failure:
        """Make a direct call; each exchange with the operator takes at most ten seconds."""
        ...

    def usage(self, operator_account_id: str) -> Sequence[Usage]:
        """What was last seen of an operator account's limits since this process began."""
        ...

    def sample_owner(self, account: OperatorAccount) -> str:
        """Who has the samples that an account uploads, beside the account: another owner's handles are of no use."""
        ...

    def explain(self, code: int) -> Problem | None:
        """What is wrong where the operator refuses a direct call with this code; None: nothing more than its text."""
        ...

    def handshake(self, account: OperatorAccount, challenge: str, *, is_right: bool) -> Mapping[str, str] | None:
        """The query of the operator's webhook handshake, or of a wrong one; None: it has no handshake."""
        ...

    def answer_handshake(self, account: OperatorAccount, query: Mapping[str, str]) -> str | None:
        """What a correct webhook handshake is answered with; None for a wrong one."""
        ...

    def is_signed(self, account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the operator signed exactly these bytes."""
        ...

    def split(self, account: OperatorAccount, body: bytes) -> Sequence[WebhookItem]:
        """The single items of a webhook body; what cannot be split is one item."""
        ...

    def read(self, item: bytes) -> Event:
        """What one item says, in our words."""
        ...


class Operators:
    """The adapters of this service, by operator kind.

    Args:
        adapters: by kind.
    """

    def __init__(self, adapters: Mapping[str, Operator]) -> None:
        self._adapters = adapters

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds that an operator account can have."""
        return tuple(self._adapters)

    def of(self, account: OperatorAccount) -> Operator:
        """Return the adapter of an operator account.

        Raises:
            LookupError: this version has none of its kind.
        """
        return self.of_kind(account.kind)

    def of_kind(self, kind: str) -> Operator:
        """Return the adapter of a kind.

        Raises:
            LookupError: this version has none.
        """
        found = self._adapters.get(kind)
        if found is None:
            raise LookupError(f"this version has no adapter for operators of kind {kind}")
        return found

    async def open(self) -> None:
        """Open every adapter."""
        for one in self._adapters.values():
            await one.open()

    async def close(self) -> None:
        """Close every adapter."""
        for one in self._adapters.values():
            await one.close()
