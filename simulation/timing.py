"""Promises about time, checked at the end on what was observed from outside.

Retries, pauses, paces, uncertain messages, holds, and that nobody waits for a neighbour.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Final

from simulation.accounts import AppAccount
from simulation.observed import Exchange, Observed
from simulation.received import CallbackSeen, by_path_and_subject, read_callbacks, read_webhooks

FIRST_RETRY_S: Final = 0.4
"""Callbacks are retried after 1, 5, 30 … seconds, a fifth sooner or later."""
RESPONSE_WITHIN_S: Final = 9
"""A later response may have come after the service had given up."""
GIVEN_UP_AFTER_S: Final = 10
"""An attempt without a response has failed by then, whenever its receiver answers."""
MAY_HAVE_ARRIVED: Final = b"may have arrived"
GRACE_S: Final = 0.5
"""A request that left before a response came may arrive so much later."""
RESPONSE_TAKES_S: Final = 0.05
"""Longest way of a response (a packet takes 20 ms at most): those of two connections may come in either order."""
EFFECT_S: Final = 60
"""For so long a jump of the clock, or a person's request to retry, may change when something is due."""
OUTAGE_FAILURES: Final = 3
"""So many failures in a row, and a receiver is taken to be away."""
RECOVERY_S: Final = 8
"""Longest time from the first success after an outage to the next attempt of what had failed before."""
LET_GO_S: Final = 10
"""Until what follows such a callback is sent; its failures may have opened the circuit of the receiver for some seconds."""
SLOWEST_CLOCK: Final = 1.2
"""The service's clock may be slower than the machine's, while that catches up."""
CUT_SHORT_S: Final = 900
"""Longest pause of a receiver to which one attempt after the other was cut short, as the service's process had ended."""
ACCEPTING: Final = ("/wa/", "/operator/webhook/")
NEIGHBOUR_S: Final = 5
"""Longest way of a status from the operator to a healthy receiver. Nothing on it waits for anybody else: two commits and
one request of a few milliseconds; the only pause that is allowed is that of slots, which is 1 s."""


def check_timing(observed: Observed, apps: Iterable[AppAccount]) -> Iterable[str]:
    """Yield the promises that were broken."""
    callbacks = read_callbacks(observed.exchanges)
    yield from _check_pauses(observed)
    yield from _check_paces(observed, apps)
    yield from _check_neighbours(observed, callbacks)
    yield from _check_retries(observed)
    yield from _check_repetitions(observed, callbacks)
    yield from _check_recoveries(observed)
    yield from _check_order_hold(observed, callbacks)
    yield from _check_held(observed)
    yield from _check_uncertain(observed, min(observed.uncertain_for_s))


def _check_held(observed: Observed) -> Iterable[str]:
    """A service on hold calls nobody, and accepts nothing. What it had sent before may arrive a moment later."""
    for one in observed.exchanges:
        grace_s = 0 if one.site == "service" else GRACE_S
        if not any(from_s + grace_s < one.began_s < to_s for from_s, to_s in observed.held):
            continue
        if one.site != "service":
            yield f"{one.site} was called at {one.began_s:.1f} s, while the service was on hold: {one.method} {one.path}"
        elif one.method == "POST" and one.path.startswith(ACCEPTING) and any(run.status == 200 for run in one.runs):
            yield f"{one.path} was accepted at {one.began_s:.1f} s, while the service was on hold"


def _check_pauses(observed: Observed) -> Iterable[str]:
    """Nobody is called during a pause that he asked for, unless his partner resumes the subscription meanwhile."""
    for name, calls in _calls(observed).items():
        terms = observed.subscriptions.get(name)
        changes = [] if terms is None else terms.paused
        for one in calls:
            if one.status != 429 or one.retry_after_s is None or one.ended_s is None:
                continue
            ended_s = one.ended_s
            if any(
                one.site == site and to_s >= one.began_s and from_s <= ended_s for site, from_s, to_s in observed.away
            ):
                continue  # its connection was lost before the answer: the service has not read it
            until_s = one.ended_s + one.retry_after_s - GRACE_S
            early = [other.began_s for other in calls if one.ended_s + GRACE_S < other.began_s < until_s]
            sent_s = one.began_s - GRACE_S  # by a process that may have been killed before this arrived
            if early and not _was_disturbed(observed, sent_s, until_s, changes):
                yield f"{name} asked at {one.ended_s:.1f} s for {one.retry_after_s} s, and was called at {early}"


