"""The HTTP client of the Cloud API: one pool, one way to authenticate, one way to read a response."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

import msgspec
from multidict import CIMultiDict
from yarl import URL

from waypost.base.clock import Clock
from waypost.base.error_texts import error_text
from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.connections import HttpResponse, NotConnected
from waypost.base.http.http_client import HttpClient
from waypost.base.http.post_client import PostClient
from waypost.base.http.request_bodies import FormPart, RequestBody, form_body
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import CallFailure
from waypost.domain.outcome import NotAccepted, OperatorUnavailable, OutcomeUncertain, RetryReason, RetryScope
from waypost.operators.cloud.error_codes import reject_conflict
from waypost.operators.cloud.rate_usage import CallCategory, LimitUsageTracker
from waypost.operators.cloud.responses import parse_retry_after_s, read_operator_response
from waypost.operators.contract import GraphRequest

_NO_URL: Final = "the operator cannot be called: base_url of its account is not an http or https URL"

CONNECT_S: Final = 5
"""For a connection: a free slot in the pool, the DNS lookup, TCP and TLS."""
IDLE_S: Final = 2
"""An idle connection is closed after this time: earlier than servers do, so that none is reused
while the other side closes it."""
OPERATOR_CONNECTIONS_PER_HOST: Final = 256
"""Maximum number of connections to one address, for all calls but messages."""
SEND_CONNECTIONS_PER_HOST: Final = 1024
"""The same for messages: as many as `in_flight` may be, so that slow calls of one account block no other's."""
MAX_SEND_RESPONSE_BYTES: Final = 64 * 1024
"""Of the response to a message, which has less than 1 KiB; of a longer one no more is read."""

MAX_CALL_RESPONSE_BYTES: Final = 4 * 1024 * 1024
"""Of the response to any other call; a longer one is an error. Lists are read in pages of a hundred."""

_MAX_PAGES: Final = 60  # of 100 items: as many templates as an account may have. Source: operator's facts 2.3
OPERATOR_CALL_TIMEOUT_S: Final = 10
"""Of each request of a direct call. Source: decision 0026."""

_encode_body: Final = msgspec.json.Encoder().encode

OPERATOR_HELD_ERROR: Final = "the service is held: it calls no operator"


