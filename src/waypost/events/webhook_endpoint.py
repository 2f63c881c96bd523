"""The operator's webhook: verify, store and apply, respond."""

import asyncio
from collections import Counter
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from waypost.base.http.connection_scope import mark_authenticated
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.domain.app import OperatorAccount
from waypost.domain.event import InboundWebhook, WebhookItem, unreadable_group, unreadable_item
from waypost.events.worker import EventIngester
from waypost.operators.contract import Operator
from waypost.queue.context import StageContext

MAX_WEBHOOK_BYTES = 8 * 1024 * 1024
"""Maximum size of one body; the operator's own limit is documented as 3 MB (operator's facts 7.1)."""

MAX_BYTES_SPLIT_IN_THE_LOOP: Final = 128 * 1024
"""A larger body is split in a thread: a damaged one takes up to 1.5 s for each MB."""


class WebhookEndpoint:
    """The endpoint `/operator/webhook/{operator_account}`; the plain path serves the first account."""

    def __init__(self, context: StageContext, ingester: EventIngester) -> None:
        self._context = context
        self._ingester = ingester
        self._log = ThrottledLog(log("webhook"))
        self.counts: Counter[str] = Counter()
        """Webhooks by result; `items` counts the items of those that were stored, also the unreadable ones."""

    async def handshake(self, request: Request) -> Response:
        """Respond to `GET` with the bare challenge, or with 403."""
        account = await self._account(request)
        query, is_our_check = dict(request.query_params), False
        if account is not None:
            adapter = self._context.operators.adapter(account)
            challenge = adapter.verify_handshake(account, query)
            if challenge:
                return PlainTextResponse(challenge)
            # `waypost doctor` checks that a wrong handshake is rejected.
            is_our_check = any(
                query == adapter.handshake(account, value, is_right=False) for value in set(query.values())
            )
        if not is_our_check:
            self._log.warning("a webhook handshake was rejected")
        return PlainTextResponse("wrong verify token or operator account", 403)

    async def receive(self, request: Request) -> Response:
        """Respond to `POST` with 200 once the raw body, and what its items change, are on disk.

        A wrong signature gets 401 and nothing is stored. What cannot be read of a correctly signed body is stored as
        it came, and is a dead letter.
        """
        if self._context.is_held:  # the operator stores it and posts it again, for days
            self.counts["held"] += 1
            return PlainTextResponse("the service is held", 503, {"Retry-After": "60"})
        account = await self._account(request)
        body = await _bounded_body(request)
        if body is None:
            self._log.warning("a webhook was rejected: it is too large", max_bytes=MAX_WEBHOOK_BYTES)
            self.counts["too large"] += 1
            return PlainTextResponse(f"at most {MAX_WEBHOOK_BYTES} bytes", 413)
        adapter = None if account is None else self._context.operators.adapter(account)
        if account is None or adapter is None or not adapter.is_signed(account, request.headers, body):
            self._log.warning("a webhook with a wrong signature was rejected", size_bytes=len(body))
            self.counts["wrong signature"] += 1
            return PlainTextResponse("wrong signature", 401)
        mark_authenticated(request.scope)
        if len(body) > MAX_BYTES_SPLIT_IN_THE_LOOP:
            items = await asyncio.to_thread(self._split, adapter, account, body)
        else:
            items = self._split(adapter, account, body)
        webhook = InboundWebhook(self._context.ids.new(), account.id, self._context.clock.now_ms(), body, items)
        await self._ingester.receive(account, webhook)
        self.counts["stored"] += 1
        self.counts["items"] += len(items)
        for item in items:
            if item.defect is not None:
                self.counts["unreadable items"] += 1
                self._log.warning(
                    "a part of a webhook could not be read; it is a dead letter",
                    operator_account=account.id,
                    webhook=webhook.id,
                    path=item.path,
                    reason=item.defect,
                    size_bytes=len(item.payload),
                )
        return Response(status_code=200)

    def _split(self, adapter: Operator, account: OperatorAccount, body: bytes) -> tuple[WebhookItem, ...]:
        """Return the items of a body; one that our own code fails on is an item that cannot be read."""
        try:
            return tuple(adapter.split(account, body))
        except Exception as error:  # noqa: BLE001  a defect must not make the operator post it until it gives up
            self._log.warning("a webhook could not be split", operator_account=account.id, exc_info=error)
            defect = f"a defect: {type(error).__name__}"
            return (unreadable_item(unreadable_group(account.id), "body", body, defect),)

    async def _account(self, request: Request) -> OperatorAccount | None:
        account_id = request.path_params.get("operator_account")
        if account_id is None:
            account_id = await self._context.directory.first_operator_account_id()
        return None if account_id is None else await self._context.directory.operator_account(account_id)


async def _bounded_body(request: Request) -> bytes | None:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_WEBHOOK_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)
