"""The admin API's operations on callbacks: subscriptions and their keys, sent callbacks, replays, reports."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from msgspec.structs import asdict
from sqlalchemy import Connection

from waypost.admin.messages import TracedCallback
from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext, check_filters
from waypost.admin.waits import explain_job
from waypost.base.clock import DAY_MS, machine_ms
from waypost.domain.callbacks import build_receiver_report
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, resource_not_found
from waypost.store.accounts.partners import app_by_id
from waypost.store.callbacks.callbacks import ReplayFilter, callback_with_attempts, count_replays, enqueue_replays
from waypost.store.callbacks.receivers import (
    SubscriptionFilter,
    list_receivers,
    request_retry,
    response_times,
    resume_subscription,
    rotate_signing_key,
)
from waypost.store.callbacks.subscriptions import subscriptions_by_ids
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import find_open_callback, live_group
from waypost.wire.callbacks import callback_v2, callback_v3
from waypost.wire.callbacks.kinds import event_name
from waypost.wire.callbacks.signatures import key_text, merge_headers, signature_headers
from waypost.wire.redaction import HIDDEN_SECRET, redact_callback
from waypost.wire.responses import response

MAX_KEEP_OLD_S: Final = 30 * 86_400
MAX_REPLAYED: Final = 100_000
"""In one call; for more, call several times with shorter time ranges."""
MAX_REPLAYED_MESSAGES: Final = 200
"""Messages that one call may name."""

_END_OF_TIME_MS: Final = 1 << 53

operation = AdminOperations()


class SubscriptionQuery(msgspec.Struct):
    """A filter of subscriptions, which must match every given field. A number 0 counts as absent."""

    subscription_id: Annotated[int | None, Meta(description="This subscription only.")] = None
    app_id: Annotated[str | None, Meta(description="This app only.")] = None
    partner_id: Annotated[int | None, Meta(description="This partner only.")] = None


class ReportQuery(msgspec.Struct):
    """The time range of a report, and the same filter; without a range, the last day."""

    to_ms: Annotated[int | None, Meta(description="Before this time; default: now.")] = None
    from_ms: Annotated[int | None, Meta(description="From this time on; default: a day before its end.")] = None
    subscription_id: Annotated[int | None, Meta(description="This subscription only.")] = None
    app_id: Annotated[str | None, Meta(description="This app only.")] = None
    partner_id: Annotated[int | None, Meta(description="This partner only.")] = None


class KeyRotation(msgspec.Struct, forbid_unknown_fields=True):
    """The rotation of a key: how long the old key signs in addition to the new one."""

    keep_old_for_s: Annotated[int, Meta(description="How long the old key signs too, in seconds.")] = 86_400

    def __post_init__(self) -> None:
        """Check that the time is limited."""
        if not 0 <= self.keep_old_for_s <= MAX_KEEP_OLD_S:
            raise invalid_field("keep_old_for_s", f"0 to {MAX_KEEP_OLD_S} seconds")


class ReplayRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A filter of callbacks to replay, which must match every given field."""

    callback_id: Annotated[str | None, Meta(description="One callback.")] = None
    subscription_id: Annotated[int | None, Meta(description="This subscription only.")] = None
    app_id: Annotated[str | None, Meta(description="This app only.")] = None
    partner_id: Annotated[int | None, Meta(description="This partner only.")] = None
    recipient: Annotated[str | None, Meta(description="About one recipient.")] = None
    event: Annotated[str | None, Meta(description="Of one event.")] = None
    delivered: Annotated[
        bool | None, Meta(description="True: those that were delivered; false: those that were not.")
    ] = None
    from_ms: Annotated[int, Meta(description="Created from this time on.")] = 0
    to_ms: Annotated[int, Meta(description="Created before this time; default: now.")] = _END_OF_TIME_MS
    message_ids: Annotated[tuple[str, ...], Meta(description="About one of these messages.")] = ()
    dry_run: Annotated[bool, Meta(description="True if they are only counted.")] = False

    def __post_init__(self) -> None:
        """Check that the messages are not too many."""
        if len(self.message_ids) > MAX_REPLAYED_MESSAGES:
            raise invalid_field("message_ids", f"at most {MAX_REPLAYED_MESSAGES} ids")


