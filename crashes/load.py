"""A partner's clients under load: each submits again, as a new submission, what was not acknowledged."""

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Sequence
from urllib.parse import urlencode

import aiohttp

from crashes.partner import APP_NAME, SOURCE
from crashes.town import Town

CONNECTIONS = 64
AGAIN_AFTER_S = 0.2
"""After what was not acknowledged: while a service starts, clients that hurry take its processor time."""


class Load:
    """Submits until so many are acknowledged, or until it is told to stop.

    Args:
        town: where to.
        phones: to whom, in turn.
        writers: the phones of them whose window is open: every fourth of theirs is a session text.
        at_least: how many acknowledgements; None for as many as come until `stop`.
        per_second: how many all clients together submit; None for as fast as they are answered.

    Attributes:
        acknowledged: our messages' ids as answered, and the phone each is for.
        answered_s: when each acknowledgement came, by the steady clock.
        broken: submissions whose connection broke: not acknowledged, perhaps taken.
        refused: submissions answered with 500 or more: not acknowledged.
        not_reached: tries at which nobody listened, so that nothing was submitted.
        asking: submissions that have no answer yet.
    """

    def __init__(
        self,
        town: Town,
        phones: Sequence[str],
        writers: Sequence[str],
        *,
        at_least: int | None,
        per_second: float | None = None,
    ) -> None:
        self._town = town
        self._phones = phones
        self._writers = frozenset(writers)
        self._at_least = at_least
        self._every_s = CONNECTIONS / per_second if per_second else 0
        self._stopped = asyncio.Event()
        self._numbers = itertools.count()
        self._started = 0
        self.acknowledged: dict[str, str] = {}
        self.answered_s: list[float] = []
        self.refused = 0
        self.asking = 0
        self.repeated_ids = 0
        self.broken = 0
        self.not_reached = 0

    async def run(self) -> None:
        """Return when all are acknowledged, or it was stopped and nothing waits for an answer."""
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http, asyncio.TaskGroup() as clients:
            for nth in range(CONNECTIONS):
                clients.create_task(self._client(http, self._every_s * nth / CONNECTIONS))

    def stop(self) -> None:
        """Submit nothing more."""
        self._stopped.set()

    async def one_more(self) -> None:
        """Submit one that has to be acknowledged."""
        assert await self._submit(self._town.http, next(self._numbers)), "it was not acknowledged"

    async def reached(self, count: int, running: "asyncio.Task[None]") -> None:
        """Return when so many are acknowledged; raises what stopped the load instead."""
        while len(self.acknowledged) < count:
            if running.done():
                running.result()
                return
            await asyncio.sleep(0.005)

    async def _client(self, http: aiohttp.ClientSession, begins_after_s: float) -> None:
        """Keep its own pace; what could not be sent in time is not made up for."""
        await self._rest(begins_after_s)
        while not self._stopped.is_set() and (self._at_least is None or self._started < self._at_least):
            self._started += 1
            began_s = time.monotonic()
            await self._until_acknowledged(http)
            await self._rest(self._every_s - (time.monotonic() - began_s))

    async def _until_acknowledged(self, http: aiohttp.ClientSession) -> None:
        for number in self._numbers:
            if await self._submit(http, number) or self._stopped.is_set():
                return
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _rest(self, for_s: float) -> None:
        if for_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), for_s)

    async def _submit(self, http: aiohttp.ClientSession, number: int) -> bool:
        phone = self._phones[number % len(self._phones)]
        is_text = phone in self._writers and number // len(self._phones) % 4 == 3
        path = "msg" if is_text else "template/msg"
        form = {"channel": "whatsapp", "source": SOURCE, "destination": phone, "src.name": APP_NAME}
        base = self._town.bases[number % len(self._town.bases)]
        self.asking += 1
        try:
            async with http.post(
                f"{base}/wa/api/v1/{path}",
                data=urlencode({**form, **self._content(number, is_text=is_text)}),
                headers={"apikey": self._town.partner.api_key, "Content-Type": "application/x-www-form-urlencoded"},
            ) as answer:
                text = await answer.text()
                status = answer.status
        except aiohttp.ClientConnectorError:
            self.not_reached += 1
            return False
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.broken += 1
            return False
        finally:
            self.asking -= 1
        if status >= 500:
            self.refused += 1
            return False
        assert status == 200, f"a submission was answered {status}: {text}"
        message_id: str = json.loads(text)["messageId"]
        self.repeated_ids += message_id in self.acknowledged
        self.acknowledged[message_id] = phone
        self.answered_s.append(time.monotonic())
        return True

    def _content(self, number: int, *, is_text: bool) -> dict[str, str]:
        if is_text:
            return {"message": json.dumps({"type": "text", "text": f"Text {number}"})}
        postback_texts = [{"index": 0, "text": f"yes {number}"}, {"index": 1, "text": f"no {number}"}]
        return {
            "template": json.dumps({"id": self._town.partner.template_id, "params": [str(number)]}),
            "postbackTexts": json.dumps(postback_texts),
        }
