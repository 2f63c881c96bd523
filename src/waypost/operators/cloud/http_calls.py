"""Every HTTP call of the Cloud API: one pool, one way to authenticate, one way to read an answer."""

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
"""For a connection: a free place in the pool, the name's look-up, TCP and TLS."""
IDLE_S: Final = 2
"""How long an idle connection is kept: less than any server does, so that none is reused in the
moment the other side closes it."""
PER_HOST: Final = 256
"""Connections to one address at most."""
MOST_ANSWER_BYTES: Final = 1024 * 1024
"""Of the answer to a message; a longer one cannot be read, and is judged by its status."""

_encode: Final = msgspec.json.Encoder().encode
_Body = aiohttp.FormData | IO[bytes] | bytes


HELD: Final = "the service is held: it calls no operator"


class Calls:
    """The connection pool, and the calls through it.

    Args:
        clock: by which accounts near their limits wait.
        timeout_s: for a whole call, where the call names none of its own.
        held: make no call at all.
    """

    def __init__(self, clock: Clock, *, timeout_s: float, held: bool = False) -> None:
        self._held = held
        self.usages = Usages(clock)
        self._timeout_s = timeout_s
        self._timeout = timeout_of(timeout_s)
        self._posts = Posts(per_address=PER_HOST, idle_s=IDLE_S, connect_s=CONNECT_S, keep_bytes=MOST_ANSWER_BYTES)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make the pool."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=PER_HOST, keepalive_timeout=IDLE_S),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close it."""
        await self._posts.close()
        if self._session is not None:
            await self._session.close()

    @property
    def pool(self) -> aiohttp.ClientSession:
        """For what is not JSON."""
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
        """One call: the answer's object, or what it means.

        Args:
            account: credentials and address.
            method: of HTTP.
            path: below the version.
            body: JSON.
            query: of the address.
            form: instead of a body.
            within_s: for the whole call.
            kind: what it spends.
            business: the business account whose limits it spends; empty: perhaps any of the operator
                account's.
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
        """One message, over connections of its own: the one call of which there are many a second.

        Args:
            account: credentials and address.
            path: below the version.
            body: JSON.
            business: the business account whose limits it spends.
        """
        wait = self._must_wait(account, Kind.MESSAGES, business)
        if wait is not None:
            return wait
        try:
            reply = await self._posts.post(
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
            return Unavailable(f"the operator cannot be asked: {error}", again=Again.NOT_REACHED)
        told = CIMultiDict(reply.headers)
        return self._heard(account, reply.status, reply.body, told, Kind.MESSAGES, business)

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
        """As a call, to a whole address.

        Only a failure to connect proves that the operator has nothing; after that a broken answer is
        uncertain. A call that would go beyond the account's limits is not made at all.
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
                status, told = response.status, response.headers
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            return Unavailable(f"the operator was not reached: {error_text(error)}", again=Again.NOT_REACHED)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Uncertain(f"the operator's answer was lost: {error_text(error)}")
        return self._heard(account, status, content, told, kind, business)

    def _must_wait(self, account: OperatorAccount, kind: Kind, business: str) -> Unavailable | None:
        """Why a call is not made now; None: it is."""
        if self._held:
            return Unavailable(HELD, again=Again.NOT_REACHED)
        return self.usages.must_wait(account, kind, business)

    def _heard(
        self, account: OperatorAccount, status: int, content: bytes, told: Mapping[str, str], kind: Kind, business: str
    ) -> dict[str, Any] | Outcome:
        """What an answer means, and what it says of the account's limits."""
        self.usages.hear(account, told)
        answer = read_answer(status, content, wish_s(told))
        match answer:
            case Unavailable(waits=Waits.ACCOUNT, retry_after_s=float(wait_s)):
                self.usages.told_to_wait(account, kind, wait_s)
            case Unavailable(waits=Waits.BUSINESS, retry_after_s=float(wait_s)):
                self.usages.told_to_wait(account, kind, wait_s, business)
            case _:
                pass
        return answer


def timeout_of(total_s: float) -> aiohttp.ClientTimeout:
    """For a whole call, and for its connection."""
    return aiohttp.ClientTimeout(total=total_s, connect=CONNECT_S)
