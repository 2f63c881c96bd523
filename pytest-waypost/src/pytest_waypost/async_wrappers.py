"""Awaitable versions of the plugin's classes, for tests that are coroutines.

A call runs on a thread of the loop's default pool, and so do the predicates that are passed to it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from pytest_waypost.callback import Callback
from pytest_waypost.client import ApiResponseError, ApiUnreachable
from pytest_waypost.failures import NotSeen
from pytest_waypost.flow import PlayedFlow
from pytest_waypost.message import Message
from pytest_waypost.partner import Partner
from pytest_waypost.phone import Phone
from pytest_waypost.simulator import Fault, TimeMachine

WrappedType = TypeVar("WrappedType")
AwaitedResult = TypeVar("AwaitedResult")
CallArguments = ParamSpec("CallArguments")


class AsyncWrapper(Generic[WrappedType]):
    """A wrapper whose methods await those of the original."""

    def __init__(self, original: WrappedType) -> None:
        self.original = original

    def __str__(self) -> str:
        """Return the text of the original."""
        return str(self.original)


def make_async(
    method: Callable[Concatenate[WrappedType, CallArguments], AwaitedResult],
) -> Callable[Concatenate[AsyncWrapper[WrappedType], CallArguments], Coroutine[Any, Any, AwaitedResult]]:
    """Return a blocking method as one that is awaited."""

    @wraps(method)
    async def wrapper(
        self: AsyncWrapper[WrappedType], *args: CallArguments.args, **kwargs: CallArguments.kwargs
    ) -> AwaitedResult:
        __tracebackhide__ = True
        try:
            return await asyncio.to_thread(method, self.original, *args, **kwargs)
        except (NotSeen, ApiResponseError, ApiUnreachable) as error:  # without the traceback of the thread
            raise error.with_traceback(None) from None

    return wrapper


class AsyncFault(AsyncWrapper[Fault]):
    """A `Fault` that is awaited: `async with await partner.fault(…)`."""

    disarm = make_async(Fault.disarm)

    async def hits(self) -> int:
        """Return how often it has been applied."""
        return await asyncio.to_thread(lambda: self.original.hits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.disarm()


class AsyncTimeMachine(AsyncWrapper[TimeMachine]):
    """A `TimeMachine` that is awaited."""

    advance = make_async(TimeMachine.advance)
    wait_until_idle = make_async(TimeMachine.wait_until_idle)
    freeze = make_async(TimeMachine.freeze)
    run = make_async(TimeMachine.run)


class AsyncPlayedFlow(AsyncWrapper[PlayedFlow]):
    """A `PlayedFlow` that is awaited; what it shows is read from `original`."""

    fill = make_async(PlayedFlow.fill)
    upload = make_async(PlayedFlow.upload)
    tap = make_async(PlayedFlow.tap)
    back = make_async(PlayedFlow.back)
    refresh = make_async(PlayedFlow.refresh)
    close = make_async(PlayedFlow.close)
    submit = make_async(PlayedFlow.submit)
    play = make_async(PlayedFlow.play)


class AsyncPhone(AsyncWrapper[Phone]):
    """A `Phone` that is awaited."""

    wait_for_message = make_async(Phone.wait_for_message)
    write = make_async(Phone.write)
    send_media = make_async(Phone.send_media)
    send_location = make_async(Phone.send_location)
    pay = make_async(Phone.pay)
    react = make_async(Phone.react)
    tap = make_async(Phone.tap)
    submit_form = make_async(Phone.submit_form)
    read = make_async(Phone.read)
    block = make_async(Phone.block)
    unblock = make_async(Phone.unblock)
    go_offline = make_async(Phone.go_offline)
    go_online = make_async(Phone.go_online)
    stop_marketing = make_async(Phone.stop_marketing)
    resume_marketing = make_async(Phone.resume_marketing)
    set = make_async(Phone.set)

    @property
    def name(self) -> str:
        """Name of the person."""
        return self.original.name

    @property
    def number(self) -> str:
        """Digits of its number."""
        return self.original.number

    async def flow(self, message: Message | None = None, *, restart: bool = False) -> AsyncPlayedFlow:
        """Open a flow, and return it; see `Phone.flow`."""
        return AsyncPlayedFlow(await asyncio.to_thread(lambda: self.original.flow(message, restart=restart)))

    async def chat(self) -> tuple[Message, ...]:
        """Return all messages between this phone and the partner, oldest first."""
        return await asyncio.to_thread(lambda: self.original.chat)

    async def inbox(self) -> tuple[Message, ...]:
        """Return the messages that the phone has received from the partner, oldest first."""
        return await asyncio.to_thread(lambda: self.original.inbox)


class AsyncPartner(AsyncWrapper[Partner]):
    """A `Partner` that is awaited."""

    create_template = make_async(Partner.create_template)
    template = make_async(Partner.template)
    approve_template = make_async(Partner.approve_template)
    reject_template = make_async(Partner.reject_template)
    pause_template = make_async(Partner.pause_template)
    disable_template = make_async(Partner.disable_template)
    publish_flow = make_async(Partner.publish_flow)
    upload = make_async(Partner.upload)
    upload_sample = make_async(Partner.upload_sample)
    wait_for_callback = make_async(Partner.wait_for_callback)
    wait_until = make_async(Partner.wait_until)
    callbacks_to = make_async(Partner.callbacks_to)
    trace = make_async(Partner.trace)
    describe_activity = make_async(Partner.describe_activity)
    send_text = make_async(Partner.send_text)
    send_session = make_async(Partner.send_session)
    send_passthrough = make_async(Partner.send_passthrough)
    send_template = make_async(Partner.send_template)

    def __init__(self, original: Partner) -> None:
        super().__init__(original)
        self.clock = AsyncTimeMachine(original.clock)

    @property
    def env(self) -> dict[str, str]:
        """Same as `Partner.env`."""
        return self.original.env

    @property
    def app_id(self) -> str:
        """Id of its app."""
        return self.original.app_id

    @property
    def source(self) -> str:
        """Digits of its number."""
        return self.original.source

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """Same as `Partner.callbacks`."""
        return self.original.callbacks

    @property
    def attempts(self) -> tuple[Callback, ...]:
        """Same as `Partner.attempts`."""
        return self.original.attempts

    @property
    def phones(self) -> tuple[AsyncPhone, ...]:
        """Same as `Partner.phones`."""
        return tuple(AsyncPhone(phone) for phone in self.original.phones)

    def set_callback_status(self, status: Callable[[Callback], int] | int) -> None:
        """Same as `Partner.set_callback_status`."""
        self.original.set_callback_status(status)

    async def phone(self, name: str, number: str = "") -> AsyncPhone:
        """Return the phone of a person; see `Partner.phone`."""
        return AsyncPhone(await asyncio.to_thread(self.original.phone, name, number))

    async def fault(self, call: str = "", **options: Any) -> AsyncFault:
        """Arm a fault; see `Partner.fault`."""
        return AsyncFault(await asyncio.to_thread(lambda: self.original.fault(call, **options)))

    @asynccontextmanager
    async def simulator(self, **settings: Any) -> AsyncGenerator[None]:
        """Change settings of the simulator, and restore them at the end; see `Partner.simulator`."""
        change = self.original.simulator(**settings)
        await asyncio.to_thread(change.__enter__)
        try:
            yield
        finally:
            await asyncio.to_thread(change.__exit__, None, None, None)
