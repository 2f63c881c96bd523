"""A partner's second receiver, which hears everything in version 3."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.callback_sink import Callback, CallbackSink
from tests.support.pipeline import PipelineHarness


@dataclass(frozen=True)
class ThirdVersion:
    """What it has heard."""

    sink: CallbackSink

    async def value(self, member: str, **given: Any) -> dict[str, Any]:
        """The first value that has something in its list `member` with these members of its own."""

        def is_meant(callback: Callback) -> bool:
            inner = value_of(callback).get(member, [{}])[0]
            return all(inner.get(name) == value for name, value in given.items())

        [found, *_] = await self.sink.wait_for(lambda one: member in value_of(one) and is_meant(one))
        return value_of(found)

    async def message(self, wamid: str) -> dict[str, Any]:
        """The value around a message from a phone."""
        return await self.value("messages", id=wamid)

    async def status(self, message_id: str, status: str) -> dict[str, Any]:
        """A status of our message."""
        return (await self.value("statuses", gs_id=message_id, status=status))["statuses"][0]

    async def change(self, field: str) -> Callback:
        """The first whole body of a field."""
        [found, *_] = await self.sink.wait_for(lambda one: field_of(one) == field)
        return found


def value_of(callback: Callback) -> dict[str, Any]:
    """The value of the one change in a body."""
    return callback["entry"][0]["changes"][0]["value"]


def field_of(callback: Callback) -> str:
    """The field of the one change in a body."""
    return callback["entry"][0]["changes"][0]["field"]


@asynccontextmanager
async def listening(pipeline: PipelineHarness, modes: str = "ALL") -> AsyncGenerator[ThirdVersion]:
    """Have everything told in version 3 too."""
    sink = CallbackSink()
    await sink.open()
    await pipeline.subscribe(tag="three", url=sink.url, version="3", modes=modes)
    try:
        yield ThirdVersion(sink)
    finally:
        await sink.close()
