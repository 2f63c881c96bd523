"""Promises about time, checked at the end on what was observed from outside: retries, uncertain messages and holds."""

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from simulation.observed import Exchange, Observed

FIRST_RETRY_S: Final = 0.4
"""Callbacks are retried after 1, 5, 30 … seconds, a fifth sooner or later."""
RESPONSE_WITHIN_S: Final = 9
"""A later response may have come after the service had given up."""
MAY_HAVE_ARRIVED: Final = b"may have arrived"
GRACE_S: Final = 0.5


def check_timing(observed: Observed, uncertain_for_s: float) -> Iterable[str]:
    """Yield the promises that were broken."""
    yield from _check_retries(observed)
    yield from _check_uncertain(observed, uncertain_for_s)
    for one in observed.exchanges:
        if one.site != "service" and any(from_s < one.began_s < to_s for from_s, to_s in observed.held):
            yield f"{one.site} was called at {one.began_s:.1f} s, while the service was on hold: {one.method} {one.path}"


def _check_retries(observed: Observed) -> Iterable[str]:
    """A callback that failed is not sent again at once, unless its receiver has accepted another one, or a person asks."""
    attempts, accepted = defaultdict[str, list[Exchange]](list), defaultdict[str, list[float]](list)
    for one in observed.exchanges:
        if "waypost-sequence" in one.headers and one.ended_s is not None and one.status is not None:
            attempts[one.headers["waypost-callback-id"]].append(one)
            if one.status < 300:
                accepted[one.path].append(one.ended_s)
    retried = [one.began_s for one in observed.exchanges if one.path.endswith("/retry")]
    for callback_id, tries in attempts.items():
        for failed, next_one in pairwise(tries):
            ended_s = failed.ended_s or 0
            if (failed.status or 0) < 300 or ended_s - failed.began_s > RESPONSE_WITHIN_S:
                continue
            again_after_s = next_one.began_s - ended_s
            reasons = (*accepted[failed.path], *retried)
            between = [at_s for at_s in reasons if failed.began_s <= at_s <= next_one.began_s]
            if 0 < again_after_s < FIRST_RETRY_S and not between and not _is_disturbed(observed, ended_s, next_one):
                yield f"callback {callback_id} was sent again {again_after_s:.2f} s after it had failed"


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
