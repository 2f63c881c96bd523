"""The partners for tests of one `waypost dev`: what the control API's calls about them do."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, Final, TypeVar, cast

from waypost.assembly.dev.partners.explanations import (
    button_labels,
    describe_partner,
    explain_missing_callback,
    explain_missing_message,
    explain_unwanted_callback,
)
from waypost.assembly.dev.partners.inbox import PartnerInbox
from waypost.assembly.dev.partners.partner import PartnerApiClients, PartnerForTest, create_partner, subscribe_inbox
from waypost.assembly.dev.service_and_simulator import BaseUrls
from waypost.base.clock import Clock
from waypost.base.ids import RandomIds
from waypost.client.api_client import ApiClient, ApiResponseError, InProcessTransport
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import present_members
from waypost.simulator.apis.dev_partners import (
    CallbackAttemptView,
    CallbackFilterBody,
    CallbacksBody,
    CallbacksQuery,
    CallbackWaitBody,
    MessageWaitBody,
    NoCallbackBody,
    NotReceived,
    PartnerBody,
    PartnerPhone,
    PartnerPhoneBody,
    PartnerRates,
    PartnerView,
    RatesBody,
    TemplateDecisionBody,
)

# fmt: off
TEMPLATE_STATUSES: Final = {
    # action   status of the record after it
    "approve": "APPROVED",
    "reject":  "REJECTED",
    "pause":   "PAUSED",
    "disable": "DISABLED",
}
# fmt: on
_REJECTED_STATUSES: Final = ("REJECTED", "FAILED")
_TEMPLATE_POLL_INTERVAL_S: Final = 0.01


async def decide_on_template(
    partner: PartnerForTest, template: str, action: str, details: Mapping[str, str], timeout_ms: int
) -> dict[str, Any]:
    """Make the operator decide on a template, and return its record once that has the new status.

    Args:
        template: its name or the service's id; the application may still be submitting it.
        action: a key of `TEMPLATE_STATUSES`.
        details: body of the action in the control API.
        timeout_ms: real time until it reaches the operator, and until its record has the status.

    Raises:
        NotReceived: one of both did not happen.
        ControlApiError: there is no such action.
        ApiResponseError: the simulator rejected the action.
    """
    if action not in TEMPLATE_STATUSES:
        raise ControlApiError("action", "is not a decision", ", ".join(TEMPLATE_STATUSES), status=404)
    timeout = f"within {timeout_ms / 1000:g} s"

    async def wait_until(is_met: Callable[[dict[str, Any]], Any], unmet: str) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + timeout_ms / 1000
        while True:
            found = await _find_template(partner, template)
            if found is not None and is_met(found):
                return found
            if loop.time() >= ends_s:
                raise await _not_met(partner, f"{unmet} {timeout}")
            partner.check_exists()
            await asyncio.sleep(_TEMPLATE_POLL_INTERVAL_S)

    submitted = await wait_until(
        lambda record: record["operator_template_id"] or record["status"] in _REJECTED_STATUSES,
        f"no template {template} reached the operator",
    )
    if not submitted["operator_template_id"]:
        raise await _not_met(partner, f"template {template} was not reviewed: the operator rejected it at once")
    path = f"/control/templates/{submitted['operator_template_id']}/{action}"
    await partner.clients.control.json("POST", path, dict(details))
    status = TEMPLATE_STATUSES[action]
    return await wait_until(lambda record: record["status"] == status, f"template {template} did not become {status}")


async def _not_met(partner: PartnerForTest, text: str) -> NotReceived:
    return NotReceived(f"{text}\n{await describe_partner(partner, {})}")


async def _find_template(partner: PartnerForTest, template: str) -> dict[str, Any] | None:
    views = (await partner.clients.admin.json("GET", f"/admin/apps/{partner.app_id}/templates"))["templates"]
    return next((view for view in views if template in (view["id"], view["element_name"])), None)


_MAX_MESSAGES: Final = 1000
_MAX_WAIT_MS: Final = 250
"""A message may arrive before one that was sent earlier; the control API's own wait does not notice that."""
_MAX_PHONES: Final = 1000


async def add_named_phone(partner: PartnerForTest, name: str, number: str) -> str:
    """Give a person a phone, and return its digits; the same ones for the same name.

    Raises:
        ControlApiError: the person has another number, or the partner has too many phones.
    """
    known = partner.phones.get(name)
    digits = number.lstrip("+") or known or partner.names.phone(name, tuple(partner.phones.values()))
    if known not in (None, digits):
        raise ControlApiError("number", f"{name} has {known}", f"{known}, or another name", status=409)
    if known is None and len(partner.phones) >= _MAX_PHONES:
        raise ControlApiError("name", f"a partner has at most {_MAX_PHONES} named phones", "a known name", status=409)
    await partner.clients.control.json("PUT", f"/control/phones/{digits}", {"name": name})
    partner.phones[name] = digits
    return digits


