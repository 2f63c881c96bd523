"""Accepting messages from a business: check, plan the delivery, store with the planned statuses, respond."""

import base64
from typing import Any, Final

from msgspec.structs import asdict, replace

from waypost.base.ids import Ids
from waypost.base.json_values import object_of, text_or_none
from waypost.base.written_numbers import encode_json
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.messages.direct_send import TemplateAttribution, attribute_to_template
from waypost.simulator.messages.groups import group_contact, write_group_message
from waypost.simulator.messages.held_messages import (
    DROPPED_CODE,
    MEDIA_FAILED_CODE,
    find_reachable_links,
    hold,
    start_fetches,
)
from waypost.simulator.messages.limits import count_message, find_fail_code
from waypost.simulator.messages.marketing import MARKETING_CATEGORY
from waypost.simulator.messages.message_checks import CheckedMessage, check_content, check_recipient
from waypost.simulator.messages.statuses import (
    CHAT_MEMORY_MS,
    SENT_ONLY_TYPES,
    DeliveryDecision,
    StatusContext,
    decide_delivery,
    plan_updates,
)
from waypost.simulator.phones.scripts import ScriptPlan
from waypost.simulator.services import SimulatorServices
from waypost.simulator.simulator_state import Transaction
from waypost.simulator.store import Statement
from waypost.simulator.tables.messages import MESSAGES, DeliveryPlan, SimulatedMessage
from waypost.simulator.tables.phone_plans import (
    COUNT_PLANNED_STEP,
    PLANNED_ACTIONS,
    WAITING_MESSAGES,
    build_waiting_message,
)
from waypost.simulator.tables.updates import Update

_REACTION_FAIL_CODE: Final = 131009


async def accept_message(
    state: SimulatorServices,
    number: Number,
    request: dict[str, Any],
    raw: bytes,
    *,
    fail_code: int | None = None,
    to_marketing: bool = False,
) -> dict[str, Any]:
    """Check a message, store it with its planned statuses, and return the response.

    Checks in this order: the envelope, the number's restrictions, the content, the sender as recipient, blocks, a
    closed window if the settings report that at once, the limits. Raises GraphApiError: for the first violation; by
    default a closed window is only reported in a status. Source: facts 4, 5.2; the operator's pages "Reaction messages"
    and "Contextual replies".
    """
    checked = check_content(state, number, request, to_marketing=to_marketing)
    quoted_id = text_or_none(object_of(request.get("context")).get("message_id"))
    if quoted_id and (checked.template or await _find_in_chat(state, number, checked, quoted_id) is None):
        quoted_id = None  # such a message is shown without the bubble
    if checked.type == "reaction" and fail_code is None and state.settings.value.check_references:
        target = await _find_in_chat(state, number, checked, checked.rendered["reaction"]["message_id"])
        fail_code = _REACTION_FAIL_CODE if target is None or target.type == "reaction" else None
    message = SimulatedMessage(
        position=state.delivery_signals.next_position(),
        wamid=sent_wamid(state.ids, number.phone_number if checked.group else checked.phone),
        phone=checked.phone,
        phone_number_id=number.phone_number_id,
        is_inbound=0,
        type=checked.type,
        at_ms=state.clock.now_ms(),
        shown=encode_json(checked.rendered).decode(),
        body=raw.decode(errors="replace"),
        callback_data=checked.callback_data,
        context_id=quoted_id,
    )
    accepted = {"id": message.wamid}
    if checked.group is not None:
        code = find_fail_code(state, number) if fail_code is None else fail_code
        await write_group_message(state, number, message, checked, code)
        return _build_response(group_contact(checked.group), accepted)
    is_in_window = check_recipient(state, number, checked)
    state.delivery_signals.end_typing(number, checked.phone)
    notes = count_message(state, number, checked.phone, checked.rendered, message.wamid, is_free=is_in_window)
    if request.get("to"):
        notes += state.phones.note_contact_statements(checked.phone, number.phone_number_id, message.at_ms)
    if checked.template is not None:
        notes += state.templates.record_use(checked.template)
        accepted["message_status"] = "held_for_quality_assessment" if checked.template.is_paced else "accepted"
    attribution = TemplateAttribution()
    if checked.direct.category:
        attribution = await attribute_to_template(state, number.waba_id, checked.direct, checked.rendered)
        if attribution.template is not None:
            notes += state.templates.record_use(attribution.template)
    fail_code = attribution.fail_code if fail_code is None else fail_code
    if fail_code is None:
        fail_code = find_fail_code(state, number)
    await _write_message(
        state, number, message, checked, attribution.template_id, notes, is_in_window=is_in_window, fail_code=fail_code
    )
    return _build_response(_build_contact(state, number, request, checked.phone), accepted)


