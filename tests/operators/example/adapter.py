"""The adapter of the example operator: a small operator whose API is unlike the Cloud API.

It shows what an adapter needs, and nothing more; `docs/contributing/add-an-operator-adapter.md` refers to it.
"""

import hashlib
import hmac
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import aiohttp
import msgspec

from waypost.base.clock import DAY_MS
from waypost.domain.app import App, OperatorAccount
from waypost.domain.direct_calls import (
    BusinessStatus,
    CallFailure,
    CallResult,
    DeleteMedium,
    GetBusinessAccount,
    GetBusinessStatus,
    GetNumber,
    GetSubscription,
    GetTemplate,
    ListNumbers,
    ListTemplates,
    MarkRead,
    NumberStatus,
    OperatorBusiness,
    OperatorCall,
    OperatorNumber,
    OperatorProblem,
    OperatorTemplate,
    Response,
    Subscribe,
    Unsubscribe,
    WebhookSubscription,
    unsupported_call,
)
from waypost.domain.event import (
    Event,
    InboundEvent,
    ReviewEvent,
    StatusEvent,
    UnknownEvent,
    WebhookItem,
    unreadable_group,
    unreadable_item,
)
from waypost.domain.media import UploadedMedia
from waypost.domain.message import Message, MessageState, Passthrough, TemplateSend
from waypost.domain.outcome import (
    OperatorAccepted,
    OperatorRejected,
    OperatorUnavailable,
    Outcome,
    OutcomeUncertain,
    RetryReason,
    RetryScope,
)
from waypost.domain.session_messages.content import SendContext
from waypost.domain.templates.template import Template
from waypost.operators.contract import AccountField, LimitUsage, OperatorUpload

CODES: Final = {"parameters": 132000, "window": 131047, "template": 100, "not-found": 100}
"""The partner's error code for each of this operator's problems."""
_ExchangeResult = dict[str, Any] | OperatorRejected | OperatorUnavailable | OutcomeUncertain


def _is_visible(value: str) -> bool:
    return value.isascii() and value.isprintable() and bool(value) and " " not in value


