"""The ASGI application of the control API, and its table of calls."""

from collections.abc import MutableMapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from waypost.base.telemetry.logs import log
from waypost.simulator.control import (
    accounts,
    clock,
    faults,
    fleets,
    media,
    numbers,
    phone_actions,
    phones,
    state_view,
    templates,
    updates,
)
from waypost.simulator.control.calling import calls as phone_calls
from waypost.simulator.control.endpoints import Endpoint, bind_endpoint, json_response
from waypost.simulator.control.groups import calls as group_calls
from waypost.simulator.control.guard import BYTES, JSON, check_caller
from waypost.simulator.control.partners import calls as partner_calls
from waypost.simulator.control.payments import calls as payment_calls
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.requests import Receive, Scope, Send
from waypost.simulator.services import SimulatorServices

_MEDIA_PATH: Final = "/control/media"

_CONTROL_LOG = log("simulator")

# fmt: off
CALLS: Final[tuple[tuple[str, str, Endpoint], ...]] = (
    # method  path                                      function; its parameters declare the request
    ("GET",    "/control/state",                                         state_view.show_state),
    ("GET",    "/control/readyz",                                        state_view.show_readiness),
    ("GET",    "/control/settings",                                      state_view.show_settings),
    ("PUT",    "/control/settings",                                      state_view.change_settings),
    ("POST",   "/control/reset",                                         state_view.reset),
    ("GET",    "/control/clock",                                         clock.show_clock),
    ("GET",    "/control/clock/due",                                     clock.show_due),
    ("POST",   "/control/clock/advance",                                 clock.advance_clock),
    ("POST",   "/control/clock/freeze",                                  clock.freeze_clock),
    ("POST",   "/control/clock/run",                                     clock.run_clock),
    ("GET",    "/control/snapshots",                                     state_view.list_snapshots),
    ("POST",   "/control/snapshots",                                     state_view.save_snapshot),
    ("GET",    "/control/snapshots/{name}/content",                      state_view.download_snapshot),
    ("POST",   "/control/snapshots/{name}/load",                         state_view.load_snapshot),
    ("DELETE", "/control/snapshots/{name}",                              state_view.drop_snapshot),
    ("GET",    "/control/partners",                                      partner_calls.list_partners),
    ("POST",   "/control/partners",                                      partner_calls.create_partner),
    ("GET",    "/control/partners/{partner_id}",                         partner_calls.show_partner),
    ("DELETE", "/control/partners/{partner_id}",                         partner_calls.delete_partner),
    ("POST",   "/control/partners/{partner_id}/phones",                  partner_calls.add_phone),
    ("GET",    "/control/partners/{partner_id}/callbacks",               partner_calls.list_callbacks),
    ("PUT",    "/control/partners/{partner_id}/callbacks",               partner_calls.change_callbacks),
    ("PUT",    "/control/partners/{partner_id}/rates",                   partner_calls.change_rates),
    ("POST",   "/control/partners/{partner_id}/wait-for-message",        partner_calls.wait_for_message),
    ("POST",   "/control/partners/{partner_id}/wait-for-callback",       partner_calls.wait_for_callback),
    ("POST",   "/control/partners/{partner_id}/no-callback-within",      partner_calls.expect_no_callback),
    ("POST",   "/control/partners/{partner_id}/templates/{name}/{action}", partner_calls.decide_template),
    ("GET",    "/control/partners/{partner_id}/explanation",             partner_calls.explain_partner),
    ("GET",    "/control/faults",                                        faults.list_faults),
    ("POST",   "/control/faults",                                        faults.arm_faults),
    ("DELETE", "/control/faults",                                        faults.disarm_faults),
    ("GET",    "/control/faults/kinds",                                  faults.list_fault_kinds),
    ("GET",    "/control/faults/{fault_id}",                             faults.show_fault),
    ("DELETE", "/control/faults/{fault_id}",                             faults.disarm_fault),
    ("PUT",    "/control/accounts/{waba_id}",                            accounts.put_account),
    ("PUT",    "/control/accounts/{waba_id}/direct-send",                accounts.put_direct_send),
    ("PUT",    "/control/accounts/{waba_id}/marketing-messages",         accounts.put_marketing_status),
    ("POST",   "/control/accounts/{waba_id}/retry",                      accounts.retry_webhooks),
    ("POST",   "/control/accounts/{waba_id}/webhooks",                   updates.emit_account_update),
    ("GET",    "/control/accounts/{waba_id}/payment-configurations",     payment_calls.list_payment_configurations),
    ("PUT",    "/control/accounts/{waba_id}/payment-configurations/{name}", payment_calls.set_configuration_status),
    ("POST",   "/control/statuses",                                      updates.emit_status),
    ("PUT",    "/control/numbers/{phone_number_id}",                     numbers.put_number),
    ("PUT",    "/control/apps/{app_id}",                                 accounts.put_app),
    ("PUT",    "/control/apps/{app_id}/webhook",                         accounts.put_webhook),
    ("GET",    "/control/phones",                                        phones.list_phones),
    ("GET",    "/control/chats",                                         phones.list_active),
    ("GET",    "/control/phones/{phone}",                                phones.show_phone),
    ("GET",    "/control/phones/{phone}/chats",                          phones.show_chats),
    ("PUT",    "/control/phones/{phone}",                                phones.change_phone),
    ("POST",   "/control/phones/{phone}/messages",                       phone_actions.write_message),
    ("POST",   "/control/phones/{phone}/tap",                            phone_actions.tap_button),
    ("POST",   "/control/phones/{phone}/respond",                        phone_actions.reply_to_message),
    ("POST",   "/control/phones/{phone}/pay",                            phone_actions.pay_order),
    ("POST",   "/control/phones/{phone}/number",                         phone_actions.change_number),
    ("POST",   "/control/phones/{phone}/user-id",                        phone_actions.change_user_id),
    ("POST",   "/control/phones/{phone}/marketing",                      phone_actions.change_marketing),
    ("POST",   "/control/phones/{phone}/block",                          phone_actions.block_business),
    ("POST",   "/control/phones/{phone}/report",                         phone_actions.report_business),
    ("POST",   "/control/phones/{phone}/read",                           phone_actions.read_messages),
    ("GET",    "/control/phones/{phone}/calls",                          phone_calls.list_calls),
    ("POST",   "/control/phones/{phone}/calls",                          phone_calls.start_call),
    ("DELETE", "/control/phones/{phone}/calls/{call_id}",                phone_calls.hang_up),
    ("GET",    "/control/groups",                                        group_calls.list_groups),
    ("GET",    "/control/phones/{phone}/groups",                         group_calls.list_phone_groups),
    ("POST",   "/control/phones/{phone}/groups",                         group_calls.join_group),
    ("GET",    "/control/phones/{phone}/groups/{group_id}",              group_calls.show_phone_group),
    ("DELETE", "/control/phones/{phone}/groups/{group_id}",              group_calls.leave_group),
    ("POST",   "/control/phones/{phone}/groups/{group_id}/messages",     group_calls.write_to_group),
    ("POST",   "/control/phones/{phone}/groups/{group_id}/read",         group_calls.read_group),
    ("GET",    "/control/fleets",                                        fleets.list_fleets),
    ("POST",   "/control/fleets",                                        fleets.make_fleet),
    ("GET",    "/control/fleets/{name}",                                 fleets.show_fleet),
    ("DELETE", "/control/fleets/{name}",                                 fleets.drop_fleet),
    ("GET",    "/control/templates",                                     templates.list_templates),
    ("POST",   "/control/templates/{template_id}/approve",               templates.approve_template),
    ("POST",   "/control/templates/{template_id}/reject",                templates.reject_template),
    ("POST",   "/control/templates/{template_id}/quality",               templates.rate_template),
    ("POST",   "/control/templates/{template_id}/category",              templates.recategorise_template),
    ("POST",   "/control/templates/{template_id}/delete",                templates.delete_template),
    ("POST",   "/control/templates/{template_id}/pace",                  templates.pace_template),
    ("POST",   "/control/templates/{template_id}/release",               templates.release_template),
    ("POST",   "/control/templates/{template_id}/drop",                  templates.drop_template),
    ("POST",   "/control/templates/{template_id}/{action}",              templates.apply_template_action),
    ("GET",    "/control/deliveries",                                    state_view.list_deliveries),
    ("GET",    "/control/media",                                         media.list_media),
    ("POST",   _MEDIA_PATH,                                              media.store_media),
    ("GET",    "/control/media/{media_id}",                              media.show_media),
    ("DELETE", "/control/media/{media_id}",                              media.drop_media),
    ("GET",    "/control/media/{media_id}/content",                      media.show_content),
    ("POST",   "/control/media/{media_id}/expire",                       media.expire_media),
    ("GET",    "/control/handles",                                       media.list_handles),
    ("POST",   "/control/handles/expire",                                media.expire_handle),
    ("PUT",    "/control/numbers/{phone_number_id}/status",              numbers.put_number_status),
    ("GET",    "/control/numbers/{phone_number_id}/names",               numbers.show_names),
    ("PUT",    "/control/numbers/{phone_number_id}/names",               numbers.decide_names),
    ("PUT",    "/control/numbers/{phone_number_id}/sending-restriction", numbers.put_sending_restriction),
    ("PUT",    "/control/numbers/{phone_number_id}/recipients",          numbers.put_recipients),
    ("POST",   "/control/numbers/{phone_number_id}/upgrade",             numbers.upgrade_number),
    ("GET",    "/control/numbers/{phone_number_id}/registration",        numbers.show_registration),
    ("PUT",    "/control/phones/{phone}/identity",                       numbers.put_identity),
    ("GET",    "/control/flows/{flow_id}",                               numbers.show_flow),
    ("PUT",    "/control/flows/{flow_id}/status",                        numbers.put_flow_status),
    ("GET",    "/control/tokens",                                        accounts.list_tokens),
    ("POST",   "/control/tokens",                                        accounts.make_token),
    ("POST",   "/control/tokens/expire",                                 accounts.expire_token),
    ("POST",   "/control/tokens/revoke",                                 accounts.revoke_token),
)
# fmt: on


