"""Steps of a person in a Flow, with what they cause: requests to the endpoint, uploads, the end."""

from typing import Annotated, Any

from msgspec import UNSET, Meta
from msgspec.structs import replace

from waypost.flow_player import player
from waypost.flow_player.play_state import (
    ErrorNotice,
    ExchangeRequest,
    FlowCompletion,
    FlowState,
    OpenedUrl,
    PlayedStep,
    StepNotAllowed,
    UploadedFile,
)
from waypost.flow_player.playable import PlayableFlow
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody
from waypost.simulator.flows.endpoint import call_endpoint
from waypost.simulator.flows.endpoint_keys import find_endpoint_key
from waypost.simulator.flows.exchanges import EndpointExchange
from waypost.simulator.flows.model import Flow
from waypost.simulator.flows.sessions import FlowSession, find_text
from waypost.simulator.flows.uploads import show_in_reply, show_to_endpoint, store_upload
from waypost.simulator.media.model import find_media
from waypost.simulator.state.flow_steps import MAX_STEPS, FlowFileStep, FlowStep
from waypost.simulator.state.simulator_state import SimulatorState


class FlowStepsBody(ControlBody, frozen=True, kw_only=True):
    """Steps, in order; the first that the handset does not allow ends them."""

    steps: Annotated[list[FlowStep], Meta(min_length=1, max_length=MAX_STEPS)]


class FlowPlay:
    """A session while one call plays it.

    Attributes:
        state: after the steps so far.
        events: what they caused, in order.
        completion: of the Flow, if a step has completed it.
    """

    def __init__(
        self, simulator: SimulatorState, session: FlowSession, flow: Flow | None, playable: PlayableFlow, origin: str
    ) -> None:
        """Begin where the session is; `origin` is the scheme and host of the URLs of files."""
        self._origin = origin
        self._simulator = simulator
        self._session = session
        self._flow = flow
        self._playable = playable
        self.state: FlowState = session.state
        self.events: list[dict[str, Any]] = []
        self.completion: FlowCompletion | None = None

    async def follow(self, step: PlayedStep) -> None:
        """Take over the state of a step, and carry out its effect."""
        self.state = step.state
        match step.effect:
            case ExchangeRequest():
                await self._exchange(step.effect)
            case ErrorNotice():
                await self._send_notice(step.effect)
            case OpenedUrl():
                self.events.append({"type": "opened_url", "url": step.effect.url})
            case FlowCompletion():
                self.completion = step.effect
            case None:
                pass

    async def run(self, steps: list[FlowStep]) -> None:
        """Carry out steps.

        Raises:
            ControlApiError: 409, the handset does not allow one; those before it are done.
        """
        for index, step in enumerate(steps):
            try:
                await self._run_step(f"steps[{index}]", step)
            except StepNotAllowed as error:
                self.state = error.state or self.state
                rule = f"{error.target}: {error.rule}"
                raise ControlApiError(f"steps[{index}]", rule, error.accepted, status=409) from None

    async def _run_step(self, path: str, step: FlowStep) -> None:
        members = {name: value for name in FlowStep.__struct_fields__ if (value := getattr(step, name)) is not UNSET}
        if len(members) != 1 or False in members.values():
            accepted = ", ".join(FlowStep.__struct_fields__)
            raise ControlApiError(path, "must have exactly one member, and no false", f"one of {accepted}")
        [(kind, value)] = members.items()
        match kind:
            case "fill":
                for name, entered in value.items():
                    await self.follow(player.enter_value(self._playable, self.state, name, entered))
            case "choose":
                for name, option in value.items():
                    await self.follow(player.choose_option(self._playable, self.state, name, option))
            case "tap":
                await self.follow(player.tap(self._playable, self.state, value))
            case "upload":
                await self._upload(value)
            case "remove":
                for name, media_id in value.items():
                    await self.follow(player.remove_file(self._playable, self.state, name, media_id))
            case "back":
                await self.follow(player.go_back(self._playable, self.state))
            case "refresh":
                await self.follow(player.refresh(self._playable, self.state))
            case _:
                self.state = player.close(self.state)

    async def _upload(self, step: FlowFileStep) -> None:
        content, file_name, mime_type = step.content, step.file_name, step.mime_type
        if step.media_id is not None:
            media = find_media(self._simulator, step.media_id)
            if media is None:
                accepted = "the id of a file of POST /control/media"
                raise ControlApiError("upload.media_id", "is no media id", accepted, status=404)
            content = await self._simulator.files.read(media.content_name)
            file_name, mime_type = file_name or media.file_name, mime_type or media.mime_type
        file = UploadedFile(self._simulator.ids.new(), file_name or "file", mime_type.lower(), len(content))
        step_taken = player.add_file(self._playable, self.state, step.name, file)
        await store_upload(self._simulator, file, content)
        await self.follow(step_taken)

    async def _exchange(self, request: ExchangeRequest) -> None:
        files = {
            name: [show_to_endpoint(self._simulator, media_id, self._origin) for media_id in media_ids]
            for name, media_ids in request.files.items()
        }
        exchange = await self._call(request.action, request.screen, request.data | files)
        if exchange.error_type:
            self.state = player.fail_request(
                self.state, error_message=exchange.user_message, is_token_invalid=exchange.is_token_invalid
            )
        else:
            await self.follow(player.take_response(self._playable, self.state, exchange.response))

    async def build_reply(self) -> dict[str, Any]:
        """Return the payload of the completed Flow as it is sent: files are media of the number."""
        completion = self.completion
        if completion is None:
            return {}
        files: dict[str, Any] = {}
        for name, media_ids in completion.files.items():
            files[name] = [
                await show_in_reply(self._simulator, media_id, self._session.phone_number_id) for media_id in media_ids
            ]
        return completion.payload | files

    async def _send_notice(self, notice: ErrorNotice) -> None:
        data = {"error": notice.error, "error_message": notice.error_message}
        await self._call(notice.action, notice.screen, data)

    async def _call(self, action: str, screen: str, data: dict[str, Any]) -> EndpointExchange:
        request: dict[str, Any] = {"version": self._playable.data_api_version, "action": action}
        request |= {"flow_token": self.state.flow_token}
        request |= {"screen": screen} if screen else {}
        request |= {"data": data} if data or action != "INIT" else {}
        exchange = await self._send(request)
        self.events.append(
            {
                "type": "exchange",
                "request": exchange.request,
                "status": exchange.status,
                "response": exchange.response,
                "error_type": exchange.error_type,
                "diagnosis": exchange.diagnosis,
                "warnings": exchange.warnings,
                "duration_ms": exchange.duration_ms,
            }
        )
        return exchange

    async def _send(self, request: dict[str, Any]) -> EndpointExchange:
        flow, state = self._flow, self._simulator
        if flow is None:
            text = "There is no flow, and so no endpoint_uri."
            return EndpointExchange(request, error_type="cannot_be_served", diagnosis=text)
        session = self._session
        played = replace(flow, asset=session.text or find_text(state, flow, session.version))
        return await call_endpoint(
            state,
            played,
            find_endpoint_key(state, flow.waba_id, session.phone_number_id),
            request,
            phone_number_id=session.phone_number_id,
            phone=session.phone,
            wamid=session.session_id if session.phone else "",
        )
