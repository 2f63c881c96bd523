"""The partners for tests of one `waypost dev`: what the control API's calls about them do."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from functools import wraps
from types import CoroutineType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from waypost.assembly.dev.partners.creation import create_partner, subscribe_inbox
from waypost.assembly.dev.partners.descriptions import describe_callback
from waypost.assembly.dev.partners.explanations import (
    describe_partner,
    explain_missing_callback,
    explain_missing_message,
    explain_unwanted_callback,
)
from waypost.assembly.dev.partners.partner import PartnerApiClients, PartnerForTest
from waypost.assembly.dev.partners.phones import (
    add_named_phone,
    read_chat,
    read_chats,
    resolve_phone,
    wait_for_phone_message,
)
from waypost.assembly.dev.partners.templates import decide_on_template
from waypost.assembly.dev.service_and_simulator import BaseUrls
from waypost.base.clock import Clock
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, ApiResponseError, InProcessTransport
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.dev_interfaces import CallbackFilter, NotReceived, PhoneMessageFilter

MAX_PARTNERS: Final = 1000
"""Partners at the same time."""
_SUBSCRIPTION_OPTIONS: Final = ("version", "modes", "headers")

CallArguments = ParamSpec("CallArguments")
CallResult = TypeVar("CallResult")


def _translate_errors(
    call: "Callable[Concatenate[PartnerRegistry, CallArguments], CoroutineType[Any, Any, CallResult]]",
) -> "Callable[Concatenate[PartnerRegistry, CallArguments], CoroutineType[Any, Any, CallResult]]":
    """Return a call whose errors of other APIs become errors of the control API."""

    @wraps(call)
    async def translated(
        self: "PartnerRegistry", *args: CallArguments.args, **kwargs: CallArguments.kwargs
    ) -> CallResult:
        try:
            return await call(self, *args, **kwargs)
        except ApiResponseError as error:
            status = error.status if 400 <= error.status < 500 else 503
            raise ControlApiError(error.field or "partner", str(error), error.accepted, status=status) from error

    return translated


class PartnerRegistry:
    """Implements `DevPartners`. The partners are kept in memory, until they are deleted or the process ends.

    Args:
        service: the service's application.
        simulator: the simulator's application.
        urls: under which both sides reach each other.
        admin_token: of the service.
        clock: of both sides.
    """

    def __init__(self, service: Any, simulator: Any, urls: BaseUrls, admin_token: str, clock: Clock) -> None:
        to_service = InProcessTransport(service)
        admin = ApiClient(to_service, {"Authorization": f"Bearer {admin_token}"})
        self._clients = PartnerApiClients(admin, ApiClient(InProcessTransport(simulator), {}), to_service)
        self._urls = urls
        self._clock = clock
        self._ids = RandomIds(clock)  # a seed for ids repeats the ids of tests that use no partner of their own
        self._partners: dict[str, PartnerForTest] = {}
        self._in_creation = 0
        self._emails_in_creation: set[str] = set()

    def find_partner(self, partner_id: str) -> PartnerForTest | None:
        """Return a partner; None if there is none with this id."""
        return self._partners.get(partner_id)

    @_translate_errors
    async def create(self, *, name: str, api_url: str, graph_url: str) -> dict[str, Any]:
        """Create a partner; see `DevPartners.create`."""
        if len(self._partners) + self._in_creation >= MAX_PARTNERS:
            rule = f"there are {MAX_PARTNERS} partners at once"
            raise ControlApiError("partners", rule, "DELETE /control/partners/{partner_id} of others", status=409)
        visible_urls = BaseUrls(
            api_url.rstrip("/") or self._urls.base_url, graph_url.rstrip("/") or self._urls.graph_url
        )
        self._in_creation += 1
        try:
            partner = await create_partner(
                self._clients,
                self._urls,
                visible_urls,
                name=name,
                seed=name or self._ids.secret(),
                now_ms=self._clock.now_ms(),
                in_creation=self._emails_in_creation,
            )
            self._partners[partner.id] = partner  # before a callback can arrive
            try:
                await subscribe_inbox(partner)
            except BaseException:
                del self._partners[partner.id]
                raise
        finally:
            self._in_creation -= 1
        return partner.view()

    def list_all(self) -> list[dict[str, Any]]:
        """Return the partners, oldest first."""
        return [partner.view() for partner in self._partners.values()]

    def show(self, partner_id: str) -> dict[str, Any]:
        """Return one partner."""
        return self._get(partner_id).view()

    @_translate_errors
    async def delete(self, partner_id: str) -> None:
        """Delete a partner's subscriptions and faults, and close its inbox; see `DevPartners.delete`."""
        partner = self._get(partner_id)
        await partner.disarm_faults()
        await partner.call_partner_api("DELETE", "/subscription")
        self._end(partner, "was deleted")

    async def end_missing(self, has_app: Callable[[str], Awaitable[bool]]) -> None:
        """After a change of the whole state: empty the inboxes, and end partners that the new state does not have.

        Args:
            has_app: returns whether the service has an app.
        """
        for partner in tuple(self._partners.values()):
            partner.inbox.clear()
            partner.returned_wamids.clear()
            if not await has_app(partner.app_id):
                self._end(partner, "was in a state that a reset or a snapshot has replaced")

    @_translate_errors
    async def add_phone(self, partner_id: str, *, name: str, number: str) -> dict[str, str]:
        """Return the phone of a person; see `DevPartners.add_phone`."""
        return {"name": name, "phone": await add_named_phone(self._get(partner_id), name, number)}

    @_translate_errors
    async def change_rates(self, partner_id: str, *, rates: Mapping[str, str | None], reset: bool) -> dict[str, Any]:
        """Give a partner's app rates of its own; see `DevPartners.change_rates`."""
        path = f"/admin/apps/{self._get(partner_id).app_id}/rates"
        return await self._clients.admin.json("PUT", path, {"rates": rates, "reset": reset})

    @_translate_errors
    async def change_callbacks(self, partner_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change members of the inbox's options; see `DevPartners.change_callbacks`."""
        partner = self._get(partner_id)
        before = partner.options
        partner.options = replace(before, **changes)
        if any(getattr(before, name) != getattr(partner.options, name) for name in _SUBSCRIPTION_OPTIONS):
            try:
                await subscribe_inbox(partner)
            except ApiResponseError:
                partner.options, partner.subscription_id = before, ""
                await subscribe_inbox(partner)
                raise
        return partner.view()

    def list_callbacks(self, partner_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
        """Return the newest attempts of callbacks after a position, oldest first."""
        attempts = [attempt for attempt in self._get(partner_id).inbox.attempts if attempt.position > after]
        return [attempt.view() for attempt in attempts[max(0, len(attempts) - limit) :]]

    @_translate_errors
    async def wait_for_message(
        self, partner_id: str, *, phone: str, wanted: PhoneMessageFilter, timeout_ms: int
    ) -> dict[str, Any]:
        """Return the first matching message that was not returned before; see `DevPartners.wait_for_message`."""
        partner = self._get(partner_id)
        name, digits = resolve_phone(partner, phone)
        message = await wait_for_phone_message(partner, digits, wanted, timeout_ms)
        if message is None:
            explanation = await explain_missing_message(
                partner,
                name=name,
                digits=digits,
                expected=_describe_message_filter(wanted),
                timeout_ms=timeout_ms,
                received=await read_chat(partner, digits),
            )
            raise NotReceived(explanation)
        return message

    @_translate_errors
    async def wait_for_callback(self, partner_id: str, *, wanted: CallbackFilter, timeout_ms: int) -> dict[str, Any]:
        """Return the first matching callback that was not returned before; see `DevPartners.wait_for_callback`."""
        partner = self._get(partner_id)
        callback = await partner.inbox.wait(wanted, timeout_ms, check=partner.check_exists)
        if callback is None:
            explanation = await explain_missing_callback(
                partner, expected=_describe_callback_filter(wanted), timeout_ms=timeout_ms, message_id=wanted.message_id
            )
            raise NotReceived(explanation)
        partner.inbox.mark_returned(callback)
        return callback.view()

    @_translate_errors
    async def expect_no_callback(self, partner_id: str, *, unwanted: CallbackFilter, within_ms: int) -> None:
        """Return after a time without a matching callback; see `DevPartners.expect_no_callback`."""
        partner = self._get(partner_id)
        callback = await partner.inbox.wait(unwanted, within_ms, check=partner.check_exists)
        if callback is not None:
            explanation = await explain_unwanted_callback(
                partner,
                unwanted=_describe_callback_filter(unwanted),
                within_ms=within_ms,
                line=describe_callback(callback),
            )
            raise NotReceived(explanation)

    @_translate_errors
    async def decide_template(
        self, partner_id: str, *, template: str, action: str, details: Mapping[str, str], timeout_ms: int
    ) -> dict[str, Any]:
        """Make the operator decide on a template; see `DevPartners.decide_template`."""
        return await decide_on_template(self._get(partner_id), template, action, details, timeout_ms)

    @_translate_errors
    async def explain(self, partner_id: str) -> str:
        """Return a report of a partner; see `DevPartners.explain`."""
        partner = self._get(partner_id)
        return await describe_partner(partner, await read_chats(partner))

    def _get(self, partner_id: str) -> PartnerForTest:
        partner = self._partners.get(partner_id)
        if partner is None:
            accepted = "an id from GET /control/partners"
            raise ControlApiError("partner_id", "is not a partner of this process", accepted, status=404)
        return partner

    def _end(self, partner: PartnerForTest, reason: str) -> None:
        """Remove a partner, and end its waits."""
        self._partners.pop(partner.id, None)
        partner.end_reason = reason
        partner.inbox.wake()


def _describe_message_filter(wanted: PhoneMessageFilter) -> str:
    """Return the conditions in words, each followed by a space."""
    text = f'with "{wanted.text}" ' if wanted.text else ""
    text += f"of type {wanted.type} " if wanted.type else ""
    text += f"with the id {wanted.message_id} " if wanted.message_id else ""
    return text + (f"with a button [{wanted.button}] " if wanted.button else "")


def _describe_callback_filter(wanted: CallbackFilter) -> str:
    """Return the conditions in words, each followed by a space."""
    text = f"`{wanted.kind}` " if wanted.kind else ""
    text += f"about {wanted.message_id} " if wanted.message_id else ""
    others = {name: value for name, value in asdict(wanted).items() if value and name not in ("kind", "message_id")}
    return text + "".join(f'with {name} "{value}" ' for name, value in others.items())
