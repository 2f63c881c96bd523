"""A partner's clients under load: each submits again, as a new submission, what was not acknowledged."""

import asyncio
import itertools
import json
from collections.abc import Sequence
from urllib.parse import urlencode

import aiohttp

from tests.crash.town import APP_NAME, SOURCE, Town

CONNECTIONS = 64


class Load:
    """Submits until so many are acknowledged.

    Args:
        town: where to.
        phones: to whom, in turn.
        writers: the phones of them whose window is open: every fourth of theirs is a session text.
        at_least: how many acknowledgements.

    Attributes:
        acknowledged: our messages' ids as answered, and the phone each is for.
        broken: submissions whose connection broke, or that were answered 500: not acknowledged.
        not_reached: tries at which nobody listened, so that nothing was submitted.
    """

    def __init__(
        self, town: Town, phones: Sequence[str], writers: Sequence[str], *, at_least: int
    ) -> None:
        self._town = town
        self._phones = phones
        self._writers = frozenset(writers)
        self._at_least = at_least
        self._numbers = itertools.count()
        self._started = 0
        self.acknowledged: dict[str, str] = {}
        self.repeated_ids = 0
        self.broken = 0
        self.not_reached = 0

    async def run(self) -> None:
        """Return when all are acknowledged."""
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        timeout = aiohttp.ClientTimeout(total=20)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as http,
            asyncio.TaskGroup() as clients,
        ):
            for _ in range(CONNECTIONS):
                clients.create_task(self._client(http))

    async def one_more(self) -> None:
        """Submit one that has to be acknowledged."""
        assert await self._submit(self._town.http, next(self._numbers)), "it was not acknowledged"

    async def reached(self, count: int, running: "asyncio.Task[None]") -> None:
        """Return when so many are acknowledged; raises what stopped the load instead."""
        while len(self.acknowledged) < count:
            if running.done():
                running.result()
                return
            await asyncio.sleep(0.001)

    async def _client(self, http: aiohttp.ClientSession) -> None:
        while self._started < self._at_least:
            self._started += 1
            await self._until_acknowledged(http)

    async def _until_acknowledged(self, http: aiohttp.ClientSession) -> None:
        for number in self._numbers:
            if await self._submit(http, number):
                return
            await asyncio.sleep(0.05)

    async def _submit(self, http: aiohttp.ClientSession, number: int) -> bool:
        phone = self._phones[number % len(self._phones)]
        is_text = phone in self._writers and number // len(self._phones) % 4 == 3
        path = "msg" if is_text else "template/msg"
        form = {"channel": "whatsapp", "source": SOURCE, "destination": phone, "src.name": APP_NAME}
        try:
            async with http.post(
                f"{self._town.base}/wa/api/v1/{path}",
                data=urlencode({**form, **self._content(number, is_text=is_text)}),
                headers={
                    "apikey": self._town.partner.api_key,
                    "Content-Type": "application/x-www-form-urlencoded",
                },
            ) as answer:
                text = await answer.text()
                status = answer.status
        except aiohttp.ClientConnectorError:
            self.not_reached += 1
            return False
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.broken += 1
            return False
        if status >= 500:
            self.broken += 1
            return False
        assert status == 200, f"a submission was answered {status}: {text}"
        message_id: str = json.loads(text)["messageId"]
        self.repeated_ids += message_id in self.acknowledged
        self.acknowledged[message_id] = phone
        return True

    def _content(self, number: int, *, is_text: bool) -> dict[str, str]:
        if is_text:
            return {"message": json.dumps({"type": "text", "text": f"Text {number}"})}
        postback_texts = [
            {"index": 0, "text": f"yes {number}"},
            {"index": 1, "text": f"no {number}"},
        ]
        return {
            "template": json.dumps({"id": self._town.partner.template_id, "params": [str(number)]}),
            "postbackTexts": json.dumps(postback_texts),
        }