def resolve_phone(partner: PartnerForTest, phone: str) -> tuple[str, str]:
    """Return name and digits of a phone.

    Args:
        phone: digits, or the name of a person.

    Raises:
        ControlApiError: there is no such person.
    """
    if phone in partner.phones:
        return phone, partner.phones[phone]
    digits = phone.lstrip("+")
    if not (digits.isascii() and digits.isdecimal() and 8 <= len(digits) <= 15):
        names = ", ".join(list(partner.phones)[:20]) or "none yet"
        raise ControlApiError(
            "phone", "is not a phone of this partner", f"8 to 15 digits, or a name: {names}", status=404
        )
    name = next((name for name, number in partner.phones.items() if number == digits), "phone")
    return name, digits


async def read_chat(partner: PartnerForTest, digits: str, *, after: int = 0, wait_ms: int = 0) -> list[dict[str, Any]]:
    """Return the messages between a phone and the partner's number after a position, oldest first.

    Args:
        wait_ms: real time to wait for one.
    """
    number_id = partner.variables["PHONE_NUMBER_ID"]
    query = f"limit={_MAX_MESSAGES}&after={after}&wait_ms={wait_ms}&phone_number_id={number_id}"
    response = await partner.clients.control.json("GET", f"/control/phones/{digits}?{query}")
    messages: list[dict[str, Any]] = response["messages"]
    return messages


