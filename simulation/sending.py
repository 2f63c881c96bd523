"""How a partner sends one message: it waits as a 429 asks, and repeats a request without a response under its key.

Source: `docs/how-to/retry-safely.md`.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from simulation.client import Response, request
from simulation.observed import Exchange, Observed, Run, SentRequest
from waypost.api.limits import SHARED_FROM_MS

ATTEMPTS: Final = 4
AGAIN_AFTER_S: Final = (0.2, 1, 5)
LONGEST_WAIT_S: Final = 65
"""A partner gives up if it is to wait longer."""
PATHS: Final = {"send_template": "/wa/api/v1/template/msg", "session": "/wa/api/v1/msg"}
"""By the row of the table of rates."""
SLOWEST: Final = 10 / 9
"""The service's clock is a tenth slower while the machine's, which was set back, catches up."""
RATE_EXCEEDED: Final = " per "
"""In the reason of a 429, if it is not a quota of what waits."""
_CARRIED_OUT_ONCE: Final = (409, 429)
"""Nothing was done; the same request may be sent again."""


async def send_until_answered(
    choose_port: Callable[[], int], path: str, credential: Callable[[], str], sent: SentRequest, form: dict[str, str]
) -> Response | None:
    """Send a message, again where the documentation says so; note each status. Return the last response."""
    response = None
    for nth in range(ATTEMPTS):
        headers = {"apikey": credential()} | ({"Idempotency-Key": sent.key} if sent.key else {})
        response = await request(choose_port(), "POST", path, headers, form=form)
        sent.statuses.append(None if response is None else response.status)
        if response is not None and response.status == 200 and response.body is not None:
            sent.ids.append(response.body["messageId"])
            return response
        is_unknown = response is None or response.status >= 500 or response.status == 200
        if not (is_unknown and sent.key) and (response is None or response.status not in _CARRIED_OUT_ONCE):
            return response
        asked_s = None if response is None else response.retry_after_s
        if nth + 1 == ATTEMPTS or (asked_s or 0) > LONGEST_WAIT_S:
            break
        await asyncio.sleep(asked_s or AGAIN_AFTER_S[nth])
    return response


def check_requests(observed: Observed, stored: Iterable[tuple[str, str, str]]) -> Iterable[str]:
    """Yield what was carried out although its response says no, or more than once under one key.

    Args:
        stored: id, app and recipient of each message.
    """
    most, found = Counter[tuple[str, str]](), Counter((app_id, to) for _, app_id, to in stored)
    for one in observed.sent:
        may_have_been = sum(status is None or status == 200 or status >= 500 for status in one.statuses)
        most[one.app_id, one.to] += min(may_have_been, 1) if one.key else may_have_been
        if len(set(one.ids)) > 1:
            yield f"the key {one.key} got two ids: {one.ids}"
        if unexpected := {status for status in one.statuses if status in (400, 422)}:
            yield f"a valid message to {one.to} got {unexpected}"
    for (app_id, to), count in found.items():
        if count > most[app_id, to]:
            yield f"{count} messages of {app_id} to {to} are stored, and at most {most[app_id, to]} were accepted"


def check_limits(observed: Observed) -> Iterable[str]:
    """Yield what was accepted beyond a rate, and what was rejected within it."""
    for text in observed.limits:
        name, _, rate = text.partition("=")
        if name not in PATHS:
            continue
        at_most, _, period = rate.partition("/")
        runs = defaultdict[str, list[Run]](list)
        for one in observed.exchanges:
            if one.site == "service" and one.path == PATHS[name] and one.began_s < observed.limits_until_s:
                runs[_source(one)] += one.runs
        within_s = int(period[:-1])
        counters = 1 if within_s * 1000 >= SHARED_FROM_MS else observed.processes  # each counts a short window itself
        for source, of_source in runs.items():
            yield from _check_limit(observed, f"{name} of {source}", of_source, int(at_most), within_s, counters)


def _check_limit(
    observed: Observed, name: str, runs: Sequence[Run], at_most: int, within_s: int, counters: int
) -> Iterable[str]:
    runs = sorted(runs, key=lambda run: run.began_s)  # a request that came twice has both where it came first
    counted = [run for run in runs if run.status == 200 and not run.is_replay]
    for nth, first in enumerate(counted):
        later = [run for run in counted[nth:] if (run.ended_s or 0) < first.began_s + within_s]
        if len(later) > counters * at_most and not _is_disturbed(observed, first.began_s, within_s):
            yield f"{name} accepted {len(later)} within {within_s} s from {first.began_s:.2f} s, and {at_most} are allowed"
    for run in [run for run in runs if run.status == 429 and RATE_EXCEEDED in run.reason]:
        # one that is being worked on, or whose response was lost, may count; an error does not
        ended_s, looks_back_s = run.ended_s or 0, within_s * SLOWEST + 0.1
        from_s = run.began_s - looks_back_s
        others = [
            one
            for one in runs
            if one is not run
            and one.began_s <= ended_s
            and (one.ended_s is None or one.ended_s >= run.began_s or (one.status == 200 and one.ended_s >= from_s))
        ]
        if len(others) < at_most and not _is_disturbed(observed, from_s, looks_back_s):
            yield f"{name} was rejected at {run.began_s:.2f} s after {len(others)} within {within_s} s of {at_most}"


def _is_disturbed(observed: Observed, from_s: float, within_s: float) -> bool:
    """Return True if a clock jumped, or the service, which has the windows in memory, was started again."""
    times = [*(at_s for at_s, _ in observed.jumps), *(at_s for both in observed.interruptions for at_s in both)]
    return any(from_s - 1 <= at_s <= from_s + within_s + 1 for at_s in times)


def _source(one: Exchange) -> str:
    return next((part for part in one.body.decode().split("&") if part.startswith("src.name=")), "")
