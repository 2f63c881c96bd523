"""A partner's second receiver, which is sent all callbacks in version 3."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.callback_sink import Callback, CallbackSink
from tests.support.pipeline import PipelineHarness


@dataclass(frozen=True)
class Version3Receiver:
    """The callbacks that the receiver got."""

    sink: CallbackSink

    async def value(self, member: str, **expected: Any) -> dict[str, Any]:
        """Return the first value whose list `member` begins with an object that has these members."""

        def matches(callback: Callback) -> bool:
            inner = value_of(callback).get(member, [{}])[0]
            return all(inner.get(name) == value for name, value in expected.items())

        [first, *_] = await self.sink.wait_for(lambda callback: member in value_of(callback) and matches(callback))
        return value_of(first)

    async def message(self, wamid: str) -> dict[str, Any]:
        """Return the value that contains a message from a phone."""
        return await self.value("messages", id=wamid)

    async def status(self, message_id: str, status: str) -> dict[str, Any]:
        """Return a status of our message."""
        return (await self.value("statuses", gs_id=message_id, status=status))["statuses"][0]

    async def change(self, field: str) -> Callback:
        """Return the first body that has a change of this field."""
        [first, *_] = await self.sink.wait_for(lambda callback: field_of(callback) == field)
        return first


def value_of(callback: Callback) -> dict[str, Any]:
    """Return the value of the only change in a body."""
    return callback["entry"][0]["changes"][0]["value"]


def field_of(callback: Callback) -> str:
    """Return the field of the only change in a body."""
    return callback["entry"][0]["changes"][0]["field"]


@asynccontextmanager
async def open_version_3_receiver(pipeline: PipelineHarness, modes: str = "ALL") -> AsyncGenerator[Version3Receiver]:
    """Subscribe a second receiver to all callbacks, in version 3."""
    sink = CallbackSink()
    await sink.open()
    await pipeline.subscribe(tag="three", url=sink.url, version="3", modes=modes)
    try:
        yield Version3Receiver(sink)
    finally:
        await sink.close()
