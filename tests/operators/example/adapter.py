"""The adapter of the example operator: a small operator whose API has another shape than the Cloud API's.

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
from waypost.domain.event import Event, InboundEvent, ReviewEvent, StatusEvent, UnknownEvent
from waypost.domain.inbound_webhook import WebhookItem
from waypost.domain.media import UploadedMedia
from waypost.domain.message import Message, MessageState, Passthrough, TemplateSend
from waypost.domain.outcome import Outcome, Rejected, RetryReason, RetryScope, Sent, Unavailable, Uncertain
from waypost.domain.session_messages.content import SendContext
from waypost.domain.templates.template import Template
from waypost.operators.contract import AccountField, LimitUsage, OperatorUpload

CODES: Final = {"parameters": 132000, "window": 131047, "template": 100, "not-found": 100}
"""The partner's error code of each of this operator's problems."""
_Answer = dict[str, Any] | Rejected | Unavailable | Uncertain


def _is_visible(value: str) -> bool:
    return value.isascii() and value.isprintable() and bool(value) and " " not in value


class ExampleOperator:
    """Its key in a header of its own, flat bodies, and one endpoint for all that becomes of a template."""

    fields: ClassVar[Sequence[AccountField]] = (
        AccountField("key", "Opens the operator's API.", _is_visible, "visible ASCII characters", is_secret=True),
        AccountField(
            "seal", "Seals its webhooks.", _is_visible, "visible ASCII characters", is_secret=True, is_generated=True
        ),
    )

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, connect=5)
        self._http: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        self._http = aiohttp.ClientSession(timeout=self._timeout)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _exchange(self, account: OperatorAccount, method: str, path: str, **more: Any) -> _Answer:
        """Only a failure to connect proves that the operator has nothing; a broken answer proves nothing."""
        assert self._http is not None
        url, headers = f"{account.base_url}/v1/{path}", {"X-Example-Key": account["key"]}
        try:
            async with self._http.request(method, url, headers=headers, **more) as response:
                status, content = response.status, await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Unavailable(f"the operator was not reached: {error}", retry_reason=RetryReason.NOT_REACHED)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Uncertain(f"the operator's answer was lost: {error}")
        try:
            answer = msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return Uncertain(f"the operator gave an unreadable answer with status {status}")
        match answer:
            case {"problem": "key"}:
                return Unavailable(
                    "our key is not accepted", retry_reason=RetryReason.CREDENTIAL, retry_scope=RetryScope.ACCOUNT
                )
            case {"problem": "busy"}:
                return Unavailable(
                    "the operator is busy", retry_reason=RetryReason.THROUGHPUT, retry_scope=RetryScope.SOURCE
                )
            case {"problem": str(problem), "detail": str(detail)} if 400 <= status < 500:
                return Rejected(CODES.get(problem, 135000), detail)
            case _:
                return answer if status == 200 else Uncertain(f"the operator answered {status}")

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
                return Rejected(132001, "the template is not there any more")
            case Passthrough(type=kind, body=body):
                sent |= {"kind": kind, "content": body}
            case content:
                kind, body = content.operator_body(SendContext(message.id, reply_to, copies))
                sent |= {"kind": kind, "content": body}
        if reply_to is not None:
            sent["answers"] = reply_to
        match await self._exchange(account, "POST", "messages", json=sent):
            case {"message": str(message_id), "to": str(recipient)}:
                return Sent(message_id, recipient=recipient)
            case dict():
                return Uncertain("the operator's answer has no message")
            case outcome:
                return outcome

    async def submit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        draft = template.draft
        sheet = {
            "name": draft.element_name,
            "language": draft.language_code,
            "text": draft.content,
            "footer": draft.footer,
            "picture": copies.get(draft.example_media or "", draft.example_media),
        }
        match await self._exchange(account, "PUT", f"templates/{template.business_account_id}", json=sheet):
            case {"template": str(template_id)}:
                return Sent(template_id)
            case Rejected() as refused:
                return refused
            case answer:
                return _again(answer)

    async def edit_template(self, account: OperatorAccount, template: Template, copies: Mapping[str, str]) -> Outcome:
        return await self.submit_template(account, template, copies)  # by name and language, as often as one likes

    async def delete_template(self, account: OperatorAccount, template: Template) -> Outcome:
        template_id = template.operator_template_id or ""
        match await self._exchange(account, "DELETE", f"templates/{template_id}"):
            case {"done": True} | Rejected():  # it refuses only what it has not
                return Sent(template_id)
            case answer:
                return _again(answer)

    async def upload_media(
        self, account: OperatorAccount, app: App, media: UploadedMedia, path: Path
    ) -> OperatorUpload | Rejected | Unavailable:
        return await self.upload_sample(account, media, path)

    async def upload_sample(
        self, account: OperatorAccount, media: UploadedMedia, path: Path
    ) -> OperatorUpload | Rejected | Unavailable:
        with path.open("rb") as file:
            answer = await self._exchange(
                account, "POST", "media", data=file, params={"type": media.mime_type, "name": media.file_name}
            )
        match answer:
            case {"medium": str(medium_id)}:
                return OperatorUpload(medium_id, 30 * DAY_MS)
            case Rejected() as refused:
                return refused
            case _:
                return _again(answer)

    async def fetch_media(
        self, account: OperatorAccount, operator_media_id: str, *, phone_number_id: str | None = None
    ) -> AsyncIterator[bytes | Rejected | Unavailable]:
        assert self._http is not None
        url = f"{account.base_url}/v1/media/{operator_media_id}"
        try:
            async with self._http.get(url, headers={"X-Example-Key": account["key"]}) as response:
                if response.status != 200:
                    yield Rejected(100, "the operator does not have it")
                    return
                async for part in response.content.iter_any():
                    yield part
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            yield Unavailable(f"the bytes broke off: {error}")

    async def call(self, account: OperatorAccount, request: OperatorCall[Response]) -> Response | CallFailure:
        row = CALLS.get(type(request))
        if row is None:
            return unsupported_call(request)
        body = None if row.body is None else row.body(request, account)
        answer = await self._exchange(account, row.method, row.path(request), json=body)
        return row.read(answer, account) if isinstance(answer, dict) else answer

    def usage(self, operator_account_id: str) -> Sequence[LimitUsage]:
        return ()  # it tells nothing of limits

    def sample_owner(self, account: OperatorAccount) -> str:
        return ""  # media belong to the account itself

    def explain(self, code: int) -> OperatorProblem | None:
        return None

    def handshake(self, account: OperatorAccount, challenge: str, *, is_right: bool) -> Mapping[str, str] | None:
        return {"echo": challenge, "proof": _proof(account["seal"] if is_right else challenge, challenge.encode())}

    def verify_handshake(self, account: OperatorAccount, query: Mapping[str, str]) -> str | None:
        echo, proof = query.get("echo", ""), query.get("proof", "")
        return echo if hmac.compare_digest(_proof(account["seal"], echo.encode()).encode(), proof.encode()) else None

    def is_signed(self, account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
        given = headers.get("x-example-seal", "")
        return hmac.compare_digest(_proof(account["seal"], body).encode(), given.encode())

    def split(self, account: OperatorAccount, body: bytes) -> Sequence[WebhookItem]:
        try:
            events = msgspec.json.decode(body, type=list[dict[str, Any]])
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            events = [{"event": "unreadable", "id": hashlib.sha256(body).hexdigest()}]
        return [
            WebhookItem(
                dedupe_key=str(one.get("id")),
                concurrency_group=str(one.get("line") or account.id),
                ordering_key=f"{one.get('line')} {one.get('phone')}",
                path=str(nth),
                payload=msgspec.json.encode(one),
            )
            for nth, one in enumerate(events)
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
            } as given:
                content = given.get("content")
                return InboundEvent(
                    str(given.get("kind")), operator_id, line, phone, None, str(given.get("name")), at, content=content
                )
            case {
                "event": "template",
                "account": str(account),
                "template": str(id),
                "state": str(state),
                "at": int(at),
            } as given:
                name, language = str(given.get("name")), str(given.get("language"))
                return ReviewEvent(account, id, name, language, state.upper(), given.get("reason"), at_s=at)
            case {"event": kind}:
                return UnknownEvent(str(kind))
            case _:
                return UnknownEvent("no event")


def _proof(seal: str, content: bytes) -> str:
    return hmac.new(seal.encode(), content, hashlib.sha256).hexdigest()


def _again(answer: _Answer) -> Unavailable:
    """What is safe to repeat is repeated, whatever was lost."""
    return answer if isinstance(answer, Unavailable) else Unavailable("the operator's answer was lost")


def _done(_answer: dict[str, Any], _account: OperatorAccount) -> CallResult:
    return CallResult()


@dataclass(frozen=True, slots=True)
class _Call:
    """One direct call: its request, and the response that its answer is."""

    method: str
    path: Callable[[Any], str]
    read: Callable[[dict[str, Any], OperatorAccount], Any] = _done
    body: Callable[[Any, OperatorAccount], dict[str, Any]] | None = None


def _template(given: dict[str, Any]) -> OperatorTemplate:
    status = given["state"].upper()
    return OperatorTemplate(
        given["id"], given["name"], given["language"], status, body=given["text"], footer=given["footer"]
    )


def _subscription(answer: dict[str, Any], account: OperatorAccount) -> WebhookSubscription:
    url = answer["url"]
    return WebhookSubscription(account.id, bool(url), urls={"": url} if url else {})


def _number(given: dict[str, Any]) -> OperatorNumber:
    return OperatorNumber(given["line"], given["number"], 1000, "a thousand messages a second", raw=given)


# fmt: off
CALLS: Final[dict[type[OperatorCall[Any]], _Call]] = {  # those that this operator has; all others are not offered
    GetNumber:          _Call("GET",    lambda one: f"lines/{one.number_id}",   lambda answer, _: NumberStatus(answer["state"] == "open", answer["state"])),
    ListNumbers:        _Call("GET",    lambda one: "lines",                    lambda answer, _: [_number(each) for each in answer["lines"]]),
    GetBusinessAccount: _Call("GET",    lambda one: "me",                       lambda answer, _: OperatorBusiness(answer["name"], answer["space"])),
    GetBusinessStatus:  _Call("GET",    lambda one: "me",                       lambda answer, _: BusinessStatus("ACTIVE")),
    GetSubscription:    _Call("GET",    lambda one: "hook",                     _subscription),
    Subscribe:          _Call("PUT",    lambda one: "hook",                     body=lambda one, account: {"url": one.url, "seal": account["seal"]}),
    Unsubscribe:        _Call("DELETE", lambda one: "hook"),
    ListTemplates:      _Call("GET",    lambda one: f"templates/{one.business_account_id}?name={one.name or ''}", lambda answer, _: [_template(each) for each in answer["templates"]]),
    GetTemplate:        _Call("GET",    lambda one: f"template/{one.template_id}", lambda answer, _: _template(answer)),
    MarkRead:           _Call("POST",   lambda one: f"messages/{one.message_id}/read"),
    DeleteMedium:       _Call("DELETE", lambda one: f"media/{one.medium_id}"),
}
# fmt: on
