"""Messages held until their template's quality or their media is known, and then released or dropped."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace

from waypost.simulator.apis.link_fetches import OperatorMediaLink, find_links
from waypost.simulator.messages.delivery import DeliveryDecision
from waypost.simulator.messages.message_checks import CheckedMessage
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.phones import find_phone
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.tables.messages import MESSAGES, DeliveryPlan, SimulatedMessage, find_by_wamids
from waypost.simulator.storage.tables.phone_plans import (
    HELD_KIND,
    PLANNED_ACTIONS,
    WAITING_MESSAGES,
    build_waiting_message,
    resume_message_actions,
)
from waypost.simulator.storage.tables.updates import Update
from waypost.simulator.templates.model import TEMPLATES
from waypost.simulator.templates.template import lifetime_ms

_DROPPED_CODE: Final = 132015  # Source: facts 3.2, "pacing"
_MEDIA_FAILED_CODE: Final = 131053  # Source: facts 5.2
_MEDIA_OWNER: Final = "media"


class HeldMessage(msgspec.Struct, frozen=True):
    """A held message and its statuses: `updates` if it is released, `dropped` if it is not.

    Its times are those of a release at the moment it was accepted.
    """

    waba_id: str
    message: SimulatedMessage  # without its content
    delivery_plan: DeliveryPlan
    is_awaited: bool  # its phone was offline
    lifetime_ms: int
    read_after_ms: int | None
    updates: list[Update]
    dropped: list[Update]


_HELD: Final = StoredKind(HELD_KIND, HeldMessage, in_memory=False)
"""Held messages by id: of a template, or of `_MEDIA_OWNER`."""


async def resume_held(state: SimulatorState) -> None:
    """Go on with the messages that were held when the simulator stopped: fetch their links, know their templates."""
    owners = await state.store.column("SELECT DISTINCT owner FROM state WHERE kind=:kind", kind=HELD_KIND)
    state.held_template_ids.update({*owners} - {_MEDIA_OWNER})
    held = await state.store.read(lambda connection: _HELD.values_on(connection, _MEDIA_OWNER))
    for message in await find_by_wamids(state.store, list(held)):
        start_fetches(state, message.wamid, find_reachable_links(state, message.content)[0])


def hold(
    transaction: Transaction,
    number: Number,
    message: SimulatedMessage,
    checked: CheckedMessage,
    decision: DeliveryDecision,
    links: Sequence[OperatorMediaLink],
    plan: Callable[[DeliveryPlan], list[Update]],
) -> None:
    """Hold a message that is being accepted: until its template's pacing ends, or its links have been fetched.

    Args:
        decision: its delivery as if it were not held.
        plan: returns its statuses by a plan of its delivery.
    """
    state, planned, read_after_ms = transaction.state, decision.delivery_plan, decision.read_after_ms
    if planned.delivered_ms is not None and planned.read_ms is not None:
        read_after_ms = planned.read_ms - planned.delivered_ms
    template_id = checked.template.template_id if checked.template is not None and checked.template.is_paced else ""
    owner = template_id or _MEDIA_OWNER
    held = HeldMessage(
        waba_id=number.waba_id,
        message=replace(message, content={}),
        delivery_plan=planned,
        is_awaited=decision.waits_until_ms is not None,
        lifetime_ms=lifetime_ms(checked.template),
        read_after_ms=read_after_ms,
        updates=plan(planned),
        dropped=plan(DeliveryPlan(failed_ms=message.at_ms, failed_code=_dropped_code(owner))),
    )
    transaction.run(_HELD.save_statement(held, message.wamid, owner))
    if template_id:
        transaction.follow(partial(state.held_template_ids.add, template_id))
        transaction.follow(state.templates_changed.set)
    else:
        transaction.follow(partial(start_fetches, state, message.wamid, links))


def _dropped_code(owner: str) -> int:
    return _MEDIA_FAILED_CODE if owner == _MEDIA_OWNER else _DROPPED_CODE


def find_reachable_links(state: SimulatorState, rendered: dict[str, Any]) -> tuple[list[OperatorMediaLink], list[str]]:
    """Return the links of a message that are to be fetched, and the URLs that may not be reached from here."""
    links = list(find_links(rendered)) if state.link_fetcher.is_on else []
    reachable = [link for link in links if state.link_fetcher.may_reach(link)]
    return reachable, [link.url for link in links if link not in reachable]


def start_fetches(state: SimulatorState, wamid: str, links: Sequence[OperatorMediaLink]) -> None:
    """Fetch a held message's links in a task of its own, then release or drop the message."""

    async def check() -> None:
        problems = await asyncio.gather(*map(state.link_fetcher.find_problem, links))
        problem = next((problem for problem in problems if problem is not None), None)
        await state.transact(lambda transaction: _decide_media(transaction, wamid, problem))

    state.link_fetcher.start(check())