async def wait_for_phone_message(
    partner: PartnerForTest, digits: str, wanted: MessageWaitBody
) -> dict[str, Any] | None:
    """Return the first match that was not returned before, or None after the timeout; looks at least once."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + wanted.timeout_ms / 1000
    while True:
        partner.check_exists()
        chat = await read_chat(partner, digits)
        for view in chat:
            if view["wamid"] not in partner.returned_wamids and _is_match(view, wanted):
                partner.returned_wamids.add(view["wamid"])
                return view
        left_ms = round((ends_s - loop.time()) * 1000)
        if left_ms <= 0:
            return None
        last = max((int(view["position"]) for view in chat), default=0)
        await read_chat(partner, digits, after=last, wait_ms=min(left_ms, _MAX_WAIT_MS))


def _is_match(view: Mapping[str, Any], wanted: MessageWaitBody) -> bool:
    return (
        view["direction"] == "to_phone"
        and wanted.text in str(view.get("text") or "")
        and wanted.type in ("", view["type"])
        and wanted.message_id in ("", view.get("callback_data"))
        and (not wanted.button or wanted.button in button_labels(view))
    )


MAX_PARTNERS: Final = 1000
"""Partners at the same time."""
_SUBSCRIPTION_OPTIONS: Final = ("version", "modes", "headers")

AsyncCall = TypeVar("AsyncCall", bound=Callable[..., Any])


def _translate_errors(call: AsyncCall) -> AsyncCall:
    """Return a call whose errors of other APIs become errors of the control API."""

    @wraps(call)
    async def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            return await call(*args, **kwargs)
        except ApiResponseError as error:
            status = error.status if 400 <= error.status < 500 else 503
            raise ControlApiError(error.field or "partner", str(error), error.accepted, status=status) from error

    return cast("AsyncCall", translated)


class PartnerRegistry:
    """Implements `DevPartners`. The partners are kept in memory, until they are deleted or the process ends.

    Args:
        service: the service's application.
        simulator: the simulator's application.
        urls: under which both sides reach each other.
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

    def find_inbox(self, partner_id: str) -> PartnerInbox | None:
        """Return the inbox of a partner; None if there is none with this id."""
        partner = self._partners.get(partner_id)
        return None if partner is None else partner.inbox

    @_translate_errors
    async def create_partner(self, body: PartnerBody) -> PartnerView:  # noqa: D102  see `DevPartners`
        if len(self._partners) + self._in_creation >= MAX_PARTNERS:
            rule = f"there are {MAX_PARTNERS} partners at once"
            raise ControlApiError("partners", rule, "DELETE /control/partners/{partner_id} of others", status=409)
        visible_urls = BaseUrls(
            body.api_url.rstrip("/") or self._urls.base_url, body.graph_url.rstrip("/") or self._urls.graph_url
        )
        self._in_creation += 1
        try:
            partner = await create_partner(
                self._clients,
                self._urls,
                visible_urls,
                name=body.name,
                seed=body.name or self._ids.secret(),
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

    async def list_partners(self) -> list[PartnerView]:  # noqa: D102
        return [partner.view() for partner in self._partners.values()]

    async def show_partner(self, partner_id: str) -> PartnerView:  # noqa: D102
        return self._get(partner_id).view()

    @_translate_errors
    async def delete_partner(self, partner_id: str) -> str:  # noqa: D102
        partner = self._get(partner_id)
        faults = (await self._clients.control.json("GET", "/control/faults"))["faults"]
        for fault in faults:
            if fault.get("waba_id") == partner.names.waba_id:
                try:
                    await self._clients.control.json("DELETE", f"/control/faults/{fault['id']}")
                except ApiResponseError as error:
                    if error.status != 404:
                        raise
        await partner.call_partner_api("DELETE", "/subscription")
        self._end(partner, "was deleted")
        return partner_id

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
    async def add_phone(self, partner_id: str, body: PartnerPhoneBody) -> PartnerPhone:  # noqa: D102
        digits = await add_named_phone(self._get(partner_id), body.name, body.number or "")
        return PartnerPhone(body.name, digits)

    @_translate_errors
    async def change_rates(self, partner_id: str, body: RatesBody) -> PartnerRates:  # noqa: D102
        path = f"/admin/apps/{self._get(partner_id).app_id}/rates"
        changed = await self._clients.admin.json("PUT", path, {"rates": body.rates, "reset": body.reset})
        return PartnerRates(**changed)

    @_translate_errors
    async def change_callbacks(self, partner_id: str, body: CallbacksBody) -> PartnerView:  # noqa: D102
        changes = present_members(body)
        if "headers" in changes:
            changes["headers"] = tuple(sorted(changes["headers"].items()))
        partner = self._get(partner_id)
        inbox, before = partner.inbox, partner.inbox.options
        inbox.options = replace(before, **changes)
        if any(getattr(before, name) != getattr(inbox.options, name) for name in _SUBSCRIPTION_OPTIONS):
            try:
                await subscribe_inbox(partner)
            except ApiResponseError:
                inbox.options, partner.subscription_id = before, ""
                await subscribe_inbox(partner)
                raise
        return partner.view()

    async def list_callbacks(self, partner_id: str, query: CallbacksQuery) -> list[CallbackAttemptView]:  # noqa: D102
        attempts = [attempt for attempt in self._get(partner_id).inbox.attempts if attempt.position > query.after]
        return attempts[max(0, len(attempts) - query.limit) :]

    @_translate_errors
    async def wait_for_message(self, partner_id: str, body: MessageWaitBody) -> dict[str, Any]:  # noqa: D102
        partner = self._get(partner_id)
        name, digits = resolve_phone(partner, body.phone)
        message = await wait_for_phone_message(partner, digits, body)
        if message is None:
            title = f"no message {_describe_message_filter(body)}came to {name} ({digits})"
            title += f" within {body.timeout_ms / 1000:g} s"
            received = await read_chat(partner, digits)
            raise NotReceived(await explain_missing_message(partner, title, name, digits, received))
        return message

    @_translate_errors
    async def wait_for_callback(self, partner_id: str, body: CallbackWaitBody) -> CallbackAttemptView:  # noqa: D102
        partner = self._get(partner_id)
        callback = await partner.inbox.wait(body, body.timeout_ms, check=partner.check_exists)
        if callback is None:
            title = f"no callback {_describe_callback_filter(body)}came within {body.timeout_ms / 1000:g} s"
            raise NotReceived(await explain_missing_callback(partner, title, body.message_id))
        partner.inbox.mark_returned(callback)
        return callback

    @_translate_errors
    async def expect_no_callback(self, partner_id: str, body: NoCallbackBody) -> None:  # noqa: D102
        partner = self._get(partner_id)
        callback = await partner.inbox.wait(body, body.ms, check=partner.check_exists)
        if callback is not None:
            title = f"a callback {_describe_callback_filter(body)}came"
            title += f", and none was expected within {body.ms / 1000:g} s"
            raise NotReceived(await explain_unwanted_callback(partner, title, callback))

    @_translate_errors
    async def decide_template(  # noqa: D102
        self, partner_id: str, name: str, action: str, body: TemplateDecisionBody
    ) -> dict[str, Any]:
        details = {key: text for key, text in (("reason", body.reason), ("explanation", body.explanation)) if text}
        return await decide_on_template(self._get(partner_id), name, action, details, body.timeout_ms)

    @_translate_errors
    async def explain_partner(self, partner_id: str) -> str:  # noqa: D102
        partner = self._get(partner_id)
        chats = {name: await read_chat(partner, digits) for name, digits in partner.phones.items()}
        return await describe_partner(partner, chats)

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


def _describe_message_filter(wanted: MessageWaitBody) -> str:
    """Return the conditions in words, each followed by a space."""
    text = f'with "{wanted.text}" ' if wanted.text else ""
    text += f"of type {wanted.type} " if wanted.type else ""
    text += f"with the id {wanted.message_id} " if wanted.message_id else ""
    return text + (f"with a button [{wanted.button}] " if wanted.button else "")


def _describe_callback_filter(wanted: CallbackFilterBody) -> str:
    """Return the conditions in words, each followed by a space."""
    text = f"`{wanted.kind}` " if wanted.kind else ""
    text += f"about {wanted.message_id} " if wanted.message_id else ""
    for name in ("phone", "text", "postback_text"):
        value = getattr(wanted, name).lstrip("+") if name == "phone" else getattr(wanted, name)
        text += f'with {name} "{value}" ' if value else ""
    return text
