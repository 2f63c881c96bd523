"""The door's calls about callbacks: subscriptions and their keys, what was sent, and sending it again."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from sqlalchemy import Connection
from starlette.requests import Request

from waypost.admin.actions import Office
from waypost.admin.reading import Nothing, number_in, read_body
from waypost.base.clock import machine_ms
from waypost.domain.answer_report import report_of
from waypost.domain.refusals import Reason, Refused
from waypost.domain.subscription import Subscription
from waypost.outbound.vetted import VettedClient
from waypost.store.callbacks import callback_with_attempts
from waypost.store.partners import app_by_id
from waypost.store.receiver_answers import answer_times
from waypost.store.receivers import Whose, receivers, renew_key, resume_subscription
from waypost.store.replays import Wanted, append_replays, count_wanted
from waypost.store.subscriptions import Unseal, subscriptions_by_ids
from waypost.wire import callback_v2, callback_v3
from waypost.wire.redaction import shown_callback
from waypost.wire.signatures import key_text, laid_over, signature_headers

Call = Callable[[Request], Awaitable[Any]]
CircuitOf = Callable[[int], str | None]
"""Gives the state of a subscription's circuit; None where this process does not work it."""

DAY_MS: Final = 86_400_000
KEEP_OLD_FOR_S: Final = 86_400
MOST_KEEP_OLD_S: Final = 30 * 86_400
MOST_REPLAYED: Final = 100_000
"""In one call. Who wants more names a shorter time, several times."""

_END_OF_TIME_MS: Final = 1 << 53


class _Rotation(msgspec.Struct, forbid_unknown_fields=True):
    keep_old_for_s: int = KEEP_OLD_FOR_S


class _Replay(msgspec.Struct, forbid_unknown_fields=True):
    callback_id: str | None = None
    subscription_id: int | None = None
    app_id: str | None = None
    partner_id: int | None = None
    recipient: str | None = None
    news: str | None = None
    delivered: bool | None = None
    from_ms: int = 0
    to_ms: int = _END_OF_TIME_MS
    dry_run: bool = False


