"""The Cloud API adapter, over HTTP."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from waypost.base.clock import Clock, SystemClock
from waypost.base.json_values import object_of
from waypost.domain.app import App, OperatorAccount
from waypost.domain.direct_calls import CallFailure, OperatorCall, Response
from waypost.domain.media import UploadedMedia
from waypost.domain.message import Message, Passthrough, TemplateSend
from waypost.domain.outcome import OperatorAccepted, OperatorRejected, OperatorUnavailable, Outcome, OutcomeUncertain
from waypost.domain.templates.template import Template
from waypost.operators.cloud import direct_calls, media_calls, templates, webhook
from waypost.operators.cloud.error_codes import explain, name_conflict
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.operators.cloud.messages import message_body
from waypost.operators.cloud.numbers import CLOUD_ACCOUNT_FIELDS
from waypost.operators.cloud.tolerant_json import parse_name
from waypost.operators.contract import AccountField, GraphClient, LimitUsage, OperatorUpload


class CloudOperator:
    """The adapter of every operator account at the Cloud API.

    Args:
        clock: the clock for the waits of an account near its limits.
        timeout_s: for a whole call; after it a message is uncertain.
        held: make no calls.
    """

    fields: ClassVar[Sequence[AccountField]] = CLOUD_ACCOUNT_FIELDS

    def __init__(self, clock: Clock | None = None, *, timeout_s: float = 30, held: bool = False) -> None:
        self._calls = CloudHttpClient(clock or SystemClock(), timeout_s=timeout_s, held=held)
        self.graph: GraphClient | None = self._calls

    async def open(self) -> None:
        await self._calls.open()

    async def close(self) -> None:
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
        """Send one message to the operator and return the outcome.

        Only a failure to connect proves that the operator has nothing. After that a broken response
        is uncertain, because the recipient may already have the message.

        A marketing message goes to the API for such messages, which without its terms sends it as any other.

        Source: operator's facts 4 and 5; the operator's page "Send Marketing Messages".
        """
        content = message.content
        is_marketing = isinstance(content, TemplateSend | Passthrough) and content.is_marketing
        response = await self._calls.send(
            account,
            f"{app.phone_number_id}/{'marketing_messages' if is_marketing else 'messages'}",
            message_body(message, template, reply_to, copies),
            business=app.business_account_id,
            request_id=message.request_id,
        )
        match response:
            case {"messages": [{"id": str(operator_id)}, *_], "contacts": [{"wa_id": str(number)}, *_]}:
                return OperatorAccepted(parse_name(operator_id), recipient=parse_name(number))
            case {"messages": [{"id": str(operator_id)}, *_]}:
                return OperatorAccepted(parse_name(operator_id))
            case {"error": error}:  # the template name already exists: not expected for a message, and rejected
                return name_conflict(object_of(error))
            case dict():
                return OutcomeUncertain("the operator's response has no message id")
            case _:
                return response

    async def submit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        return await templates.submit(self._calls, account, template, copies)

    async def edit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        return await templates.edit(self._calls, account, template, copies)

    async def delete_template(self, account: OperatorAccount, template: Template) -> Outcome:
        return await templates.delete(self._calls, account, template)

    async def call(self, account: OperatorAccount, request: OperatorCall[Response]) -> Response | CallFailure:
        return await direct_calls.call(self._calls, account, request)

    async def upload_media(
        self, account: OperatorAccount, app: App, media: UploadedMedia, path: Path
    ) -> OperatorUpload | OperatorRejected | OperatorUnavailable:
        return await media_calls.upload_media(self._calls, account, app.phone_number_id, media, path)

    async def upload_sample(
        self, account: OperatorAccount, media: UploadedMedia, path: Path
    ) -> OperatorUpload | OperatorRejected | OperatorUnavailable:
        return await media_calls.upload_sample(self._calls, account, media, path)

    def fetch_media(
        self, account: OperatorAccount, operator_media_id: str, *, phone_number_id: str | None = None
    ) -> AsyncIterator[bytes | OperatorRejected | OperatorUnavailable]:
        return media_calls.fetch_media(self._calls, account, operator_media_id, phone_number_id)

    def usage(self, operator_account_id: str) -> Sequence[LimitUsage]:
        return self._calls.usages.account_usages(operator_account_id)

    def sample_owner(self, account: OperatorAccount) -> str:
        return account["app_id"]

    explain = staticmethod(explain)
    handshake = staticmethod(webhook.handshake)
    verify_handshake = staticmethod(webhook.verify_handshake)
    is_signed = staticmethod(webhook.is_signed)
    split = staticmethod(webhook.split)
    read = staticmethod(webhook.read)