class ReceiverView(msgspec.Struct):
    """A subscription with its state, its circuit, and the number of callbacks that wait."""

    id: int
    partner_id: int
    app_id: str
    tag: str
    url: str
    version: int
    modes: str
    active: bool
    created_on_ms: int
    key_serial: int
    old_key_until_ms: int | None
    failing_since_ms: int | None
    retry_after_until_ms: int | None
    paused_on_ms: int | None
    pause_reason: str | None
    next_attempt_ms: int | None
    waiting: int
    waiting_is_longer: bool
    replaying: int
    replaying_is_longer: bool
    waiting_since_ms: int | None
    state: str
    circuit: str | None


class ResumedReceiverView(ReceiverView):
    """A subscription, and whether the service had paused it."""

    was_paused: bool


class Ping(msgspec.Struct):
    """A signed ping: the request and the response."""

    delivered: bool
    status: int | None
    duration_ms: int
    error: str | None
    url: str
    request_headers: dict[str, str]
    response_headers: dict[str, str]
    response_body: str
    sent: str


class SigningKey(msgspec.Struct):
    """The key that signs a subscription's callbacks; the old one while it signs too, and the one that it replaced."""

    subscription_id: int
    key: str
    old_key: str | None
    old_key_until_ms: int | None
    replaced_key: str | None


class ReceiverTimes(msgspec.Struct):
    """The response times and results of one subscription's receiver."""

    subscription_id: int
    attempts: int
    p50_ms: int
    p90_ms: int
    p99_ms: int
    max_ms: int
    under_5_s: float
    over_10_s: float
    by_status: dict[str, int]


class Replay(msgspec.Struct, kw_only=True):
    """The number of callbacks that are or would be replayed, and of those that wait for their first delivery."""

    replayed: int | msgspec.UnsetType = msgspec.UNSET
    would_replay: int | msgspec.UnsetType = msgspec.UNSET
    still_waiting: int


@operation("GET", "/admin/subscriptions", response(subscriptions=list[ReceiverView]))
async def list_subscriptions(context: AdminContext, query: SubscriptionQuery) -> dict[str, Any]:
    """Return subscriptions: their state, their circuit, and the number of callbacks that wait for each."""
    rows = await context.database.read(list_receivers, _receiver_filter(query))
    if not rows:
        await _check_filters(context, query)
    return {"subscriptions": [_receiver_view(context, row) for row in rows]}


@operation("GET", "/admin/subscriptions/{subscription_id}")
async def show_subscription(context: AdminContext, subscription_id: int) -> ReceiverView:
    """Return one subscription in the same form."""
    return _receiver_view(context, await _find_subscription(context, subscription_id))


@operation("POST", "/admin/subscriptions/{subscription_id}/check")
async def check_subscription(context: AdminContext, subscription_id: int) -> Ping:
    """Send a signed ping to a subscription's URL, and return the request and the response.

    Of the partner's own headers only the names are returned.
    """
    read = context.database.read
    subscriptions = await read(subscriptions_by_ids, {subscription_id}, context.directory.unseal)
    subscription = subscriptions.get(subscription_id)
    app = None if subscription is None else await read(app_by_id, subscription.app_id)
    if subscription is None or app is None:
        raise resource_not_found("subscription", "subscription_id", subscription_id)
    call_id, at_s = context.ids.new(), machine_ms() // 1000
    now_ms = context.clock.now_ms()
    body = callback_v2.check_body(app, now_ms) if subscription.version == 2 else callback_v3.check_body(app)
    serials = subscription.serials(now_ms)
    keys = [key for serial in serials for key in context.secret_box.callback_keys(subscription_id, serial)]
    headers = merge_headers(subscription.headers, signature_headers(call_id, at_s, body, keys))
    response = await context.outbound.post(subscription.url, body, headers)
    return Ping(
        delivered=response.status is not None and 200 <= response.status < 300,
        status=response.status,
        duration_ms=response.duration_ms,
        error=response.error,
        url=subscription.url,
        request_headers={
            name: HIDDEN_SECRET if name in subscription.headers else text for name, text in headers.items()
        },
        response_headers=dict(response.headers or {}),
        response_body=response.body.decode("utf-8", "replace"),
        sent=body.decode(),
    )