class CallbackCalls:
    """Plain calls; the door guards them.

    Args:
        office: what an administrator works with.
        circuit_of: gives the state of a subscription's circuit.
        outbound: posts to addresses that partners chose.
    """

    def __init__(self, office: Office, circuit_of: CircuitOf, outbound: VettedClient) -> None:
        self._office = office
        self._circuit_of = circuit_of
        self._outbound = outbound

    def table(self) -> tuple[tuple[str, str, Call], ...]:
        """Method, path and call of each."""
        # fmt: off
        return (
            ("GET",  "/admin/subscriptions",                                self._subscriptions),
            ("GET",  "/admin/subscriptions/{subscription_id}",              self._subscription),
            ("POST", "/admin/subscriptions/{subscription_id}/check",        self._check),
            ("POST", "/admin/subscriptions/{subscription_id}/resume",       self._resume),
            ("GET",  "/admin/subscriptions/{subscription_id}/key",          self._key),
            ("POST", "/admin/subscriptions/{subscription_id}/key/rotate",   self._rotate),
            ("GET",  "/admin/callbacks/report",                             self._report),
            ("POST", "/admin/callbacks/replay",                             self._replay),
            ("GET",  "/admin/callbacks/{callback_id}",                      self._callback),
            ("POST", "/admin/callbacks/{callback_id}/reveal",               self._reveal),
        )
        # fmt: on

    async def _subscriptions(self, request: Request) -> Any:
        found = await self._office.database.read(receivers, _whose_in(request))
        return {"subscriptions": [self._shown(one) for one in found]}

    async def _subscription(self, request: Request) -> Any:
        whose = Whose(id=number_in(request, "subscription_id"))
        found = await self._office.database.read(receivers, whose)
        if not found:
            raise _unknown()
        return self._shown(found[0])

    async def _check(self, request: Request) -> Any:
        await read_body(request, Nothing)
        known, office = number_in(request, "subscription_id"), self._office
        subscription = await office.database.read(_by_id, known, office.directory.unseal)
        if subscription is None:
            raise _unknown()
        app = await office.database.read(app_by_id, subscription.app_id)
        if app is None:
            raise _unknown()
        call_id, at_s = office.ids.new(), machine_ms() // 1000
        is_v2 = subscription.version == 2
        now_ms = office.clock.now_ms()
        body = callback_v2.check_body(app, now_ms) if is_v2 else callback_v3.check_body(app)
        keys = [office.seals.callback_key(known, one) for one in subscription.serials(now_ms)]
        headers = laid_over(subscription.headers, signature_headers(call_id, at_s, body, keys))
        answer = await self._outbound.post(subscription.url, body, headers)
        return {
            "taken": answer.status is not None and 200 <= answer.status < 300,
            "status": answer.status,
            "duration_ms": answer.duration_ms,
            "error": answer.error,
            "answer": answer.body.decode("utf-8", "replace"),
            "sent": body.decode(),
        }

    async def _resume(self, request: Request) -> Any:
        await read_body(request, Nothing)
        subscription_id = number_in(request, "subscription_id")
        found = await self._office.database.write(_resume, subscription_id)
        if found is None:
            raise _unknown()
        was_paused, now = found
        return self._shown(now) | {"was_paused": was_paused}

    async def _key(self, request: Request) -> Any:
        whose = Whose(id=number_in(request, "subscription_id"))
        found = await self._office.database.read(receivers, whose)
        if not found:
            raise _unknown()
        return self._keys(found[0])

    async def _rotate(self, request: Request) -> Any:
        given = await read_body(request, _Rotation)
        if not 0 <= given.keep_old_for_s <= MOST_KEEP_OLD_S:
            raise Refused(Reason.FIELD_BROKEN, f"keep_old_for_s must be 0 to {MOST_KEEP_OLD_S} seconds.")
        until_ms = self._office.clock.now_ms() + given.keep_old_for_s * 1000
        subscription_id = number_in(request, "subscription_id")
        if not await self._office.database.write(renew_key, subscription_id, until_ms):
            raise _unknown()
        [now] = await self._office.database.read(receivers, Whose(id=subscription_id))
        return self._keys(now)

    async def _report(self, request: Request) -> Any:
        now_ms = self._office.clock.now_ms()
        to_ms = _number_of(request, "to_ms", now_ms + 1)
        from_ms = _number_of(request, "from_ms", to_ms - DAY_MS)
        rows = await self._office.database.read(answer_times, _whose_in(request), from_ms, to_ms)
        return {"from_ms": from_ms, "to_ms": to_ms, "subscriptions": report_of(rows)}

    async def _callback(self, request: Request) -> Any:
        return await self._shown_callback(request, text=self._office.show_text)

    async def _reveal(self, request: Request) -> Any:
        await read_body(request, Nothing)
        return await self._shown_callback(request, text=True)

    async def _shown_callback(self, request: Request, *, text: bool) -> Any:
        found = await self._office.database.read(callback_with_attempts, str(request.path_params["callback_id"]))
        if found is None:
            raise Refused(Reason.NOT_FOUND, "There is no such callback.")
        return shown_callback(found, text=text)

    async def _replay(self, request: Request) -> Any:
        given = await read_body(request, _Replay)
        now_ms = self._office.clock.now_ms()
        named = (given.callback_id, given.subscription_id, given.app_id, given.partner_id)
        if all(one is None for one in named):
            raise Refused(Reason.FIELD_MISSING, "Name a callback_id, a subscription_id, an app_id or a partner_id.")
        wanted = Wanted(
            whose=Whose(given.subscription_id, given.app_id, given.partner_id),
            callback_id=given.callback_id,
            recipient=given.recipient,
            news=given.news,
            delivered=given.delivered,
            from_ms=given.from_ms,
            to_ms=min(given.to_ms, now_ms + 1),
        )
        counted = await self._office.database.read(count_wanted, wanted)
        if counted["callbacks"] > MOST_REPLAYED and not given.dry_run:
            raise Refused(
                Reason.FIELD_BROKEN,
                f"That are {counted['callbacks']} callbacks; name fewer than {MOST_REPLAYED} at once, "
                "by from_ms and to_ms for example.",
            )
        if given.dry_run:
            return {"would_replay": counted["callbacks"], "still_waiting": counted["waiting"]}
        return {"replayed": await self._append(wanted), "still_waiting": counted["waiting"]}

    async def _append(self, wanted: Wanted) -> int:
        appended, after = 0, None
        while True:
            count, after = await self._office.database.write(append_replays, wanted, after, self._office.clock.now_ms())
            appended += count
            if after is None:
                return appended

    def _keys(self, row: dict[str, Any]) -> dict[str, Any]:
        def shown(serial: int) -> str:
            return key_text(self._office.seals.callback_key(row["id"], serial))

        serial, until_ms = row["key_serial"], row["old_key_until_ms"]
        has_old = serial > 1 and (until_ms or 0) > self._office.clock.now_ms()
        return {
            "subscription_id": row["id"],
            "key": shown(serial),
            "old_key": shown(serial - 1) if has_old else None,
            "old_key_until_ms": until_ms if has_old else None,
        }

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        circuit = self._circuit_of(row["id"])
        return {**row, "state": _state(row), "circuit": circuit}


def _state(row: dict[str, Any]) -> str:
    """In one word: who has paused it, whether its address takes anything."""
    if not row["active"]:
        return "paused by its partner"
    if row["paused_on_ms"] is not None:
        return "paused"
    return "active" if row["failing_since_ms"] is None else "failing"


def _whose_in(request: Request) -> Whose:
    query = request.query_params
    return Whose(
        id=_number_of(request, "subscription_id", 0) or None,
        app_id=query.get("app_id"),
        partner_id=_number_of(request, "partner_id", 0) or None,
    )


def _number_of(request: Request, name: str, otherwise: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return otherwise
    if not (text.isascii() and text.isdecimal() and len(text) < 17):
        raise Refused(Reason.FIELD_BROKEN, f"{name} must be a number.")
    return int(text)


def _unknown() -> Refused:
    return Refused(Reason.NOT_FOUND, "There is no such subscription.")


def _by_id(connection: Connection, id: int, unseal: Unseal) -> Subscription | None:
    return subscriptions_by_ids(connection, {id}, unseal).get(id)


def _resume(connection: Connection, subscription_id: int) -> tuple[bool, dict[str, Any]] | None:
    """With what waits at this moment: a moment later the first of it may have been delivered."""
    was = resume_subscription(connection, subscription_id)
    if was is None:
        return None
    [now] = receivers(connection, Whose(id=subscription_id))
    return was.paused_on_ms is not None, now