def _check_paces(observed: Observed, apps: Iterable[AppAccount]) -> Iterable[str]:
    """No number sends faster than it may."""
    calls = _calls(observed)
    for app in apps:
        times_s = [one.began_s for one in calls[app.number_id]]
        for began_s, ended_s in zip(times_s, times_s[app.per_second + 1 :], strict=False):
            if ended_s - began_s < 1 - 0.05 and not _was_disturbed(observed, began_s, ended_s):
                yield f"{app.name} sent {app.per_second + 2} messages from {began_s:.2f} to {ended_s:.2f} s"


def _check_neighbours(observed: Observed, callbacks: list[CallbackSeen]) -> Iterable[str]:
    """A receiver without any fault waits for no other: each status is there a moment after it came.

    What follows a callback that the receiver itself rejects, for the same recipient, waits for that one.
    """
    healthy = [one for one in callbacks if one.exchange.site in observed.healthy_sites]
    rejected = {(one.path, one.recipient) for one in healthy if (one.exchange.status or 200) >= 300}
    statuses, _ = read_webhooks(observed.exchanges)
    calls = _calls(observed)
    for path, by_subject in by_path_and_subject(healthy).items():
        no_calls = [*observed.subscriptions[path].paused, *_find_pauses_after_ends(observed, calls[path])]
        for subject, events in by_subject.items():
            for one in events:
                if (path, one.recipient) in rejected:
                    continue
                came_s = min((s.ended_s for s in statuses[subject] if s.name == one.event), default=None)
                at_s = one.exchange.began_s
                late_s = 0 if came_s is None else at_s - came_s
                slow = [*observed.storage_failures, *observed.late_threads, *no_calls]
                if late_s > NEIGHBOUR_S and not _was_disturbed(observed, at_s - late_s, at_s, slow):
                    yield f"{path} waited {late_s:.1f} s for {one.event} of {subject}"


def _find_pauses_after_ends(observed: Observed, calls: list[Exchange]) -> Iterable[tuple[float, float]]:
    """Yield from when to when a receiver may get nothing, because its process has ended and the receiver may be the reason.

    The first time that is a second; it is longer if nothing was received since a failure, or since it ended before.
    """
    received_s = [one.ended_s for one in calls if one.status == 200 and one.ended_s is not None]
    failed_s = [one.began_s for one in calls if one.status != 200]
    failed_s += [from_s for from_s, _ in observed.interruptions]
    for from_s, to_s in observed.interruptions:
        last_s = max((at_s for at_s in received_s if at_s <= from_s), default=0)
        if any(last_s <= at_s < from_s for at_s in failed_s):
            next_s = min((at_s for at_s in received_s if at_s > to_s), default=math.inf)
            yield from_s, min(next_s, to_s + CUT_SHORT_S * SLOWEST_CLOCK)


def _calls(observed: Observed) -> defaultdict[str, list[Exchange]]:
    """Return what was sent by each number, and to each subscription."""
    calls = defaultdict[str, list[Exchange]](list)
    for one in observed.exchanges:
        if one.site == "operator" and one.method == "POST" and one.path.endswith("/messages"):
            calls[one.path.split("/")[-2]].append(one)
        elif "waypost-sequence" in one.headers:
            calls[one.path].append(one)
    return calls


def _check_retries(observed: Observed) -> Iterable[str]:
    """A callback that failed is not sent again at once, unless its receiver has accepted another one, or a person asks."""
    attempts, accepted = defaultdict[str, list[Exchange]](list), defaultdict[str, list[float]](list)
    for one in observed.exchanges:
        if "waypost-sequence" in one.headers and one.ended_s is not None and one.status is not None:
            attempts[one.headers["waypost-callback-id"]].append(one)
            if one.status < 300:
                accepted[one.path].append(one.ended_s)
    for callback_id, tries in attempts.items():
        for failed, next_one in pairwise(tries):
            ended_s = failed.ended_s or 0
            if (failed.status or 0) < 300 or ended_s - failed.began_s > RESPONSE_WITHIN_S:
                continue
            again_after_s = next_one.began_s - ended_s
            reasons = (*accepted[failed.path], *observed.retries)
            between = [at_s for at_s in reasons if failed.began_s <= at_s <= next_one.began_s]
            if (
                0 < again_after_s < FIRST_RETRY_S
                and not between
                and not _is_disturbed(observed, failed.began_s, next_one)
            ):
                yield f"callback {callback_id} was sent again {again_after_s:.2f} s after it had failed"


