"""The Cloud API over HTTP."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from waypost.base.clock import Clock, SystemClock
from waypost.base.json_values import object_of
from waypost.domain.app import App, OperatorAccount
from waypost.domain.direct_calls import Failure, OperatorCall, Problem, Response
from waypost.domain.event import Event
from waypost.domain.inbound_webhook import WebhookItem
from waypost.domain.media import Media
from waypost.domain.message import Message
from waypost.domain.outcome import Outcome, Rejected, Sent, Unavailable, Uncertain
from waypost.domain.templates.template import Template
from waypost.operators.cloud import direct_calls, media_calls
from waypost.operators.cloud.account import FIELDS
from waypost.operators.cloud.error_codes import name_is_taken
from waypost.operators.cloud.error_explanations import explain
from waypost.operators.cloud.http_calls import Calls
from waypost.operators.cloud.messages.bodies import message_body
from waypost.operators.cloud.templates import calls
from waypost.operators.cloud.tolerant_json import as_name
from waypost.operators.cloud.webhooks import webhook
from waypost.operators.contract import AccountField, Uploaded, Usage


class CloudOperator:
    """One adapter for every operator account that speaks the Cloud API.

    Args:
        clock: by which an account near its limits waits.
        timeout_s: for a whole call; after it a message is uncertain.
        held: call nobody.
    """

    fields: ClassVar[Sequence[AccountField]] = FIELDS

    def __init__(self, clock: Clock | None = None, *, timeout_s: float = 30, held: bool = False) -> None:
        self._calls = Calls(clock or SystemClock(), timeout_s=timeout_s, held=held)

    async def open(self) -> None:
        """Make the connection pool."""
        await self._calls.open()

    async def close(self) -> None:
        """Close the pool."""
        await self._calls.close()

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

        Only a failure to connect proves that the operator has nothing; after that a broken answer
        is uncertain, because the recipient may already be reading.

        Source: operator's facts 4 and 5.
        """
        answer = await self._calls.send(
            account,
            f"{app.phone_number_id}/messages",
            message_body(message, template, reply_to, copies),
            business=app.business_account_id,
        )
        match answer:
            case {"messages": [{"id": str(operator_id)}, *_]}:
                return Sent(as_name(operator_id), recipient=_recipient(answer))
            case {"error": error}:  # a template's name is taken: no answer to a message, but a refusal
                return name_is_taken(object_of(error))
            case dict():
                return Uncertain("the operator's answer has no message id")
            case _:
                return answer

    async def submit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        """Hand in a template for review; one that is there already is the one handed in before."""
        return await calls.submit(self._calls, account, template, copies)

    async def edit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        """Hand in a template anew, in place of what the operator has."""
        return await calls.edit(self._calls, account, template, copies)

    async def delete_template(self, account: OperatorAccount, template: Template) -> Outcome:
        """Delete one template; `Sent` also where the operator has none."""
        return await calls.delete(self._calls, account, template)

    async def call(self, account: OperatorAccount, request: OperatorCall[Response]) -> Response | Failure:
        """Make a direct call."""
        return await direct_calls.call(self._calls, account, request)

    async def upload_media(
        self, account: OperatorAccount, app: App, media: Media, path: Path
    ) -> Uploaded | Rejected | Unavailable:
        """Upload a file for sending from the app's number; safe to repeat."""
        return await media_calls.upload_media(self._calls, account, app.phone_number_id, media, path)

    async def upload_sample(
        self, account: OperatorAccount, media: Media, path: Path
    ) -> Uploaded | Rejected | Unavailable:
        """Upload a file as a template's sample; what is given back is a handle, line breaks and all."""
        return await media_calls.upload_sample(self._calls, account, media, path)

    def fetch_media(
        self, account: OperatorAccount, operator_media_id: str, *, phone_number_id: str | None = None
    ) -> AsyncIterator[bytes | Rejected | Unavailable]:
        """The bytes of what a recipient has sent, part by part; an outcome ends it when there are none."""
        return media_calls.fetch_media(self._calls, account, operator_media_id, phone_number_id)

    def usage(self, operator_account_id: str) -> Sequence[Usage]:
        """What was last seen of an operator account's limits."""
        return self._calls.usages.of(operator_account_id)

    def sample_owner(self, account: OperatorAccount) -> str:
        """The operator app: handles are its own."""
        return account["app_id"]

    def explain(self, code: int) -> Problem | None:
        """What is wrong where a direct call is refused with this code."""
        return explain(code)

    def handshake(self, account: OperatorAccount, challenge: str, *, is_right: bool) -> Mapping[str, str] | None:
        """The query of a webhook handshake, or of a wrong one."""
        return webhook.handshake(account, challenge, is_right=is_right)

    def answer_handshake(self, account: OperatorAccount, query: Mapping[str, str]) -> str | None:
        """The challenge of a correct webhook handshake."""
        return webhook.answer_handshake(account, query)

    def is_signed(self, account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the operator signed exactly these bytes."""
        return webhook.is_signed(account, headers, body)

    def split(self, account: OperatorAccount, body: bytes) -> Sequence[WebhookItem]:
        """The single items of a webhook body."""
        return webhook.split(account, body)

    def read(self, item: bytes) -> Event:
        """What one item says."""
        return webhook.read(item)


def _recipient(answer: Mapping[str, Any]) -> str | None:
    match answer:
        case {"contacts": [{"wa_id": str(number)}, *_]}:
            return as_name(number)
        case _:
            return None