def _decide_media(transaction: Transaction, wamid: str, problem: str | None) -> None:
    """Release a message whose media was fetched, or drop it for a problem, unless it no longer waits."""
    held = transaction.find(_HELD, wamid, _MEDIA_OWNER)
    if held is None:
        return
    if problem is not None:
        for update in held.dropped:
            [error] = update.content["status"]["errors"]
            error["error_data"]["details"] = problem
    _release_or_drop(transaction, held, _MEDIA_OWNER, is_released=problem is None)


def find_decided_templates(state: SimulatorState) -> list[tuple[str, bool]]:
    """Return the templates whose pacing has ended: their ids, and whether their messages are released."""
    templates = [
        (template_id, state.values(TEMPLATES).get(template_id)) for template_id in sorted(state.held_template_ids)
    ]
    return [
        (template_id, template is not None and template.pace_verdict == "release")
        for template_id, template in templates
        if template is None or not template.is_paced
    ]


async def release_or_drop_all(state: SimulatorState, template_id: str, *, is_released: bool) -> None:
    """Release or drop a template's held messages, all in one transaction."""
    state.held_template_ids.discard(template_id)

    def write(transaction: Transaction) -> None:
        for held in transaction.values(_HELD, template_id).values():
            _release_or_drop(transaction, held, template_id, is_released=is_released)

    await state.transact(write)


def _release_or_drop(transaction: Transaction, held: HeldMessage, owner: str, *, is_released: bool) -> None:
    state, message = transaction.state, held.message
    now_ms = state.clock.now_ms()
    delay_ms = now_ms - message.at_ms

    def send(updates: Sequence[Update]) -> None:
        for update in updates:
            transaction.send(replace(update, due_ms=update.due_ms + delay_ms))

    transaction.run(_HELD.delete_statement(message.wamid, owner))
    transaction.wake_phone(message.phone)
    transaction.follow(state.delivery_signals.actions_planned.set)
    if not is_released:
        failure = DeliveryPlan(failed_ms=now_ms, failed_code=_dropped_code(owner))
        transaction.run(
            MESSAGES.update(asdict(failure), position=message.position), PLANNED_ACTIONS.delete(wamid=message.wamid)
        )
        send(held.dropped)
        return
    if find_phone(state, message.phone).is_offline:
        status = held.updates[0].content if held.updates else None
        until_ms = now_ms + held.lifetime_ms
        waiting = build_waiting_message(message, held.waba_id, until_ms, held.read_after_ms, status)
        transaction.run(WAITING_MESSAGES.insert(waiting))
        send(held.updates[:1])
        return
    planned, updates = held.delivery_plan, held.updates
    if held.is_awaited:  # its phone is online again
        planned = replace(planned, delivered_ms=message.at_ms, read_ms=None)
        updates = [replace(update, kind=kind) for update in held.updates[:1] for kind in ("sent", "delivered")]
    times_ms = {name: at_ms + delay_ms for name, at_ms in asdict(planned).items() if at_ms is not None}
    shifted = DeliveryPlan(**times_ms | {"failed_code": planned.failed_code})
    transaction.run(
        MESSAGES.update(asdict(shifted), position=message.position),
        resume_message_actions(message.wamid, shifted.delivered_ms),
    )
    send(updates)