def _check_recoveries(observed: Observed) -> Iterable[str]:
    """What failed during an outage of a receiver does not wait for its own schedule once the receiver is back."""
    if any(one.path.endswith("/replay") for one in observed.exchanges):
        return  # then a second attempt does not mean that the first one failed
    for path, calls in _calls(observed).items():
        if path not in observed.subscriptions:
            continue
        known_s = partial(_known_s, observed, calls=calls)
        ended = sorted((one for one in calls if one.ended_s is not None), key=known_s)
        last = {one.headers["waypost-callback-id"]: one for one in calls}
        failures, before_s, failed_s, received_s = 0, 0.0, -math.inf, -math.inf
        for one in ended:
            ended_s = known_s(one)
            if any(from_s <= ended_s and to_s >= before_s for from_s, to_s in observed.interruptions):
                failures = 0  # a process that starts knows of none
            before_s = ended_s
            is_success = one.status == 200 and last[one.headers["waypost-callback-id"]] is one
            if not is_success:
                failures += ended_s - received_s > RESPONSE_TAKES_S  # else the service may have learnt of it before
                failed_s = ended_s
                continue
            if failures >= OUTAGE_FAILURES and ended_s - failed_s > RESPONSE_TAKES_S:
                yield from _check_recovery(observed, path, calls, one)
            failures, received_s = 0, ended_s


def _known_s(observed: Observed, one: Exchange, calls: list[Exchange]) -> float:
    """Return when the service knew how an attempt had ended.

    If the next attempt of its callback began before a response or the limit, its connection was lost, perhaps earlier.
    """
    known_s = min(one.ended_s or math.inf, one.began_s + GIVEN_UP_AFTER_S)
    callback_id = one.headers["waypost-callback-id"]
    later = (other for other in calls if other.headers["waypost-callback-id"] == callback_id)
    next_s = min((other.began_s for other in later if other.began_s > one.began_s), default=math.inf)
    if next_s > known_s:
        return known_s
    lost_s = (from_s for site, from_s, _ in observed.away if site == one.site and one.began_s <= from_s)
    return min((next_s, *lost_s))


def _has_failed_alone(observed: Observed, calls: list[Exchange], first: Exchange, until_s: float) -> bool:
    """True if a callback may have failed for `order_hold_s` while others succeeded: it keeps its own schedule."""
    tried_s = observed.first_tried_s(first)
    lost_s = [from_s for site, from_s, _ in observed.away if site == first.site and from_s >= first.began_s]
    cut_short_s = [from_s for from_s, to_s in observed.interruptions if to_s <= first.began_s]  # before it arrived
    failed_s = (
        tried_s if tried_s < first.began_s else min(_known_s(observed, first, calls), *lost_s, *cut_short_s, math.inf)
    )
    held_s = until_s - tried_s + sum(max(0, jump_s) for _, jump_s in observed.jumps)
    since_s = failed_s - RESPONSE_TAKES_S
    return held_s >= min(observed.order_hold_s, default=math.inf) and any(
        one.status == 200 and since_s <= (one.ended_s or 0) <= until_s for one in calls
    )


def _failed_s(observed: Observed, one: Exchange) -> float:
    """Return when an attempt had failed, as the service counts it: one that was cut short fails when it runs again."""
    failed_s = min(one.ended_s or math.inf, one.began_s + GIVEN_UP_AFTER_S)
    for from_s, to_s in sorted(observed.interruptions):
        if from_s <= failed_s and to_s >= one.began_s:
            failed_s = max(failed_s, to_s)
    return failed_s