async def _write_message(
    state: SimulatorServices,
    number: Number,
    message: SimulatedMessage,
    checked: CheckedMessage,
    template_id: str,
    notes: list[Statement],
    *,
    is_in_window: bool,
    fail_code: int | None,
) -> None:
    """Store a message to a phone with its planned statuses and actions, or hold it.

    Nothing is awaited between the plan and the write: a later change of the phone finds the message in the file.
    """
    template, rendered = checked.template, checked.rendered
    phone = state.phones.find_or_create(message.phone)
    decision = decide_delivery(
        state,
        number,
        phone,
        template,
        rendered,
        wamid=message.wamid,
        now_ms=message.at_ms,
        is_in_window=is_in_window,
        direct=checked.direct,
        fail_code=fail_code,
    )
    sent = StatusContext(
        message=message,
        waba_id=number.waba_id,
        phone=state.phones.seen_by(phone, number.phone_number_id, message.at_ms),
        category=_price_category(checked),
        is_in_window=is_in_window,
        template_id=template_id,
    )

    def plan(delivery_plan: DeliveryPlan) -> list[Update]:
        return plan_updates(state, sent, delivery_plan) if state.outbox.has_subscribers(number.waba_id) else []

    updates = plan(decision.delivery_plan)
    links, not_fetched = find_reachable_links(state, rendered)
    if not_fetched:
        message = replace(message, shown=encode_json({**rendered, "not_fetched": not_fetched}).decode())
    is_paced = template is not None and template.is_paced
    if is_paced or (links and decision.delivery_plan.failed_code is None):
        code = DROPPED_CODE if is_paced else MEDIA_FAILED_CODE
        dropped = plan(DeliveryPlan(failed_ms=message.at_ms, failed_code=code))
        notes.append(hold(state, template, message, number.waba_id, decision, updates, dropped))
        actions = decision.script_plan.postpone()
        await state.transact(lambda transaction: _insert_message(transaction, message, notes, actions))
        if template is not None and is_paced:
            state.held_template_ids.add(template.template_id)  # again: it may have been released meanwhile
            state.templates.changed.set()
        else:
            start_fetches(state, message.wamid, links)
        return
    message = replace(message, **asdict(decision.delivery_plan))
    if decision.waits_until_ms is not None:
        notes.append(_wait_for_phone(message, number, decision, updates))

    def write(transaction: Transaction) -> None:
        _insert_message(transaction, message, notes, decision.script_plan)
        transaction.send(*updates)
        transaction.wake_phone(message.phone)
        if decision.script_plan.actions:
            transaction.follow(state.delivery_signals.actions_planned.set)

    await state.transact(write)


def _wait_for_phone(
    message: SimulatedMessage, number: Number, decision: DeliveryDecision, updates: list[Update]
) -> Statement:
    """Return the statement that makes a message wait for its phone; the later status has the same price as `sent`."""
    rest = updates[0].rest if updates and message.type not in SENT_ONLY_TYPES else ""
    until_ms = decision.waits_until_ms or 0
    return WAITING_MESSAGES.insert(
        build_waiting_message(message, number.waba_id, until_ms, decision.read_after_ms, rest)
    )


def _insert_message(
    transaction: Transaction, message: SimulatedMessage, notes: list[Statement], plan: ScriptPlan
) -> None:
    transaction.add(MESSAGES.insert(message))
    transaction.run(
        *notes,
        *map(PLANNED_ACTIONS.insert, plan.actions),
        *((COUNT_PLANNED_STEP, counted) for counted in plan.counted_steps),
        *plan.use_statements,
    )


def _price_category(checked: CheckedMessage) -> str:
    """Return the category of a message's price. Source: facts 7.3."""
    if checked.is_marketing:
        return MARKETING_CATEGORY
    if checked.template is not None:
        return checked.template.category.lower()
    return checked.direct.category or "service"


async def _find_in_chat(
    state: SimulatorServices, number: Number, checked: CheckedMessage, wamid: str
) -> SimulatedMessage | None:
    """Return a message of the recipient's chat with this number; None if there is none, or it is too old."""
    since_ms = state.clock.now_ms() - CHAT_MEMORY_MS
    found = await MESSAGES.find(state.store, wamid=wamid, phone=checked.phone, phone_number_id=number.phone_number_id)
    return next((message for message in found if message.at_ms >= since_ms), None)


def _build_contact(state: SimulatorServices, number: Number, request: dict[str, Any], phone: str) -> dict[str, Any]:
    """Return the recipient as a contact for the response. Source: facts 4.3, 7.5."""
    handset = state.phones.find_or_create(phone)
    if request.get("to"):
        user = {"user_id": handset.user_id} if handset.user_id else {}
        return {"input": request["to"], "wa_id": handset.whatsapp_id, **user}
    seen = state.phones.seen_by(handset, number.phone_number_id, state.clock.now_ms())
    return {"input": request["recipient"], **seen.identity_members("wa_id", "user_id")}


def _build_response(contact: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]}


_WAMID_HEAD: Final = b"\x1c\x18"
_WAMID_MIDDLE: Final = b"\x15\x02\x00"


def sent_wamid(ids: Ids, phone: str) -> str:
    """Return a new id for a message from a business to a phone, whose digits are part of it.

    Source: facts 1, "Message id", decoded samples.
    """
    return _wamid(phone, b"\x11\x18\x12", _hex(ids)[-18:])


def received_wamid(ids: Ids, phone: str) -> str:
    """Return a new id for a message from a phone to a business. Source: facts 1, "Message id"."""
    return _wamid(phone, b"\x12\x18\x14", _hex(ids)[-20:])


def _hex(ids: Ids) -> str:
    return ids.new().replace("-", "").upper()


def _wamid(phone: str, kind: bytes, chance: str) -> str:
    digits = phone.encode()
    raw = b"".join((_WAMID_HEAD, bytes([len(digits)]), digits, _WAMID_MIDDLE, kind, chance.encode(), b"\0"))
    return "wamid." + base64.b64encode(raw).decode()
