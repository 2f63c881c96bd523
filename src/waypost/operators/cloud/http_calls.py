"""The HTTP client of the Cloud API: one pool, one way to authenticate, one way to read a response."""

from collections.abc import Awaitable, Mapping
from typing import IO, Any, Final

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from waypost.base.clock import Clock
from waypost.base.error_texts import error_text
from waypost.base.http.post_client import AnswerLost, NotReached, Posts
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import Again, Outcome, Unavailable, Uncertain, Waits
from waypost.operators.cloud.rate_usage import Kind, Usages
from waypost.operators.cloud.responses import read_answer, wish_s

CONNECT_S: Final = 5
"""For a connection: a free slot in the pool, the DNS lookup, TCP and TLS."""
IDLE_S: Final = 2
"""An idle connection is closed after this time: earlier than servers do, so that none is reused
while the other side closes it."""
PER_HOST: Final = 256
"""Maximum number of connections to one address."""
MOST_ANSWER_BYTES: Final = 1024 * 1024
"""Of the response to a message; a longer one is not read, and only its status counts."""

_encode: Final = msgspec.json.Encoder().encode
_Body = aiohttp.FormData | IO[bytes] | bytes


HELD: Final = "the service is held: it calls no operator"


class Calls:
    """The connection pool of the Cloud API, and calls through it.

    Args:
        clock: the clock for the waits of accounts near their limits.
        timeout_s: for a whole call that sets none of its own.
        held: make no calls.
    """

    def __init__(self, clock: Clock, *, timeout_s: float, held: bool = False) -> None:
        self._held = held
        self.usages = Usages(clock)
        self._timeout_s = timeout_s
        self._timeout = timeout_of(timeout_s)
        self._posts = Posts(per_address=PER_HOST, idle_s=IDLE_S, connect_s=CONNECT_S, keep_bytes=MOST_ANSWER_BYTES)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Create the pool."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=PER_HOST, keepalive_timeout=IDLE_S),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close the pool."""
        await self._posts.close()
        if self._session is not None:
            await self._session.close()

    @property
    def pool(self) -> aiohttp.ClientSession:
        """The session for requests that are not JSON."""
        if self._session is None:
            raise RuntimeError("the adapter is not open")
        if self._held:
            raise aiohttp.ClientConnectionError(HELD)
        return self._session

    def __call__(
        self,
        account: OperatorAccount,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        query: dict[str, str] | None = None,
        *,
        form: aiohttp.FormData | None = None,
        within_s: float | None = None,
        kind: Kind = Kind.MANAGEMENT,
        business: str = "",
    ) -> Awaitable[dict[str, Any] | Outcome]:
        """Make one call; return the response's object, or the outcome of an error.

        Args:
            account: credentials and base URL.
            method: the HTTP method.
            path: below the version.
            body: JSON.
            query: of the URL.
            form: instead of a body.
            within_s: for the whole call.
            kind: the limits that it counts toward.
            business: the business account whose limits it counts toward; empty: perhaps any of the
                operator account's.
        """
        return self.exchange(
            account,
            method,
            f"{account.base_url}/{account['version']}/{path}",
            data=form if body is None else _encode(body),
            headers={} if body is None else {"Content-Type": "application/json"},
            query=query,
            timeout=None if within_s is None else timeout_of(within_s),
            kind=kind,
            business=business,
        )

    async def send(
        self, account: OperatorAccount, path: str, body: dict[str, Any], *, business: str
    ) -> dict[str, Any] | Outcome:
        """Send one message, over a pool of its own: the only call that is made many times a second.

        Args:
            account: credentials and base URL.
            path: below the version.
            body: JSON.
            business: the business account whose limits it counts toward.
        """
        wait = self._must_wait(account, Kind.MESSAGES, business)
        if wait is not None:
            return wait
        try:
            response = await self._posts.post(
                f"{account.base_url}/{account['version']}/{path}",
                _encode(body),
                {"Content-Type": "application/json", "Authorization": f"Bearer {account['token']}"},
                within_s=self._timeout_s,
            )
        except NotReached as error:
            return Unavailable(f"the operator was not reached: {error}", again=Again.NOT_REACHED)
        except AnswerLost as error:
            return Uncertain(f"the operator's answer was lost: {error_text(error)}")
        except ValueError as error:
            return Unavailable(f"the operator cannot be called: {error}", again=Again.NOT_REACHED)
        response_headers = CIMultiDict(response.headers)
        return self._heard(account, response.status, response.body, response_headers, Kind.MESSAGES, business)

    async def exchange(
        self,
        account: OperatorAccount,
        method: str,
        url: str | URL,
        *,
        data: _Body | None = None,
        headers: Mapping[str, str] | None = None,
        query: dict[str, str] | None = None,
        timeout: aiohttp.ClientTimeout | None = None,  # noqa: ASYNC109  of the HTTP client, in parts
        kind: Kind = Kind.MANAGEMENT,
        business: str = "",
        scheme: str = "Bearer",
    ) -> dict[str, Any] | Outcome:
        """Make one call to a full URL.

        Only a failure to connect proves that the operator has nothing. After that a broken response
        is uncertain. A call that would exceed the account's limits is not made.
        """
        wait = self._must_wait(account, kind, business)
        if wait is not None:
            return wait
        try:
            async with self.pool.request(
                method,
                url,
                data=data,
                params=query,
                headers={"Authorization": f"{scheme} {account['token']}", **(headers or {})},
                allow_redirects=False,
                timeout=timeout or self._timeout,
            ) as response:
                content = await response.read()
                status, response_headers = response.status, response.headers
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            return Unavailable(f"the operator was not reached: {error_text(error)}", again=Again.NOT_REACHED)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Uncertain(f"the operator's answer was lost: {error_text(error)}")
        return self._heard(account, status, content, response_headers, kind, business)

    def _must_wait(self, account: OperatorAccount, kind: Kind, business: str) -> Unavailable | None:
        """Return the reason not to make a call now; None: make it."""
        if self._held:
            return Unavailable(HELD, again=Again.NOT_REACHED)
        return self.usages.must_wait(account, kind, business)

    def _heard(
        self, account: OperatorAccount, status: int, content: bytes, told: Mapping[str, str], kind: Kind, business: str
    ) -> dict[str, Any] | Outcome:
        """Return the object or outcome of a response, and record its limit usage."""
        self.usages.hear(account, told)
        outcome = read_answer(status, content, wish_s(told))
        match outcome:
            case Unavailable(waits=Waits.ACCOUNT, retry_after_s=float(wait_s)):
                self.usages.told_to_wait(account, kind, wait_s)
            case Unavailable(waits=Waits.BUSINESS, retry_after_s=float(wait_s)):
                self.usages.told_to_wait(account, kind, wait_s, business)
            case _:
                pass
        return outcome


def timeout_of(total_s: float) -> aiohttp.ClientTimeout:
    """Return the timeouts of a whole call and of its connection."""
    return aiohttp.ClientTimeout(total=total_s, connect=CONNECT_S)