def _check_recovery(observed: Observed, path: str, calls: list[Exchange], first: Exchange) -> Iterable[str]:
    """Check what follows the first callback that was received after an outage."""
    back_s = first.ended_s or 0
    tries = defaultdict[str, list[Exchange]](list)
    for one in calls:
        tries[one.headers["waypost-callback-id"]].append(one)
    for callback_id, attempts in tries.items():
        for failed, next_one in pairwise(attempts):
            until_s = next_one.began_s
            if _has_failed_alone(observed, calls, attempts[0], _known_s(observed, failed, calls)):
                break
            if not (failed.ended_s or until_s) < back_s < until_s - RECOVERY_S:
                continue
            failed_again = any(
                other is not first and (other.status or 500) >= 300 and back_s < (other.ended_s or back_s + 1) < until_s
                for other in calls
            )
            was_asked_to_wait = any(other.retry_after_s for other in calls if other.began_s < until_s)
            was_away = any(
                site == first.site and began_s < until_s and ended_s > back_s
                for site, began_s, ended_s in observed.away
            )
            was_changed = any(
                began_s < until_s and ended_s > back_s for began_s, ended_s in observed.subscriptions[path].paused
            )
            was_full = any(
                began_s < until_s and ended_s > until_s - RECOVERY_S for began_s, ended_s in observed.storage_failures
            )
            is_excused = failed_again or was_asked_to_wait or was_away or was_changed or was_full
            if not is_excused and not _was_disturbed(observed, back_s, until_s):
                yield f"{path} was back at {back_s:.1f} s, and {callback_id} was tried again at {until_s:.1f} s"


def _is_known(one: Exchange, calls: list[Exchange]) -> bool:
    """False if its callback was tried again: the service has not learnt how it ended."""
    callback_id = one.headers["waypost-callback-id"]
    return not any(each.headers["waypost-callback-id"] == callback_id and each.began_s > one.began_s for each in calls)


def _check_order_hold(observed: Observed, callbacks: list[CallbackSeen]) -> Iterable[str]:
    """A callback that alone fails blocks those that follow it for `order_hold_s`; its next failure lets them go."""
    replayed_s = max((one.began_s for one in observed.exchanges if one.path.endswith("/replay")), default=-EFFECT_S)
    statuses, _ = read_webhooks(observed.exchanges)
    calls = _calls(observed)
    chains = defaultdict[tuple[str, str], dict[str, list[CallbackSeen]]](lambda: defaultdict(list))
    for one in callbacks:
        chains[one.path, one.recipient][one.id].append(one)
    for (path, _), attempts in chains.items():
        terms = observed.subscriptions[path]
        for older, newer in pairwise(sorted(attempts.values(), key=lambda tries: tries[0].sequence)):
            first, sent_s = older[0].exchange, newer[0].exchange.began_s
            is_paused = terms.deleted_s is not None or any(to_s > first.began_s for _, to_s in terms.paused)
            if is_paused or first.began_s < replayed_s + EFFECT_S:  # or a second attempt proves no failure
                continue
            failed_s = _failed_s(observed, first)
            came_s = min((s.ended_s for s in statuses[newer[0].subject] if s.name == newer[0].event), default=sent_s)
            for one in [one.exchange for one in older]:
                let_go_s = one.ended_s or one.began_s
                is_last = (one.status or 0) >= 300 and one.began_s - failed_s > max(
                    observed.order_hold_s, default=0
                ) * SLOWEST_CLOCK
                let_go_s += one.retry_after_s or 0  # its receiver asked for a pause
                if not is_last or came_s > one.began_s or sent_s < let_go_s + LET_GO_S:
                    continue
                # The first failure that the service must know, also if that process has been restarted since
                since_s = min(each.exchange.ended_s for each in older if each.exchange.ended_s is not None) + GRACE_S
                others_succeed = any(
                    each.status == 200 and since_s < (each.ended_s or 0) < one.began_s and _is_known(each, calls[path])
                    for each in calls[path]
                )
                fails_again = any(
                    (each.status or 500) >= 300 and let_go_s < each.began_s < let_go_s + LET_GO_S
                    for each in calls[path]
                )
                if others_succeed and not fails_again and not _was_disturbed(observed, one.began_s, sent_s):
                    yield f"{newer[0].id} to {path} waited until {sent_s:.1f} s for one that failed from {first.began_s:.1f} s"
                    break