class ExampleOperator:
    """An adapter for an API with a key in its own header, flat bodies, and one endpoint for templates."""

    fields: ClassVar[Sequence[AccountField]] = (
        AccountField("key", "Opens the operator's API.", _is_visible, "visible ASCII characters", is_secret=True),
        AccountField(
            "seal", "Seals its webhooks.", _is_visible, "visible ASCII characters", is_secret=True, is_generated=True
        ),
    )

    graph = None

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, connect=5)
        self._http: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        self._http = aiohttp.ClientSession(timeout=self._timeout)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _exchange(self, account: OperatorAccount, method: str, path: str, **more: Any) -> _ExchangeResult:
        """Make an HTTP call; return the decoded body, or an outcome.

        Only a failure to connect proves that the operator received nothing; a broken response proves nothing.
        """
        assert self._http is not None
        url, headers = f"{account.base_url}/v1/{path}", {"X-Example-Key": account["key"]}
        try:
            async with self._http.request(method, url, headers=headers, **more) as response:
                status, content = response.status, await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return OperatorUnavailable(f"the operator was not reached: {error}", retry_reason=RetryReason.NOT_REACHED)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return OutcomeUncertain(f"the operator's response was lost: {error}")
        try:
            decoded = msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return OutcomeUncertain(f"the operator sent an unreadable response with status {status}")
        match decoded:
            case {"problem": "key"}:
                return OperatorUnavailable(
                    "our key is not accepted", retry_reason=RetryReason.CREDENTIAL, retry_scope=RetryScope.ACCOUNT
                )
            case {"problem": "busy"}:
                return OperatorUnavailable(
                    "the operator is busy", retry_reason=RetryReason.THROUGHPUT, retry_scope=RetryScope.SOURCE
                )
            case {"problem": str(problem), "detail": str(detail)} if 400 <= status < 500:
                return OperatorRejected(CODES.get(problem, 135000), detail)
            case _:
                return decoded if status == 200 else OutcomeUncertain(f"the operator responded {status}")

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
        sent: dict[str, Any] = {"line": app.phone_number_id, "to": message.destination, "ref": message.id}
        match message.content:
            case TemplateSend(params=params) if template is not None:
                names = {"name": template.draft.element_name, "language": template.draft.language_code}
                sent |= {"template": names, "values": params}
            case TemplateSend():
                return OperatorRejected(132001, "the template no longer exists")
            case Passthrough(type=kind, body=body):
                sent |= {"kind": kind, "content": body}
            case content:
                kind, body = content.operator_body(SendContext(message.id, reply_to, copies))
                sent |= {"kind": kind, "content": body}
        if reply_to is not None:
            sent["answers"] = reply_to
        match await self._exchange(account, "POST", "messages", json=sent):
            case {"message": str(message_id), "to": str(recipient)}:
                return OperatorAccepted(message_id, recipient=recipient)
            case dict():
                return OutcomeUncertain("the operator's response has no message")
            case outcome:
                return outcome

    async def submit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        draft = template.draft
        body = {
            "name": draft.element_name,
            "language": draft.language_code,
            "text": draft.content,
            "footer": draft.footer,
            "picture": copies.get(draft.example_media or "", draft.example_media),
        }
        match await self._exchange(account, "PUT", f"templates/{template.business_account_id}", json=body):
            case {"template": str(template_id)}:
                return OperatorAccepted(template_id)
            case OperatorRejected() as rejected:
                return rejected
            case response:
                return _make_retryable(response)

    async def edit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        return await self.submit_template(account, template, copies)  # by name and language; may be repeated

    async def delete_template(self, account: OperatorAccount, template: Template) -> Outcome:
        template_id = template.operator_template_id or ""
        match await self._exchange(account, "DELETE", f"templates/{template_id}"):
            case {"done": True} | OperatorRejected():  # it rejects only templates that it does not have
                return OperatorAccepted(template_id)
            case response:
                return _make_retryable(response)

    async def upload_media(
        self, account: OperatorAccount, app: App, media: UploadedMedia, path: Path
    ) -> OperatorUpload | OperatorRejected | OperatorUnavailable:
        return await self.upload_sample(account, media, path)

    async def upload_sample(
        self, account: OperatorAccount, media: UploadedMedia, path: Path
    ) -> OperatorUpload | OperatorRejected | OperatorUnavailable:
        with path.open("rb") as file:
            response = await self._exchange(
                account, "POST", "media", data=file, params={"type": media.mime_type, "name": media.file_name}
            )
        match response:
            case {"medium": str(medium_id)}:
                return OperatorUpload(medium_id, 30 * DAY_MS)
            case OperatorRejected() as rejected:
                return rejected
            case _:
                return _make_retryable(response)

    async def fetch_media(
        self, account: OperatorAccount, operator_media_id: str, *, phone_number_id: str | None = None
    ) -> AsyncIterator[bytes | OperatorRejected | OperatorUnavailable]:
        assert self._http is not None
        url = f"{account.base_url}/v1/media/{operator_media_id}"
        try:
            async with self._http.get(url, headers={"X-Example-Key": account["key"]}) as response:
                if response.status != 200:
                    yield OperatorRejected(100, "the operator does not have it")
                    return
                async for part in response.content.iter_any():
                    yield part
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            yield OperatorUnavailable(f"the download was interrupted: {error}")

    async def call(self, account: OperatorAccount, request: OperatorCall[Response]) -> Response | CallFailure:
        call = CALLS.get(type(request))
        if call is None:
            return unsupported_call(request)
        body = None if call.body is None else call.body(request, account)
        response = await self._exchange(account, call.method, call.path(request), json=body)
        return call.read(response, account) if isinstance(response, dict) else response

    def usage(self, operator_account_id: str) -> Sequence[LimitUsage]:
        return ()  # it reports no limits

    def sample_owner(self, account: OperatorAccount) -> str:
        return ""  # media belong to the account

    def explain(self, code: int) -> OperatorProblem | None:
        return None

    def handshake(self, account: OperatorAccount, challenge: str, *, is_right: bool) -> Mapping[str, str] | None:
        return {"echo": challenge, "proof": _proof(account["seal"] if is_right else challenge, challenge.encode())}

    def verify_handshake(self, account: OperatorAccount, query: Mapping[str, str]) -> str | None:
        echo, proof = query.get("echo", ""), query.get("proof", "")
        return echo if hmac.compare_digest(_proof(account["seal"], echo.encode()).encode(), proof.encode()) else None

    def is_signed(self, account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
        signature = headers.get("x-example-seal", "")
        return hmac.compare_digest(_proof(account["seal"], body).encode(), signature.encode())

    def split(self, account: OperatorAccount, body: bytes) -> Sequence[WebhookItem]:
        try:
            events = msgspec.json.decode(body, type=list[dict[str, Any]])
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return [unreadable_item(unreadable_group(account.id), "body", body, "it is not a list of objects")]
        return [
            WebhookItem(
                dedupe_key=str(event.get("id")),
                concurrency_group=str(event.get("line") or account.id),
                ordering_key=f"{event.get('line')} {event.get('phone')}",
                path=str(index),
                payload=msgspec.json.encode(event),
            )
            for index, event in enumerate(events)
        ]

    def read(self, item: bytes) -> Event:
        match msgspec.json.decode(item):
            case {
                "event": "status",
                "message": str(operator_id),
                "ref": str(ref),
                "phone": str(phone),
                "state": state,
                "at": int(at),
            }:
                return StatusEvent(MessageState(state), operator_id, ref, phone, at)
            case {
                "event": "message",
                "message": str(operator_id),
                "line": str(line),
                "phone": str(phone),
                "at": int(at),
            } as event:
                content = event.get("content")
                return InboundEvent(
                    str(event.get("kind")), operator_id, line, phone, None, str(event.get("name")), at, content=content
                )
            case {
                "event": "template",
                "account": str(account),
                "template": str(id),
                "state": str(state),
                "at": int(at),
            } as event:
                name, language = str(event.get("name")), str(event.get("language"))
                return ReviewEvent(account, id, name, language, state.upper(), event.get("reason"), at_s=at)
            case {"event": kind}:
                return UnknownEvent(str(kind))
            case _:
                return UnknownEvent("no event")


def _proof(seal: str, content: bytes) -> str:
    return hmac.new(seal.encode(), content, hashlib.sha256).hexdigest()


def _make_retryable(response: _ExchangeResult) -> OperatorUnavailable:
    """Return an outcome with which a call that is safe to repeat is retried."""
    return (
        response
        if isinstance(response, OperatorUnavailable)
        else OperatorUnavailable("the operator's response was lost")
    )


def _empty_result(_response: dict[str, Any], _account: OperatorAccount) -> CallResult:
    return CallResult()


@dataclass(frozen=True, slots=True)
class _Call:
    """One direct call: its request, and how its response is read."""

    method: str
    path: Callable[[Any], str]
    read: Callable[[dict[str, Any], OperatorAccount], Any] = _empty_result
    body: Callable[[Any, OperatorAccount], dict[str, Any]] | None = None


def _template(record: dict[str, Any]) -> OperatorTemplate:
    status = record["state"].upper()
    return OperatorTemplate(
        record["id"], record["name"], record["language"], status, body=record["text"], footer=record["footer"]
    )


def _subscription(response: dict[str, Any], account: OperatorAccount) -> WebhookSubscription:
    url = response["url"]
    return WebhookSubscription(account.id, bool(url), urls={"": url} if url else {})


def _number(record: dict[str, Any]) -> OperatorNumber:
    return OperatorNumber(record["line"], record["number"], 1000, "a thousand messages a second", raw=record)


# fmt: off
CALLS: Final[dict[type[OperatorCall[Any]], _Call]] = {  # the calls of this operator; all others are not offered
    GetNumber:          _Call("GET",    lambda call: f"lines/{call.number_id}",                                      lambda content, _: NumberStatus(content["state"] == "open", content["state"])),
    ListNumbers:        _Call("GET",    lambda call: "lines",                                                        lambda content, _: [_number(each) for each in content["lines"]]),
    GetBusinessAccount: _Call("GET",    lambda call: "me",                                                           lambda content, _: OperatorBusiness(content["name"], content["space"])),
    GetBusinessStatus:  _Call("GET",    lambda call: "me",                                                           lambda content, _: BusinessStatus("ACTIVE")),
    GetSubscription:    _Call("GET",    lambda call: "hook",                                                         _subscription),
    Subscribe:          _Call("PUT",    lambda call: "hook",                                                         body=lambda call, account: {"url": call.url, "seal": account["seal"]}),
    Unsubscribe:        _Call("DELETE", lambda call: "hook"),
    ListTemplates:      _Call("GET",    lambda call: f"templates/{call.business_account_id}?name={call.name or ''}", lambda content, _: [_template(each) for each in content["templates"]]),
    GetTemplate:        _Call("GET",    lambda call: f"template/{call.template_id}",                                 lambda content, _: _template(content)),
    MarkRead:           _Call("POST",   lambda call: f"messages/{call.message_id}/read"),
    DeleteMedium:       _Call("DELETE", lambda call: f"media/{call.medium_id}"),
}
# fmt: on
