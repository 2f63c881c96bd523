"""The same for tests that are coroutines: every call is awaited, and the loop of the test goes on meanwhile.

A call runs on a thread of the loop's default pool. A predicate that is handed in is asked there, too.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from waypost.client.responses import ApiResponseError, NotReached
from waypost.testing.callback import Callback
from waypost.testing.clock import TimeMachine
from waypost.testing.failures import NotSeen
from waypost.testing.faults import Fault
from waypost.testing.message import Message
from waypost.testing.partner import Partner
from waypost.testing.phone import Phone

Original = TypeVar("Original")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class Twin(Generic[Original]):
    """Stands beside what it awaits."""

    def __init__(self, original: Original) -> None:
        self.original = original

    def __str__(self) -> str:
        """As the original."""
        return str(self.original)


def awaited(
    method: Callable[Concatenate[Original, Arguments], Result],
) -> Callable[Concatenate[Twin[Original], Arguments], Coroutine[Any, Any, Result]]:
    """A method that waits, as one that is awaited."""

    @wraps(method)
    async def twin(self: Twin[Original], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        __tracebackhide__ = True
        try:
            return await asyncio.to_thread(method, self.original, *args, **kwargs)
        except (NotSeen, ApiResponseError, NotReached) as error:  # not by way of the thread that met it
            raise error.with_traceback(None) from None

    return twin


class AsyncFault(Twin[Fault]):
    """A `Fault` that is awaited: `async with await partner.fault(…)`."""

    disarm = awaited(Fault.disarm)

    async def hits(self) -> int:
        """How often it has struck."""
        return await asyncio.to_thread(lambda: self.original.hits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.disarm()


class AsyncTimeMachine(Twin[TimeMachine]):
    """A `TimeMachine` that is awaited."""

    advance = awaited(TimeMachine.advance)
    settle = awaited(TimeMachine.settle)
    freeze = awaited(TimeMachine.freeze)
    run = awaited(TimeMachine.run)


class AsyncPhone(Twin[Phone]):
    """A `Phone` that is awaited."""

    wait_for_message = awaited(Phone.wait_for_message)
    write = awaited(Phone.write)
    send_media = awaited(Phone.send_media)
    send_location = awaited(Phone.send_location)
    pay = awaited(Phone.pay)
    react = awaited(Phone.react)
    tap = awaited(Phone.tap)
    answer = awaited(Phone.answer)
    read = awaited(Phone.read)
    block = awaited(Phone.block)
    unblock = awaited(Phone.unblock)
    go_offline = awaited(Phone.go_offline)
    go_online = awaited(Phone.go_online)
    stop_marketing = awaited(Phone.stop_marketing)
    resume_marketing = awaited(Phone.resume_marketing)
    set = awaited(Phone.set)

    @property
    def name(self) -> str:
        """Of the person."""
        return self.original.name

    @property
    def number(self) -> str:
        """Its digits."""
        return self.original.number

    async def chat(self) -> tuple[Message, ...]:
        """All that was said between this phone and the partner, oldest first."""
        return await asyncio.to_thread(lambda: self.original.chat)

    async def inbox(self) -> tuple[Message, ...]:
        """What the phone has got from the partner, oldest first."""
        return await asyncio.to_thread(lambda: self.original.inbox)


class AsyncPartner(Twin[Partner]):
    """A `Partner` that is awaited."""

    create_template = awaited(Partner.create_template)
    template = awaited(Partner.template)
    approve_template = awaited(Partner.approve_template)
    reject_template = awaited(Partner.reject_template)
    pause_template = awaited(Partner.pause_template)
    disable_template = awaited(Partner.disable_template)
    publish_flow = awaited(Partner.publish_flow)
    upload = awaited(Partner.upload)
    upload_sample = awaited(Partner.upload_sample)
    wait_for_callback = awaited(Partner.wait_for_callback)
    wait_until = awaited(Partner.wait_until)
    callbacks_to = awaited(Partner.callbacks_to)
    trace = awaited(Partner.trace)
    what_happened = awaited(Partner.what_happened)
    send_text = awaited(Partner.send_text)
    send_session = awaited(Partner.send_session)
    send_passthrough = awaited(Partner.send_passthrough)
    send_template = awaited(Partner.send_template)

    def __init__(self, original: Partner) -> None:
        super().__init__(original)
        self.clock = AsyncTimeMachine(original.clock)

    @property
    def env(self) -> dict[str, str]:
        """As `Partner.env`."""
        return self.original.env

    @property
    def app_id(self) -> str:
        """The id of its app."""
        return self.original.app_id

    @property
    def source(self) -> str:
        """The digits of its number."""
        return self.original.source

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """As `Partner.callbacks`."""
        return self.original.callbacks

    @property
    def tries(self) -> tuple[Callback, ...]:
        """As `Partner.tries`."""
        return self.original.tries

    @property
    def phones(self) -> tuple[AsyncPhone, ...]:
        """As `Partner.phones`."""
        return tuple(AsyncPhone(phone) for phone in self.original.phones)

    def answer_callbacks(self, answer: Callable[[Callback], int] | int) -> None:
        """As `Partner.answer_callbacks`."""
        self.original.answer_callbacks(answer)

    async def phone(self, name: str, number: str = "") -> AsyncPhone:
        """The phone of a person; as `Partner.phone`."""
        return AsyncPhone(await asyncio.to_thread(self.original.phone, name, number))

    async def fault(self, call: str = "", **wish: Any) -> AsyncFault:
        """Arm a fault; as `Partner.fault`."""
        return AsyncFault(await asyncio.to_thread(lambda: self.original.fault(call, **wish)))

    @asynccontextmanager
    async def simulator(self, **settings: Any) -> AsyncGenerator[None]:
        """Change settings of the simulator, and put them back; as `Partner.simulator`."""
        change = self.original.simulator(**settings)
        await asyncio.to_thread(change.__enter__)
        try:
            yield
        finally:
            await asyncio.to_thread(change.__exit__, None, None, None)