def _check_repetitions(observed: Observed, callbacks: list[CallbackSeen]) -> Iterable[str]:
    """A callback is not sent twice at once, and not again after the next one of its recipient, which it came before.

    The next one is sent when this one was received and that is stored. Not judged is what a person replays, and a
    process that cannot know that it stood still.
    """
    replayed_s = min((one.began_s for one in observed.exchanges if one.path.endswith("/replay")), default=float("inf"))
    calls = _calls(observed)
    chains = defaultdict[tuple[str, str], dict[str, list[Exchange]]](lambda: defaultdict(list))
    for one in callbacks:
        if one.exchange.began_s < replayed_s:
            chains[one.path, one.recipient][one.id].append(one.exchange)
    for (path, _), attempts in chains.items():
        for callback_id, tries in attempts.items():
            for first, second in pairwise(tries):
                if second.began_s - first.began_s < FIRST_RETRY_S and not _may_retry(observed, first, second):
                    yield f"{path} got callback {callback_id} twice at once, at {second.began_s:.2f} s"
        in_order = sorted(attempts.values(), key=lambda tries: int(tries[0].headers["waypost-sequence"]))
        for older, newer in pairwise(in_order):
            sent_s, last_s = newer[0].began_s, older[-1].began_s
            is_unknowing = any(at_s <= last_s <= at_s + EFFECT_S for at_s in observed.lost_times)
            if last_s <= sent_s + GRACE_S or is_unknowing:
                continue
            callback_id = older[0].headers["waypost-callback-id"]
            first = next(one for one in calls[path] if one.headers["waypost-callback-id"] == callback_id)
            if not _has_failed_alone(observed, calls[path], first, sent_s):
                yield f"{path} got an older callback again at {last_s:.2f} s, after the next one at {sent_s:.2f} s"


def _may_retry(observed: Observed, first: Exchange, second: Exchange) -> bool:
    """True if something has ended the first attempt, and let the second one begin at once."""
    causes = (
        *((at_s, at_s) for at_s in observed.retries),
        *(times for site, *times in observed.away if site == first.site),
    )
    return any(
        from_s <= second.began_s and to_s >= first.began_s - GRACE_S for from_s, to_s in causes
    ) or _is_disturbed(observed, first.began_s - GRACE_S, second)


def _check_uncertain(observed: Observed, uncertain_for_s: float) -> Iterable[str]:
    """An uncertain message does not fail before the time in which a status may come."""
    sent_s: dict[str, float] = {}
    for one in observed.exchanges:
        if one.site == "operator" and one.path.endswith("/messages") and one.is_whole:
            message_id = str(json.loads(one.body).get("biz_opaque_callback_data", "")).split(" ")[0]
            sent_s[message_id] = one.began_s
        elif "waypost-sequence" in one.headers and MAY_HAVE_ARRIVED in one.body:
            for message_id, at_s in sent_s.items():
                waited_s = one.began_s - at_s
                is_early = waited_s < uncertain_for_s - GRACE_S and message_id.encode() in one.body
                if is_early and not _is_disturbed(observed, at_s, one):
                    yield f"{message_id} failed as uncertain after {waited_s:.1f} s"


def _is_disturbed(observed: Observed, from_s: float, one: Exchange) -> bool:
    jumps = [at_s for at_s, _ in observed.jumps]
    return any(from_s <= at_s <= one.began_s for at_s in jumps) or any(
        began_s <= one.began_s and ended_s >= from_s for began_s, ended_s in observed.interruptions
    )


def _was_disturbed(observed: Observed, from_s: float, to_s: float, more: Iterable[tuple[float, float]] = ()) -> bool:
    """True if in this time the clock jumped, a receiver was to be retried at once, or the service was away.

    Args:
        more: times from and to which something else may have delayed the service.
    """
    times_s = [*observed.retries, *(at_s for at_s, _ in observed.jumps)]
    return any(from_s - EFFECT_S <= at_s <= to_s for at_s in times_s) or any(
        began_s <= to_s and ended_s >= from_s for began_s, ended_s in (*observed.interruptions, *more)
    )
