"""The simulator: opening, seeding, serving and closing it."""

from collections.abc import Sequence
from typing import Any

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.time_travel import Travel, counted
from waypost.simulator.accounts.accounts import Account, App, Number
from waypost.simulator.control.control_api import ControlDoor
from waypost.simulator.control.fault_reading import Scenario
from waypost.simulator.control.phone_actions import WriteBody, speak
from waypost.simulator.control.request_structs import read_members
from waypost.simulator.graph.graph_api import GraphDoor
from waypost.simulator.requests import Receive, Scope, Send
from waypost.simulator.services import Parts
from waypost.simulator.settings import AccountSeed, NumberSeed, SimulatorSettings
from waypost.simulator.templates.checks import check_draft
from waypost.simulator.templates.template import Template
from waypost.simulator.whole_state import Keeper


class Application:
    """Dispatches each request to the control API or the Graph API.

    Its lifespan does nothing: the server's caller opens the simulator.
    """

    def __init__(self, parts: Parts) -> None:
        self._graph = GraphDoor(parts)
        self._control = ControlDoor(parts)
        self.answering = 0
        """Number of Graph API requests in flight."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            if scope["path"].startswith("/control/"):
                await self._control(scope, receive, send)
                return
            self.answering += 1
            try:
                await self._graph(scope, receive, send)
            finally:
                self.answering -= 1


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


class Simulator:
    """Simulation of the operator and its users' phones. Its state is in its own file.

    `application` is the ASGI application of both its APIs.
    """

    def __init__(
        self,
        settings: SimulatorSettings,
        clock: Clock,
        ids: Ids,
        *,
        travel: Travel | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self._parts = Parts(settings, clock, ids, travel, keeper)
        self.application = Application(self._parts)

    async def open(self) -> None:
        """Open the file, load the stored state, and start the loops."""
        parts = self._parts
        await parts.store.open()
        await parts.files.open()
        parts.settings.open()
        parts.fleets.sort()
        for service in (
            parts.outbox, parts.scripts, parts.media, parts.uploads, parts.ledger, parts.held, parts.arrivals,
            parts.judged_updates, parts.webhooks,
        ):  # fmt: skip
            await service.open()
        parts.reviews.loop.start()
        parts.planned_acts.loop.start()

    async def close(self) -> None:
        """Stop the loops, commit pending writes, close the file."""
        await self._parts.reviews.loop.stop()
        await self._parts.planned_acts.loop.stop()
        await self._parts.webhooks.close()
        await self._parts.store.close()

    @property
    def why_not(self) -> str:
        """The error of a failing loop; an empty text while all work."""
        return self._parts.failing_loop

    # The members of `base.time_travel.Side`.
    name = "the simulator"

    @property
    def busy(self) -> bool:
        """True while a Graph call, a write or a webhook is in flight."""
        parts = self._parts
        return parts.store.busy or parts.webhooks.busy or self.application.answering > 0

    async def in_flight(self) -> list[str]:
        """Return the calls and webhooks in flight, as texts with counts."""
        parts = self._parts
        calls, posting = self.application.answering, parts.webhooks.posting
        return [
            *((counted(calls, "Graph call"),) if calls else ()),
            *(counted(count, "webhook", f" to {uri}") for uri, count in posting.items()),
        ]

    @property
    def moves(self) -> int:
        """Number of writes begun since opening."""
        return self._parts.store.moves

    async def next_due_ms(self) -> int | None:
        """Return the earliest due time of its services; None if nothing is scheduled."""
        dues = [await service.next_due_ms() for service in self._parts.timed]
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    def set_travelling(self, is_travelling: bool) -> None:
        """Do nothing: nothing here depends on whether the clock is being advanced."""
        del is_travelling

    async def seed(self, account: AccountSeed, numbers: Sequence[NumberSeed]) -> None:
        """Create or update an account with its app and numbers.

        The callback URI is stored without a handshake, because the service may not be listening yet.
        """
        parts = self._parts
        app = App(account.app_id, account.app_secret, account.callback_uri, account.verify_token)
        known = parts.accounts.by_id.get(account.waba_id)
        namespace = account.namespace or (known.namespace if known else "")
        is_new_uri = parts.accounts.apps.get(app.app_id, app).callback_uri != app.callback_uri
        await parts.accounts.keep_app(app)
        await parts.accounts.keep_account(
            Account(
                waba_id=account.waba_id,
                name=account.name,
                namespace=namespace or parts.ids.new().replace("-", "_"),
                token=account.token,
                app_id=account.app_id,
            )
        )
        for number in numbers:
            await parts.accounts.keep_number(
                Number(number.phone_number_id, number.waba_id, number.phone_number, number.name, number.throughput)
            )
        if is_new_uri:
            await parts.webhooks.retry_now(account.waba_id)
        parts.webhooks.serve(account.waba_id)

    async def seed_template(
        self,
        *,
        waba_id: str,
        template_id: str,
        name: str,
        language: str,
        category: str,
        components: Sequence[dict[str, Any]],
        parameter_format: str = "POSITIONAL",
    ) -> None:
        """Create or update an approved template with a given id, without a webhook.

        Raises:
            GraphApiError: the template breaks a check of the operator.
        """
        draft = check_draft(
            {
                "name": name,
                "language": language,
                "category": category,
                "components": list(components),
                "parameter_format": parameter_format,
            }
        )
        known = self._parts.templates.by_id.get(template_id)
        now_ms = self._parts.clock.now_ms()
        await self._parts.templates.put(
            Template(
                template_id=template_id,
                waba_id=waba_id,
                name=name,
                language=language,
                category=draft.category,
                components=draft.components,
                parameter_format=draft.parameter_format,
                status="APPROVED",
                created_ms=known.created_ms if known else now_ms,
                updated_ms=known.updated_ms if known else now_ms,
            )
        )

    async def arm(self, scenario: Scenario) -> None:
        """Replace the faults of another scenario by this scenario's; do nothing if it is already armed.

        Faults armed through the control API stay.
        """
        faults = self._parts.faults
        if any(fault.scenario == scenario.key for fault in faults.all):
            return
        await faults.disarm([fault for fault in faults.all if fault.scenario])
        await faults.arm(scenario.faults, scenario=scenario.key)

    async def name_phones(self, names: Sequence[tuple[str, str]]) -> None:
        """Set the owners' names of phones that are not known yet.

        Args:
            names: digits and name of each phone.
        """
        phones = self._parts.phones
        for digits, name in names:
            if digits not in phones.all:
                await phones.change(digits, {"name": name})

    async def write_in(self, *, phone: str, to: str, text: str, name: str | None = None) -> str:
        """Send a text from a phone to a business number, which opens the window.

        Args:
            phone: the phone's digits.
            to: the business number's digits.
            text: the message's text.
            name: the phone's profile name; None leaves it unchanged.

        Returns:
            The message's id.

        Raises:
            KeyError: `to` is no business number.
        """
        parts = self._parts
        number = parts.accounts.numbers_by_digits[to]
        if name is not None and parts.phones.meet(phone)[0].name != name:
            await parts.phones.change(phone, {"name": name})
        return await parts.handsets.write(phone, number, text)

    async def send_in(self, *, phone: str, to: str, **wish: Any) -> str:
        """Send a message of any type from a phone to a business number, which opens the window.

        Args:
            phone: the phone's digits.
            to: the business number's digits.
            wish: the members of `POST /control/phones/{phone}/messages`; a content may be bytes.

        Returns:
            The message's id.

        Raises:
            ControlApiError: a member is invalid; the error names the accepted values.
        """
        return await speak(self._parts, phone, read_members(WriteBody, {"to": to, **wish}))

    async def keep_media(self, *, to: str, content: bytes, mime_type: str, file_name: str = "") -> str:
        """Store a file as if a phone had sent it to a business number; return its id.

        Args:
            to: the business number's digits.
            content: the bytes.
            mime_type: in lower case, without parameters.
            file_name: the name on the phone.

        Raises:
            KeyError: `to` is no business number.
            GraphApiError: the type is not accepted, or the file is empty or too large.
        """
        number = self._parts.accounts.numbers_by_digits[to]
        media = await self._parts.media.keep_inbound(number.phone_number_id, mime_type, file_name, content)
        return media.media_id
