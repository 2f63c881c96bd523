"""Accepting messages from a business: check, plan the delivery, store with the planned statuses, respond."""

import base64
from functools import partial
from typing import Any, Final

from msgspec.structs import asdict, replace

from waypost.base.ids import Ids
from waypost.base.json_values import object_of, text_or_none
from waypost.simulator.messages.delivery import decide_delivery
from waypost.simulator.messages.direct_send import attribute_to_template
from waypost.simulator.messages.groups import write_group_message
from waypost.simulator.messages.held_messages import find_reachable_links, hold
from waypost.simulator.messages.limits import count_message, find_fail_code
from waypost.simulator.messages.message_checks import GROUP_PREFIX, CheckedMessage, check_content, check_recipient
from waypost.simulator.messages.statuses import CHAT_MEMORY_MS, SENT_ONLY_TYPES, plan_updates
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.phones import find_or_create_phone, note_contact, show_to_business
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.store import Statement
from waypost.simulator.storage.tables.messages import MESSAGES, SimulatedMessage
from waypost.simulator.storage.tables.phone_plans import (
    COUNT_PLANNED_STEP,
    PLANNED_ACTIONS,
    WAITING_MESSAGES,
    build_waiting_message,
)
from waypost.simulator.templates.model import record_use

_REACTION_FAIL_CODE: Final = 131009


async def accept_message(
    state: SimulatorState,
    number: Number,
    request: dict[str, Any],
    *,
    fail_code: int | None = None,
    to_marketing: bool = False,
) -> dict[str, Any]:
    """Check a message, store it with its planned statuses, and return the response.

    Checks in this order: the envelope, the number's restrictions, the content, the sender as recipient, blocks, a
    closed window if the settings report that at once, the limits.

    Raises:
        GraphApiError: for the first violation; by default a closed window is only reported in a status.

    Source: facts 4, 5.2; the operator's pages "Reaction messages" and "Contextual replies".
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
        wamid=sent_wamid(state.ids, number.phone_number if checked.is_to_group else checked.phone),
        phone=checked.phone,
        phone_number_id=number.phone_number_id,
        is_inbound=0,
        type=checked.type,
        at_ms=state.clock.now_ms(),
        content=checked.rendered,
        callback_data=checked.callback_data,
        context_id=quoted_id,
    )
    accepted = {"id": message.wamid}
    if checked.is_to_group:
        code = find_fail_code(state, number) if fail_code is None else fail_code
        category = "service" if checked.template is None else checked.template.category.lower()
        await state.transact(lambda transaction: write_group_message(transaction, number, message, category, code))
        group_id = checked.phone.removeprefix(GROUP_PREFIX)
        return _build_response({"input": group_id, "wa_id": group_id}, accepted)
    is_in_window = check_recipient(state, number, checked)
    state.delivery_signals.end_typing(number, checked.phone)
    notes = count_message(state, number, checked.phone, checked.rendered, message.wamid, is_free=is_in_window)
    if request.get("to"):
        note_contact(state, checked.phone, number.phone_number_id, message.at_ms)
    if checked.template is not None:
        notes += record_use(state, checked.template)
        accepted["message_status"] = "held_for_quality_assessment" if checked.template.is_paced else "accepted"
    template_id = ""
    if checked.direct.category:
        template, direct_code = await attribute_to_template(state, number.waba_id, checked.direct, checked.rendered)
        fail_code = direct_code if fail_code is None else fail_code
        if template is not None:
            template_id = template.template_id
            notes += record_use(state, template)
    if fail_code is None:
        fail_code = find_fail_code(state, number)
    await _write_message(state, number, message, checked, template_id, notes, is_in_window, fail_code)
    return _build_response(_build_contact(state, number, request, checked.phone), accepted)


async def _write_message(
    state: SimulatorState,
    number: Number,
    message: SimulatedMessage,
    checked: CheckedMessage,
    template_id: str,
    notes: list[Statement],
    is_in_window: bool,
    fail_code: int | None,
) -> None:
    """Store a message to a phone with its planned statuses and actions, or hold it.

    Nothing is awaited between the plan and the write: a later change of the phone finds the message in the file.
    """
    phone = find_or_create_phone(state, message.phone)
    decision = decide_delivery(state, number, phone, message, checked, is_in_window=is_in_window, fail_code=fail_code)
    plan = partial(
        plan_updates,
        state,
        number,
        message,
        show_to_business(state, phone, number.phone_number_id, message.at_ms),
        checked.price_category,
        is_in_window=is_in_window,
        template_id=template_id,
    )
    links, not_fetched = find_reachable_links(state, checked.rendered)
    if not_fetched:
        message = replace(message, content={**checked.rendered, "not_fetched": not_fetched})
    is_paced = checked.template is not None and checked.template.is_paced
    is_held = is_paced or (bool(links) and decision.delivery_plan.failed_code is None)
    script_plan = decision.script_plan.postpone() if is_held else decision.script_plan
    updates = plan(decision.delivery_plan)
    insert = MESSAGES.insert(message if is_held else replace(message, **asdict(decision.delivery_plan)))

    def write(transaction: Transaction) -> None:
        transaction.add(insert)
        transaction.run(
            *notes,
            *map(PLANNED_ACTIONS.insert, script_plan.actions),
            *((COUNT_PLANNED_STEP, counted) for counted in script_plan.counted_steps),
        )
        if is_held:
            hold(transaction, number, message, checked, decision, links, plan)
            return
        if decision.waits_until_ms is not None:
            # The later status has the same price as `sent`.
            status = updates[0].content if updates and message.type not in SENT_ONLY_TYPES else None
            waiting = build_waiting_message(
                message, number.waba_id, decision.waits_until_ms, decision.read_after_ms, status
            )
            transaction.run(WAITING_MESSAGES.insert(waiting))
        transaction.send(*updates)
        transaction.wake_phone(message.phone)
        if script_plan.actions:
            transaction.follow(state.delivery_signals.actions_planned.set)

    await state.transact(write)


async def _find_in_chat(
    state: SimulatorState, number: Number, checked: CheckedMessage, wamid: str
) -> SimulatedMessage | None:
    """Return a message of the recipient's chat with this number; None if there is none, or it is too old."""
    since_ms = state.clock.now_ms() - CHAT_MEMORY_MS
    found = await MESSAGES.find(state.store, wamid=wamid, phone=checked.phone, phone_number_id=number.phone_number_id)
    return next((message for message in found if message.at_ms >= since_ms), None)


