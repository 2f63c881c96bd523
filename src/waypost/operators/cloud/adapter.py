"""The Cloud API over HTTP."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from waypost.domain.app import App, OperatorAccount
from waypost.domain.arrival import ArrivalItem
from waypost.domain.event import Event
from waypost.domain.media import Media
from waypost.domain.message import Message
from waypost.domain.outcome import INVALID_ANSWER, Outcome, Rejected, Sent, Unavailable, Uncertain
from waypost.domain.template import Template
from waypost.operators.cloud import asks, template_calls, uploads, webhook
from waypost.operators.cloud.codes import outcome_of
from waypost.operators.cloud.messages import message_body
from waypost.operators.contract import Question, Told, Uploaded

IDLE_S: Final = 2
"""How long an idle connection is kept: less than any server does, so that none is reused in the
moment the other side closes it."""

ALREADY_THERE: Final = 2388024  # Source: operator's facts 2.4

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class CloudOperator:
    """One adapter for every operator account that speaks the Cloud API.

    Args:
        timeout_s: for a whole call; after it a message is uncertain.
    """

    def __init__(self, *, timeout_s: float = 30) -> None:
        self._timeout = _timeout(timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make the connection pool."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=256, keepalive_timeout=IDLE_S),
            timeout=self._timeout,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()

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
        answer = await self._call(
            account,
            "POST",
            f"{app.phone_number_id}/messages",
            message_body(message, template, reply_to, copies),
        )
        match answer:
            case {"messages": [{"id": str(operator_id)}, *_]}:
                return Sent(operator_id, recipient=_recipient(answer))
            case dict():
                return _refused(answer) or Uncertain("the operator's answer has no message id")
            case _:
                return answer

    async def submit_template(
        self, account: OperatorAccount, template: Template, copies: Mapping[str, str]
    ) -> Outcome:
        """Hand in a template for review; one that is there already is the one handed in before."""
        return await template_calls.submit(self._call, account, template, copies)

    async def edit_template(
        self, account: OperatorAccount, template: Template, copies: Mapping[str, str]
    ) -> Outcome:
        """Hand in a template anew, in place of what the operator has."""
        return await template_calls.edit(self._call, account, template, copies)

    async def delete_template(self, account: OperatorAccount, template: Template) -> Outcome:
        """Delete one template; `Sent` also where the operator has none."""
        return await template_calls.delete(self._call, account, template)

    async def _call(
        self,
        account: OperatorAccount,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        query: dict[str, str] | None = None,
        *,
        form: aiohttp.FormData | None = None,
        within_s: float | None = None,
    ) -> dict[str, Any] | Outcome:
        if self._session is None:
            raise RuntimeError("the adapter is not open")
        headers = {"Authorization": f"Bearer {account.token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._session.request(
                method,
                f"{account.base_url}/{account.version}/{path}",
                data=form if body is None else _encode(body),
                params=query,
                headers=headers,
                allow_redirects=False,
                timeout=self._timeout if within_s is None else _timeout(within_s),
            ) as response:
                content = await response.read()
                status, wish_s = response.status, _wish_s(response.headers)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Unavailable(f"the operator was not reached: {error}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Uncertain(f"the operator's answer was lost: {error!r}")
        return _read_answer(status, content, wish_s)

    async def ask(
        self, account: OperatorAccount, question: Question
    ) -> Told | Rejected | Unavailable | Uncertain:
        """Make a direct call."""
        return await asks.ask(self._call, account, question)

    async def upload_media(
        self, account: OperatorAccount, app: App, media: Media, path: Path
    ) -> Uploaded | Rejected | Unavailable:
        """Upload a file for sending from the app's number; safe to repeat."""
        return await uploads.upload_media(self._pool, account, app.phone_number_id, media, path)

    async def upload_sample(
        self, account: OperatorAccount, media: Media, path: Path
    ) -> Uploaded | Rejected | Unavailable:
        """Upload a file as a template's sample; what is given back is a handle, line breaks and all."""
        return await uploads.upload_sample(self._pool, account, media, path)

    def fetch_media(
        self,
        account: OperatorAccount,
        operator_media_id: str,
        *,
        phone_number_id: str | None = None,
    ) -> AsyncIterator[bytes | Rejected | Unavailable]:
        """The bytes of what a recipient has sent, part by part; an outcome ends it when there are none."""
        return uploads.fetch_media(self._pool, account, operator_media_id, phone_number_id)

    @property
    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the adapter is not open")
        return self._session

    def answer_handshake(self, account: OperatorAccount, query: Mapping[str, str]) -> str | None:
        """The challenge of a correct webhook handshake."""
        return webhook.answer_handshake(account, query)

    def is_signed(self, account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the operator signed exactly these bytes."""
        return webhook.is_signed(account, headers, body)

    def split(self, account: OperatorAccount, body: bytes) -> Sequence[ArrivalItem]:
        """The single items of a webhook body."""
        return webhook.split(account, body)

    def read(self, item: bytes) -> Event:
        """What one item says."""
        return webhook.read(item)


def _timeout(total_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, connect=5)


def _read_answer(status: int, content: bytes, wish_s: float | None) -> dict[str, Any] | Outcome:
    """An answer's object; what is none, or tells of an error that cannot be read, is judged by its status.

    An error is handed on in one case: the name of a template is taken, which needs another look.
    """
    try:
        answer: Any = _decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        answer = None
    match answer:
        case {"error": {"error_subcode": subcode}} if subcode == ALREADY_THERE:
            return answer
        case {"error": {"code": int(code), **rest}}:
            return outcome_of(code, _told(rest), wish_s)
        case dict() if 200 <= status < 300 and "error" not in answer:
            return answer  # pyright: ignore[reportUnknownVariableType]
        case _ if status == 429:
            return Unavailable("the operator answered 429", 4, wish_s)
        case _ if 400 <= status < 500:
            return Rejected(INVALID_ANSWER, f"the operator answered {status} without a reason")
        case _:
            return Uncertain(f"the operator gave an unreadable answer with status {status}")


def _refused(answer: dict[str, Any]) -> Outcome | None:
    match answer:
        case {"error": {"code": int(code), **rest}}:
            return outcome_of(code, _told(rest), None)
        case _:
            return None


def _told(error: Mapping[Any, Any]) -> str:
    """What the partner is told: the most particular text there is. Source: operator's facts 5.1."""
    data = error.get("error_data")
    details = data.get("details") if isinstance(data, dict) else data  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    for text in (error.get("error_user_msg"), details, error.get("message")):  # pyright: ignore[reportUnknownVariableType]
        if isinstance(text, str) and text:
            return text
    return "refused without a reason"


def _recipient(answer: Mapping[str, Any]) -> str | None:
    match answer:
        case {"contacts": [{"wa_id": str(number)}, *_]}:
            return number
        case _:
            return None


def _wish_s(headers: Mapping[str, str]) -> float | None:
    """Seconds from `Retry-After`, where the operator gave a number."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isdecimal() and len(text) < 6 else None