@operation("POST", "/admin/subscriptions/{subscription_id}/resume")
async def resume_deliveries(context: AdminContext, subscription_id: int) -> ResumedReceiverView:
    """Resume a subscription that the service has paused; waiting callbacks are delivered in order."""

    def change(connection: Connection) -> tuple[bool, dict[str, Any]] | None:
        before = resume_subscription(connection, subscription_id)
        if before is None:
            return None
        # Read in the same transaction, to count what waits now: a moment later some may be delivered.
        [after] = list_receivers(connection, SubscriptionFilter(id=subscription_id))
        return before.paused_on_ms is not None, after

    changed = await context.database.write(change)
    if changed is None:
        raise resource_not_found("subscription", "subscription_id", subscription_id)
    was_paused, after = changed
    return ResumedReceiverView(**asdict(_receiver_view(context, after)), was_paused=was_paused)


@operation("POST", "/admin/subscriptions/{subscription_id}/retry")
async def retry_deliveries(context: AdminContext, subscription_id: int) -> ReceiverView:
    """Retry the callbacks that wait for a subscription now; each attempt counts, and the order is kept.

    The receiver is called once; as soon as it accepts a callback, all others follow.

    Raises:
        ApiError: the subscription is paused, or there is none.
    """
    if not await context.database.write(request_retry, subscription_id, context.clock.now_ms()):
        await _find_subscription(context, subscription_id)
        text = "The subscription is paused: resume it, and waiting callbacks are sent."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field="subscription_id", accepted="one that is not paused")
    return await show_subscription(context, subscription_id)


@operation("GET", "/admin/subscriptions/{subscription_id}/key", shows_secret=True)
async def show_key(context: AdminContext, subscription_id: int) -> SigningKey:
    """Return the key that signs a subscription's callbacks."""
    return _key_view(context, await _find_subscription(context, subscription_id))


@operation("POST", "/admin/subscriptions/{subscription_id}/key/rotate")
async def rotate_key(context: AdminContext, rotation: KeyRotation, subscription_id: int) -> SigningKey:
    """Rotate a subscription's key. For a while both keys sign; any key before the old one no longer signs."""
    until_ms = context.clock.now_ms() + rotation.keep_old_for_s * 1000
    if not await context.database.write(rotate_signing_key, subscription_id, until_ms):
        raise resource_not_found("subscription", "subscription_id", subscription_id)
    return _key_view(context, await _find_subscription(context, subscription_id))


@operation("GET", "/admin/callbacks/report", response(from_ms=int, to_ms=int, subscriptions=list[ReceiverTimes]))
async def show_report(context: AdminContext, query: ReportQuery) -> dict[str, Any]:
    """Return the response times and statuses of receivers, of the last day unless a time is given."""
    to_ms = context.clock.now_ms() + 1 if query.to_ms is None else query.to_ms
    from_ms = to_ms - DAY_MS if query.from_ms is None else query.from_ms
    rows = await context.database.read(response_times, _receiver_filter(query), from_ms, to_ms)
    if not rows:
        await _check_filters(context, query)
    return {"from_ms": from_ms, "to_ms": to_ms, "subscriptions": build_receiver_report(rows)}