class CloudHttpClient:
    """The connection pool of the Cloud API, and calls through it; it is the adapter's Graph API too.

    Args:
        clock: the clock for the waits of accounts near their limits.
        timeout_s: for a whole call that sets none of its own.
        held: make no calls.
    """

    marketing_terms: ClassVar = "https://business.facebook.com/latest/whatsapp_manager/overview"
    """WhatsApp Manager. Source: the operator's page "Onboard"."""

    def __init__(self, clock: Clock, *, timeout_s: float, held: bool = False) -> None:
        self._held = held
        self.usages = LimitUsageTracker(clock)
        self._timeout_s = timeout_s
        self._post_client = PostClient(
            ConnectionPools(max_per_address=SEND_CONNECTIONS_PER_HOST, idle_s=IDLE_S, connect_s=CONNECT_S),
            max_body_bytes=MAX_SEND_RESPONSE_BYTES,
        )
        self._client = HttpClient(
            ConnectionPools(max_per_address=OPERATOR_CONNECTIONS_PER_HOST, idle_s=IDLE_S, connect_s=CONNECT_S),
            max_body_bytes=MAX_CALL_RESPONSE_BYTES,
        )
        self._is_open = False

    async def open(self) -> None:
        """Allow calls."""
        self._is_open = True

    async def close(self) -> None:
        """Close the pools."""
        self._is_open = False
        await self._post_client.close()
        await self._client.close()

    @property
    def client(self) -> HttpClient:
        """The client of all calls but messages.

        Raises:
            NotConnected: no calls are made.
        """
        if not self._is_open:
            raise RuntimeError("the adapter is not open")
        if self._held:
            raise NotConnected(OPERATOR_HELD_ERROR)
        return self._client

    async def request(self, account: OperatorAccount, request: GraphRequest) -> dict[str, Any] | CallFailure:
        """Make one request of the Graph API; return the object of its response."""
        return reject_conflict(await self(account, request, timeout_s=OPERATOR_CALL_TIMEOUT_S))

    async def list_all(self, account: OperatorAccount, request: GraphRequest, name: str) -> list[Any] | CallFailure:
        """Return the items of all pages; `name` is what the text of a failure calls them."""
        items: list[Any] = []
        async for page in self.list_pages(account, request, name, timeout_s=OPERATOR_CALL_TIMEOUT_S):
            if not isinstance(page, list):
                return page
            items += page
        return items

    async def list_pages(
        self, account: OperatorAccount, request: GraphRequest, name: str, *, timeout_s: float | None = None
    ) -> AsyncIterator[list[Any] | NotAccepted]:
        """Yield the items of each page; an outcome comes last if the list is not complete.

        A list that is cut short or cannot be read proves nothing about missing items: `OperatorUnavailable`.

        Args:
            name: of the items, for the text of an outcome.
            timeout_s: for each page.
        """
        query = {**(request.query or {}), "limit": "100"}
        for _ in range(_MAX_PAGES):
            response = reject_conflict(await self(account, request._replace(query=query), timeout_s=timeout_s))
            match response:
                case {"data": [*page]}:
                    yield page
                case dict():
                    yield OperatorUnavailable(f"the operator's response has no list of {name}")
                    return
                case _:
                    yield response
                    return
            match response:
                case {"paging": {"next": str(), "cursors": {"after": str(after)}}}:
                    query = {**query, "after": after}
                case {"paging": {"next": str()}}:
                    break
                case _:
                    return
        yield OperatorUnavailable(f"the operator's list of {name} has no end")

    def __call__(
        self, account: OperatorAccount, request: GraphRequest, *, timeout_s: float | None = None
    ) -> Awaitable[dict[str, Any] | NotAccepted]:
        """Make one call; return the response's object, or the outcome of an error.

        Args:
            timeout_s: for the whole call.
        """
        content_type, content = "application/json", None
        if request.files is not None:
            content_type, content = form_body(_form_parts(request))
        elif request.body is not None:
            content = _encode_body(request.body)
        return self.exchange(
            account,
            request.method,
            f"{account.base_url}/{account['version']}/{request.path}",
            body=content,
            headers={} if content is None else {"Content-Type": content_type},
            query=request.query,
            timeout_s=timeout_s,
            category=CallCategory.MESSAGES if request.is_message else CallCategory.MANAGEMENT,
            business=request.business,
        )

    def send(
        self, account: OperatorAccount, path: str, body: dict[str, Any], *, business: str, request_id: str = ""
    ) -> Awaitable[dict[str, Any] | NotAccepted]:
        """Send one message, over a pool of its own: the only call that is made many times a second.

        Args:
            path: below the version.
            business: the business account whose limits it counts toward.
            request_id: sent in the header `X-Request-Id`; empty: the header is left out.
        """
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {account['token']}"}
        if request_id:
            headers["X-Request-Id"] = request_id
        url = f"{account.base_url}/{account['version']}/{path}"
        request = partial(self._post_client.post, url, _encode_body(body), headers, timeout_s=self._timeout_s)
        return self._exchange(account, request, CallCategory.MESSAGES, business)

    def exchange(
        self,
        account: OperatorAccount,
        method: str,
        url: str | URL,
        *,
        body: RequestBody = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        read_timeout_s: float | None = None,
        category: CallCategory = CallCategory.MANAGEMENT,
        business: str = "",
        scheme: str = "Bearer",
    ) -> Awaitable[dict[str, Any] | NotAccepted]:
        """Make one call to a full URL.

        Only a failure to connect proves that the operator has nothing. After that a broken response
        is uncertain. A call that would exceed the account's limits is not made.
        """

        def request() -> Awaitable[HttpResponse]:
            return self.client.request(
                method,
                URL(url).extend_query(query) if query else url,
                {"Authorization": f"{scheme} {account['token']}", **(headers or {})},
                body,
                timeout_s=self._timeout_s if timeout_s is None else timeout_s,
                read_timeout_s=read_timeout_s,
            )

        return self._exchange(account, request, category, business)

    async def _exchange(
        self,
        account: OperatorAccount,
        request: Callable[[], Awaitable[HttpResponse]],
        category: CallCategory,
        business: str,
    ) -> dict[str, Any] | NotAccepted:
        """Make one call if it may be made now; return its object or outcome, and record its limit usage."""
        if self._held:
            return OperatorUnavailable(OPERATOR_HELD_ERROR, retry_reason=RetryReason.NOT_REACHED)
        wait = self.usages.required_wait(account, category, business)
        if wait is not None:
            return wait
        try:
            response = await request()
        except NotConnected as error:
            return OperatorUnavailable(f"the operator was not reached: {error}", retry_reason=RetryReason.NOT_REACHED)
        except ValueError:
            return OperatorUnavailable(_NO_URL, retry_reason=RetryReason.NOT_REACHED)
        except OSError as error:  # of a file that is sent, too
            return OutcomeUncertain(f"the operator's response was lost: {error_text(error)}")
        headers = CIMultiDict(response.headers)
        self.usages.record_headers(account, headers)
        content = (response.status, response.body, parse_retry_after_s(headers))
        if len(response.body) <= MAX_SEND_RESPONSE_BYTES:
            outcome = read_operator_response(*content)
        else:  # its repair may take seconds, if it is as damaged as can be
            outcome = await asyncio.to_thread(read_operator_response, *content)
        match outcome:
            case OperatorUnavailable(retry_scope=RetryScope.ACCOUNT, retry_after_s=float(wait_s)):
                self.usages.pause_calls(account, category, wait_s)
            case OperatorUnavailable(retry_scope=RetryScope.BUSINESS, retry_after_s=float(wait_s)):
                self.usages.pause_calls(account, category, wait_s, business)
            case _:
                pass
        return outcome


def _form_parts(request: GraphRequest) -> list[FormPart]:
    texts = [FormPart(name, str(text)) for name, text in (request.body or {}).items()]
    files = [
        FormPart(name, io.BytesIO(file.content), file.name, file.mime_type)
        for name, file in (request.files or {}).items()
    ]
    return texts + files
