"""A partner's clients under load: each resubmits, as a new submission, what was not acknowledged."""

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Sequence
from urllib.parse import urlencode

import aiohttp

from crashes.cluster import ClusterUnderTest
from crashes.partner import APP_NAME, SOURCE

CONNECTIONS = 64
RETRY_DELAY_S = 0.2
"""Delay after a failed submission: immediate retries would take processor time from a starting service."""


class Load:
    """Submits messages until a number of them is acknowledged, or until `stop` is called.

    Args:
        cluster: the cluster that receives the submissions.
        phones: recipients, in turn.
        writers: recipients whose window is open: every fourth message to them is a session text.
        at_least: number of acknowledgements; None for as many as possible until `stop`.
        per_second: submissions of all clients together; None for as fast as responses arrive.

    Attributes:
        acknowledged: the message ids of the responses, each with its recipient.
        acknowledged_s: time of each acknowledgement, by the monotonic clock.
        broken: submissions whose connection broke: not acknowledged, perhaps accepted.
        server_errors: responses with status 500 or more: not acknowledged.
        not_connected: attempts without a connection, so that nothing was submitted.
        pending: submissions without a response yet.
    """

    def __init__(
        self,
        cluster: ClusterUnderTest,
        phones: Sequence[str],
        writers: Sequence[str],
        *,
        at_least: int | None,
        per_second: float | None = None,
    ) -> None:
        self._cluster = cluster
        self._phones = phones
        self._writers = frozenset(writers)
        self._at_least = at_least
        self._every_s = CONNECTIONS / per_second if per_second else 0
        self._stopped = asyncio.Event()
        self._numbers = itertools.count()
        self._started = 0
        self.acknowledged: dict[str, str] = {}
        self.acknowledged_s: list[float] = []
        self.server_errors = 0
        self.pending = 0
        self.repeated_ids = 0
        self.broken = 0
        self.not_connected = 0

    async def run(self) -> None:
        """Return when all are acknowledged, or it was stopped and no response is pending."""
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http, asyncio.TaskGroup() as clients:
            for nth in range(CONNECTIONS):
                clients.create_task(self._client(http, self._every_s * nth / CONNECTIONS))

    def stop(self) -> None:
        """Stop submitting."""
        self._stopped.set()

    async def submit_one(self) -> None:
        """Submit one message, which has to be acknowledged."""
        assert await self._submit(self._cluster.http, next(self._numbers)), "the submission was not acknowledged"

    async def wait_acknowledged(self, count: int, running: "asyncio.Task[None]") -> None:
        """Return when `count` messages are acknowledged; raise the load's own error if it failed."""
        while len(self.acknowledged) < count:
            if running.done():
                running.result()
                return
            await asyncio.sleep(0.005)

    async def _client(self, http: aiohttp.ClientSession, delay_s: float) -> None:
        """Submit at a fixed interval; delays are not made up for."""
        await self._sleep(delay_s)
        while not self._stopped.is_set() and (self._at_least is None or self._started < self._at_least):
            self._started += 1
            began_s = time.monotonic()
            await self._submit_until_acknowledged(http)
            await self._sleep(self._every_s - (time.monotonic() - began_s))

    async def _submit_until_acknowledged(self, http: aiohttp.ClientSession) -> None:
        for number in self._numbers:
            if await self._submit(http, number) or self._stopped.is_set():
                return
            await asyncio.sleep(RETRY_DELAY_S)

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _submit(self, http: aiohttp.ClientSession, number: int) -> bool:
        phone = self._phones[number % len(self._phones)]
        is_text = phone in self._writers and number // len(self._phones) % 4 == 3
        path = "msg" if is_text else "template/msg"
        form = {"channel": "whatsapp", "source": SOURCE, "destination": phone, "src.name": APP_NAME}
        base = self._cluster.base_urls[number % len(self._cluster.base_urls)]
        self.pending += 1
        try:
            async with http.post(
                f"{base}/wa/api/v1/{path}",
                data=urlencode({**form, **self._content(number, is_text=is_text)}),
                headers={"apikey": self._cluster.partner.api_key, "Content-Type": "application/x-www-form-urlencoded"},
            ) as response:
                text = await response.text()
                status = response.status
        except aiohttp.ClientConnectorError:
            self.not_connected += 1
            return False
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.broken += 1
            return False
        finally:
            self.pending -= 1
        if status >= 500:
            self.server_errors += 1
            return False
        assert status == 200, f"status {status} for a submission: {text}"
        message_id: str = json.loads(text)["messageId"]
        self.repeated_ids += message_id in self.acknowledged
        self.acknowledged[message_id] = phone
        self.acknowledged_s.append(time.monotonic())
        return True

    def _content(self, number: int, *, is_text: bool) -> dict[str, str]:
        if is_text:
            return {"message": json.dumps({"type": "text", "text": f"Text {number}"})}
        postback_texts = [{"index": 0, "text": f"yes {number}"}, {"index": 1, "text": f"no {number}"}]
        return {
            "template": json.dumps({"id": self._cluster.partner.template_id, "params": [str(number)]}),
            "postbackTexts": json.dumps(postback_texts),
        }