@operation("POST", "/admin/callbacks/replay")
async def replay_callbacks(context: AdminContext, request: ReplayRequest) -> Replay:
    """Replay callbacks: the same bytes, id and sequence number, concurrently with the live ones.

    Raises:
        ApiError: there is no filter, or too many callbacks match.
    """
    selectors = (request.callback_id, request.subscription_id, request.app_id, request.partner_id)
    if all(value is None for value in selectors):
        accepted = "a callback_id, a subscription_id, an app_id or a partner_id"
        raise ApiError(ErrorCode.FIELD_MISSING, f"Name {accepted}.", accepted=accepted)
    await _check_filters(context, request)
    if (
        request.callback_id is not None
        and await context.database.read(callback_with_attempts, request.callback_id) is None
    ):
        raise resource_not_found("callback", "callback_id", request.callback_id)
    replay_filter = ReplayFilter(
        subscriptions=SubscriptionFilter(request.subscription_id, request.app_id, request.partner_id),
        callback_id=request.callback_id,
        recipient=request.recipient,
        event=None if request.event is None else event_name(request.event),
        delivered=request.delivered,
        from_ms=request.from_ms,
        to_ms=min(request.to_ms, context.clock.now_ms() + 1),
        message_ids=request.message_ids,
    )
    counted = await context.database.read(count_replays, replay_filter)
    if request.dry_run:
        return Replay(would_replay=counted["callbacks"], still_waiting=counted["waiting"])
    if counted["callbacks"] > MAX_REPLAYED:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            f"The filter matches {counted['callbacks']} callbacks; select at most {MAX_REPLAYED} at once, "
            "for example by from_ms and to_ms.",
        )
    appended, after = 0, None
    while True:
        count, after = await context.database.write(enqueue_replays, replay_filter, after, context.clock.now_ms())
        appended += count
        if after is None:
            return Replay(replayed=appended, still_waiting=counted["waiting"])


@operation("GET", "/admin/callbacks/{callback_id}")
async def show_callback(context: AdminContext, callback_id: str) -> TracedCallback:
    """Return one callback with its body and every attempt."""
    return await _callback_view(context, callback_id, text=context.show_text)


@operation("POST", "/admin/callbacks/{callback_id}/reveal")
async def reveal_callback(context: AdminContext, callback_id: str) -> TracedCallback:
    """Return one callback with its text; one-time codes stay hidden."""
    return await _callback_view(context, callback_id, text=True)


async def _callback_view(context: AdminContext, callback_id: str, *, text: bool) -> TracedCallback:
    callback = await context.database.read(callback_with_attempts, callback_id)
    if callback is None:
        raise resource_not_found("callback", "callback_id", callback_id)
    job = await context.database.read(find_open_callback, callback_id)
    wait = None
    if job is not None and job["state"] == JobState.OPEN:
        group = live_group(callback["subscription_id"])
        wait = explain_job(context, QueueName.CALLBACKS, group, job["position"])
    return TracedCallback(**redact_callback(callback, text=text), wait=wait)


def _receiver_filter(query: SubscriptionQuery | ReportQuery) -> SubscriptionFilter:
    return SubscriptionFilter(query.subscription_id or None, query.app_id, query.partner_id or None)


async def _check_filters(context: AdminContext, query: SubscriptionQuery | ReportQuery | ReplayRequest) -> None:
    await check_filters(
        context, app_id=query.app_id, partner_id=query.partner_id, subscription_id=query.subscription_id
    )


async def _find_subscription(context: AdminContext, subscription_id: int) -> dict[str, Any]:
    rows = await context.database.read(list_receivers, SubscriptionFilter(id=subscription_id))
    if not rows:
        raise resource_not_found("subscription", "subscription_id", subscription_id)
    return rows[0]


def _key_view(context: AdminContext, row: dict[str, Any]) -> SigningKey:
    def key_of(serial: int) -> str:
        return key_text(context.secret_box.callback_key(row["id"], serial))

    serial, until_ms = row["key_serial"], row["old_key_until_ms"]
    before = [key_text(key) for key in context.secret_box.callback_keys(row["id"], serial)[1:]]
    has_old = serial > 1 and (until_ms or 0) > context.clock.now_ms()
    return SigningKey(
        subscription_id=row["id"],
        key=key_of(serial),
        old_key=key_of(serial - 1) if has_old else None,
        old_key_until_ms=until_ms if has_old else None,
        replaced_key=before[0] if before else None,
    )


def _receiver_view(context: AdminContext, row: dict[str, Any]) -> ReceiverView:
    if not row["active"]:
        state = "paused by its partner"
    elif row["paused_on_ms"] is not None:
        state = "paused"
    else:
        state = "active" if row["failing_since_ms"] is None else "failing"
    return ReceiverView(**row, state=state, circuit=context.circuit_of(row["id"]))