class ControlApi:
    """The ASGI application under `/control`."""

    def __init__(self, services: SimulatorServices) -> None:
        self._services = services
        self._router = Router([self._route(method, path, function) for method, path, function in CALLS])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the caller, then run the call."""
        settings = self._services.settings.value
        request = Request(scope)
        try:
            check_caller(
                request.method,
                request.headers,
                allowed_hosts=settings.allowed_hosts,
                control_token=settings.control_token,
                content_types=(JSON, BYTES) if scope["path"] == _MEDIA_PATH else (JSON,),
            )
        except ControlApiError as error:
            await json_response(error.response_body(), error.status)(scope, receive, send)
        else:
            await self._run_route(scope, receive, send)

    async def _run_route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request's route; an exception becomes a JSON response unless a response has begun."""
        scope["app"] = self  # makes the router raise instead of responding with text
        has_begun = False

        async def send_and_track(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._router(scope, receive, send_and_track)
        except HTTPException as error:
            text, headers = f"{scope['path']}: {error.detail}", error.headers
            await json_response({"error": text}, error.status_code, headers)(scope, receive, send)
        except Exception:  # a defect, or a file that cannot be written
            _CONTROL_LOG.exception("control request failed", path=scope["path"])
            if has_begun:
                raise
            await json_response({"error": "the simulator failed; see its log"}, 500)(scope, receive, send)

    def _route(self, method: str, path: str, function: Endpoint) -> Route:
        call = bind_endpoint(method, function)

        async def endpoint(request: Request) -> Response:
            return await call(self._services, request)

        return Route(path, endpoint, methods=[method])
