"""The simulator: opening, seeding, serving and closing it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.time_travel import TimeTravel, format_count
from waypost.simulator.accounts.model import save_account, save_app
from waypost.simulator.apis.control_operations import read_members
from waypost.simulator.apis.dev_partners import DevPartners
from waypost.simulator.apis.dev_snapshots import SnapshotStore
from waypost.simulator.apis.requests import Receive, Scope, Send
from waypost.simulator.business_app.connection import start_business_apps
from waypost.simulator.faults.fault_reading import Scenario
from waypost.simulator.faults.model import arm_scenario
from waypost.simulator.flows.monitor import start_endpoint_monitor
from waypost.simulator.flows.preview_pages import PreviewPages, is_preview_path
from waypost.simulator.flows.uploads import FLOW_FILE_PREFIX, FLOW_UPLOADS
from waypost.simulator.handsets.actions import send_message
from waypost.simulator.handsets.control_actions import WriteBody, send_from_phone
from waypost.simulator.handsets.phone_messages import build_text_message
from waypost.simulator.handsets.planned_actions import start_planned_actions
from waypost.simulator.media.model import MEDIA, MEDIA_FILE_PREFIX, add_inbound_media, sweep_files
from waypost.simulator.media.uploads import UPLOAD_FILE_PREFIX, UPLOADS
from waypost.simulator.messages.held_messages import resume_held
from waypost.simulator.numbers.model import save_number
from waypost.simulator.onboarding.window_pages import WindowPages, is_window_path
from waypost.simulator.reviews import start_reviews
from waypost.simulator.serving.control_api import ControlApi
from waypost.simulator.serving.graph_api import GraphApi
from waypost.simulator.state.accounts import Account, GraphApp, Number
from waypost.simulator.state.phones import PHONES, find_phone, set_phone_members
from waypost.simulator.state.scripts import open_scripts
from waypost.simulator.state.settings import AccountSeed, NumberSeed, SimulatorSettings
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.usage_counts import open_usage_counts
from waypost.simulator.templates.checks import check_draft
from waypost.simulator.templates.model import TEMPLATES, save_template
from waypost.simulator.webhooks.webhooks import retry_now, start_loops, start_webhooks, stop_webhooks


class SimulatorApplication:
    """Dispatches each request to the control API, the window of embedded signup, a preview, or the Graph API.

    Its lifespan does nothing: the server's caller opens the simulator.
    """

    def __init__(self, state: SimulatorState) -> None:
        self._graph = GraphApi(state)
        self._control = ControlApi(state)
        self._window = WindowPages(state)
        self._previews = PreviewPages(state)
        self.active_requests = 0
        """Number of Graph API requests in flight."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            event = ""
            while event != "lifespan.shutdown":
                event = (await receive())["type"]
                await send({"type": f"{event}.complete"})
        elif scope["type"] == "http":
            if scope["path"].startswith("/control/"):
                await self._control(scope, receive, send)
                return
            if is_window_path(scope["path"]):
                await self._window(scope, receive, send)
                return
            if is_preview_path(scope["path"]):
                await self._previews(scope, receive, send)
                return
            self.active_requests += 1
            try:
                await self._graph(scope, receive, send)
            finally:
                self.active_requests -= 1


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
        travel: TimeTravel | None = None,
        snapshots: SnapshotStore | None = None,
        partners: DevPartners | None = None,
    ) -> None:
        self._state = SimulatorState(settings, clock, ids, travel, snapshots, partners)
        self.application = SimulatorApplication(self._state)

    async def open(self) -> None:
        """Open the file, load the stored state, and start the loops."""
        state = self._state
        await state.store.open()
        await state.files.open()
        state.settings.open()
        await sweep_files(state, MEDIA, MEDIA_FILE_PREFIX)
        await sweep_files(state, UPLOADS, UPLOAD_FILE_PREFIX)
        await sweep_files(state, FLOW_UPLOADS, FLOW_FILE_PREFIX)
        await open_usage_counts(state)
        await open_scripts(state)
        for part in (state.outbox, state.delivery_signals):
            await part.open()
        await start_webhooks(state)
        await resume_held(state)
        start_reviews(state)
        start_planned_actions(state)
        start_business_apps(state)
        start_endpoint_monitor(state)

    async def close(self) -> None:
        """Stop the loops, commit pending writes, close the file."""
        state = self._state
        await state.link_fetcher.close()
        await state.endpoints.close()
        for loop in state.loops:
            await loop.stop()
        await stop_webhooks(state)
        await state.store.close()

    @property
    def failure_reason(self) -> str:
        """The error of a failing loop; an empty text while all work."""
        return self._state.failing_loop

    # The members of `base.time_travel.ClockFollower`.
    name = "the simulator"

    @property
    def busy(self) -> bool:
        """True while a Graph call, a write, a webhook, a fetch of a media link or a Flow's request is in flight."""
        state = self._state
        return (
            state.store.busy
            or state.webhooks.outlets_in_delivery > 0
            or state.link_fetcher.is_fetching
            or state.endpoints.is_busy
            or self.application.active_requests > 0
        )

    async def describe_in_flight(self) -> list[str]:
        """Return the calls and webhooks in flight, as texts with counts."""
        state = self._state
        calls, posting = self.application.active_requests, state.webhooks.posts_in_flight
        requests = state.endpoints.active_requests
        return [
            *((format_count(calls, "Graph call"),) if calls else ()),
            *((format_count(requests, "request to an endpoint of a Flow"),) if requests else ()),
            *(format_count(count, "webhook", f" to {uri}") for uri, count in posting.items()),
        ]

    @property
    def moves(self) -> int:
        """Number of writes begun since opening."""
        return self._state.store.moves

    async def next_due_ms(self) -> int | None:
        """Return the earliest due time of its state; None if nothing is scheduled."""
        dues = [await next_due_ms() for next_due_ms in self._state.due_times]
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    def set_travelling(self, is_travelling: bool) -> None:
        """Do nothing: nothing here depends on whether the clock is being advanced."""
        del is_travelling

    async def seed(self, account: AccountSeed, numbers: Sequence[NumberSeed]) -> None:
        """Create or update an account with its app and numbers.

        The callback URI is stored without a handshake, because the service may not be listening yet.
        """
        state = self._state
        known_app = state.accounts.apps.get(account.app_id)
        fields = (known_app.fields if known_app is not None else ()) or account.webhook_fields
        app = GraphApp(account.app_id, account.app_secret, account.callback_uri, account.verify_token, fields)
        known = state.accounts.by_id.get(account.waba_id)
        namespace = account.namespace or (known.namespace if known else "")
        is_new_uri = known_app is not None and known_app.callback_uri != app.callback_uri
        await save_app(state, app)
        await save_account(
            state,
            Account(
                waba_id=account.waba_id,
                name=account.name,
                namespace=namespace or state.ids.new().replace("-", "_"),
                token=account.token,
                app_id=account.app_id,
                owner_business_id=known.owner_business_id if known else "",
            ),
        )
        for number in numbers:
            await save_number(state, Number(**asdict(number)))
        if is_new_uri:
            await retry_now(state, account.waba_id)
        start_loops(state, account.waba_id)

    async def seed_template(self, *, waba_id: str, template_id: str, **draft: Any) -> None:
        """Create or update an approved template with a given id, without a webhook.

        Args:
            waba_id: the account.
            template_id: 16 digits.
            draft: its name, language, category and components, as they are submitted.

        Raises:
            GraphApiError: the template breaks a check of the operator.
        """
        state, now_ms = self._state, self._state.clock.now_ms()
        known = state.values(TEMPLATES).get(template_id)
        template = replace(
            check_draft(draft),
            template_id=template_id,
            waba_id=waba_id,
            status="APPROVED",
            created_ms=known.created_ms if known else now_ms,
            updated_ms=known.updated_ms if known else now_ms,
        )
        await state.transact(lambda transaction: save_template(transaction, template))

    async def arm_scenario(self, scenario: Scenario) -> None:
        """Replace the faults of another scenario by this scenario's; do nothing if it is already armed.

        Faults armed through the control API stay.
        """
        await self._state.transact(lambda transaction: arm_scenario(transaction, scenario.key, scenario.faults))

    async def name_phones(self, names: Sequence[tuple[str, str]]) -> None:
        """Set the owners' names of phones that are not known yet."""
        state = self._state
        for digits, name in names:
            if digits not in state.values(PHONES):
                await state.store.run([set_phone_members(state, digits, {"name": name})])

    async def send_phone_text(self, *, phone: str, to: str, text: str, name: str | None = None) -> str:
        """Send a text from a phone to a business number, which opens the window; return the message's id.

        Args:
            name: the phone's profile name; None leaves it unchanged.

        Raises:
            KeyError: `to` is no business number.
        """
        state = self._state
        number = state.accounts.numbers_by_digits[to]
        if name is not None and find_phone(state, phone).name != name:
            await state.store.run([set_phone_members(state, phone, {"name": name})])
        return await state.transact(send_message(state, phone, number, build_text_message(text)))

    async def send_phone_message(self, *, phone: str, to: str, **members: Any) -> str:
        """Send a message of any type from a phone to a business number; return its id.

        Args:
            members: the members of `POST /control/phones/{phone}/messages`; a content may be bytes.

        Raises:
            ControlApiError: a member is invalid; the error names the accepted values.
        """
        return await send_from_phone(self._state, phone, read_members(WriteBody, {"to": to, **members}))

    async def save_inbound_media(self, *, to: str, content: bytes, mime_type: str, file_name: str = "") -> str:
        """Store a file as if a phone had sent it to a business number; return its id.

        Raises:
            KeyError: `to` is no business number.
            GraphApiError: the type is not accepted, or the file is empty or too large.
        """
        number = self._state.accounts.numbers_by_digits[to]
        media = await add_inbound_media(self._state, number.phone_number_id, mime_type, file_name, content)
        return media.media_id