def _build_contact(state: SimulatorState, number: Number, request: dict[str, Any], phone: str) -> dict[str, Any]:
    """Return the recipient as a contact for the response. Source: facts 4.3, 7.5."""
    handset = find_or_create_phone(state, phone)
    if request.get("to"):
        user = {"user_id": handset.user_id} if handset.user_id else {}
        return {"input": request["to"], "wa_id": handset.whatsapp_id, **user}
    seen = show_to_business(state, handset, number.phone_number_id, state.clock.now_ms())
    return {"input": request["recipient"], **seen.identity_members("wa_id", "user_id")}


def _build_response(contact: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]}


def sent_wamid(ids: Ids, phone: str) -> str:
    """Return a new id for a message from a business to a phone, whose digits are part of it.

    Source: facts 1, "Message id", decoded samples.
    """
    return _wamid(ids, phone, b"\x11\x18\x12", 18)


def received_wamid(ids: Ids, phone: str) -> str:
    """Return a new id for a message from a phone to a business. Source: facts 1, "Message id"."""
    return _wamid(ids, phone, b"\x12\x18\x14", 20)


def _wamid(ids: Ids, phone: str, kind: bytes, chance_chars: int) -> str:
    digits, chance = phone.encode(), ids.new().replace("-", "").upper()[-chance_chars:].encode()
    raw = b"".join((b"\x1c\x18", bytes([len(digits)]), digits, b"\x15\x02\x00", kind, chance, b"\0"))
    return "wamid." + base64.b64encode(raw).decode()
