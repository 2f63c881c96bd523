"""The saturation walk: one product at rising rates, until it no longer keeps up; then closer to that rate.

A rate that is missed is tried again at once, because anything else on the machine may have caused it; the walk ends
when it is missed twice. With `--quick` once is enough.
"""

import asyncio
import itertools
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.external import TreeCpu
from benchmarks.peers.histograms import summarize_latencies
from benchmarks.peers.open_loop import OpenLoop, Submission
from benchmarks.peers.product import Product
from benchmarks.processes import Child

# fmt: off
LEAST_ACHIEVED = 0.95  # of the offered rate
HIGHEST_P99_MS = 1000
BACKLOG_S      = 1.5   # a stretch ends early when more than this much load waits: it cannot pass any more
STALLED_S      = 6     # without one notification: what is missing then counts as lost
DRAINED_S      = 25    # at most, after the load of a stretch
WARM_PER_S, WARM_S = 50, 1.5
# fmt: on


@dataclass
class Notifications:
    """What the receiver has: kinds and times by message, in the order of their arrival."""

    by_key: dict[str, list[tuple[str, float]]]

    def add(self, log: Sequence[tuple[str, str, float]]) -> None:
        """Add what the receiver logged."""
        for key, kind, at_s in log:
            self.by_key.setdefault(key, []).append((kind, at_s))


class Walker:
    """Walks one product.

    Args:
        product: started.
        receiver: of its notifications.
        seconds: length of a stretch of load.
        attempts: at a rate that is missed.
    """

    def __init__(self, product: Product, receiver: Child, *, seconds: float, attempts: int) -> None:
        self._product, self._receiver, self._seconds, self._attempts = product, receiver, seconds, attempts
        self._numbers = itertools.count()
        self._cpu = {role: TreeCpu() for role in product.trees()}

    async def warm_up(self) -> None:
        """Load modules and caches: not counted."""
        await self.measure(WARM_PER_S, WARM_S)

    async def walk(self, rates: Sequence[int], *, refinements: int) -> list[dict[str, Any]]:
        """Return the stretches: each rate in turn until one fails, then rates between the last two."""
        steps: list[dict[str, Any]] = []
        passed, failed = 0, 0
        for rate in rates:
            steps += await self._try(rate, attempts=self._attempts)
            if not steps[-1]["keeps_up"]:
                failed = rate
                break
            passed = rate
        for _ in range(refinements if failed else 0):
            if steps[-1]["lost"]:  # what still comes late would disturb the next stretch
                break
            rate = _between(passed, failed)
            steps += await self._try(rate, attempts=1)
            passed, failed = (rate, failed) if steps[-1]["keeps_up"] else (passed, rate)
        return steps

    async def _try(self, rate: int, *, attempts: int) -> list[dict[str, Any]]:
        """Return the steps at one rate: the last is the first that keeps up, if any does."""
        steps: list[dict[str, Any]] = []
        while len(steps) < attempts:
            steps.append(await self.measure(rate, self._seconds))
            if steps[-1]["keeps_up"] or steps[-1]["lost"]:
                break
        return steps

    async def measure(self, per_second: int, seconds: float) -> dict[str, Any]:
        """Send for some seconds at a rate, wait for the last notification, and return what happened."""
        count = round(per_second * seconds)
        product, receiver = self._product, self._receiver
        submissions = [Submission(number, product.request(number)) for number in itertools.islice(self._numbers, count)]
        await asyncio.to_thread(receiver.get, "/control/drain")
        cpu_before_s, own_before_s = self._read_cpu_s(), time.process_time()
        machine_before_s, began_s = machine_cpu_s(), time.monotonic()
        received_before = await asyncio.to_thread(receiver.get, "/control/count")
        highest = max(per_second * BACKLOG_S, 50) * 2
        received, is_stopped = 0, False

        async def follow() -> None:
            nonlocal received
            while True:
                received = await asyncio.to_thread(receiver.get, "/control/count") - received_before
                await asyncio.sleep(0.25)

        def must_stop(sent: int) -> bool:
            nonlocal is_stopped
            is_stopped = is_stopped or sent * 2 - received > highest
            return is_stopped

        following = asyncio.create_task(follow())
        load = OpenLoop(product.port, submissions, per_second, must_stop)
        sent = await load.run()
        accepted = [submission for submission in sent if submission.is_accepted]
        last, changed_s = received, time.monotonic()
        until_s = changed_s + DRAINED_S
        while received < 2 * len(accepted) and changed_s + STALLED_S > time.monotonic() < until_s:
            await asyncio.sleep(0.05)
            if received != last:
                last, changed_s = received, time.monotonic()
        following.cancel()
        own_s = time.process_time() - own_before_s
        cpu_s = {role: after - cpu_before_s[role] for role, after in self._read_cpu_s().items()} | {"load": own_s}
        machine_s = (time.monotonic() - began_s) * (os.cpu_count() or 1)
        others = (machine_cpu_s() - machine_before_s - sum(cpu_s.values())) / machine_s
        notifications = Notifications({})
        notifications.add(await asyncio.to_thread(receiver.get, "/control/drain"))
        step = summarize_step(product, per_second, sent, notifications, cpu_s)
        step |= {"stopped_early": is_stopped, "others_share": round(max(others, 0.0), 3)}
        return step

    def _read_cpu_s(self) -> dict[str, float]:
        trees = self._product.trees()
        return {role: cpu.read_s(trees.get(role, [])) for role, cpu in self._cpu.items()} | {
            "receiver": self._receiver.cpu_s()
        }


def summarize_step(
    product: Product,
    per_second: int,
    sent: Sequence[Submission],
    notifications: Notifications,
    cpu_s: Mapping[str, float],
) -> dict[str, Any]:
    """Return counts, percentiles, rates and processor time of one stretch."""
    accepted = [submission for submission in sent if submission.is_accepted]
    by_key = {product.key(submission.number, submission.body): submission for submission in accepted}
    last_s: dict[str, float] = {}
    lost = doubled = disordered = 0
    for key in by_key:
        received = notifications.by_key.get(key, [])
        kinds = Counter(kind for kind, _ in received)
        lost += sum(1 for kind in product.kinds if not kinds[kind])
        doubled += sum(kinds.values()) - len(kinds)
        disordered += bool(received) and received[0][0] != product.kinds[0]
        if all(kinds[kind] for kind in product.kinds):
            last_s[key] = max(at_s for _, at_s in received)
    step: dict[str, Any] = {
        "per_second": per_second,
        "sent": len(sent),
        "accepted": len(accepted),
        "statuses": {str(status): n for status, n in Counter(each.status for each in sent).items()},
        "lost": lost,
        "doubled": doubled,
        "out_of_order": disordered,
        "strangers": len(notifications.by_key.keys() - by_key.keys()),
        "late": summarize_latencies(each.sent_s - each.due_s for each in sent if each.sent_s),
        "acknowledged": summarize_latencies(each.ended_s - each.due_s for each in accepted),
        "notified": summarize_latencies(at_s - by_key[key].due_s for key, at_s in last_s.items()),
        "acknowledged_per_s": _rate([each.ended_s for each in accepted]),
        "notified_per_s": _rate(list(last_s.values())),
        "cpu_us_per_message": {role: round(1e6 * used / max(len(sent), 1)) for role, used in cpu_s.items()},
    }
    step["keeps_up"] = keeps_up(step)
    return step


def keeps_up(step: Mapping[str, Any]) -> bool:
    """True if a stretch reached its rate within the latency, and nothing is missing."""
    least = LEAST_ACHIEVED * step["per_second"]
    measures = [step["acknowledged"], *([step["notified"]] if step["notified_per_s"] is not None else [])]
    rates = [step[name] for name in ("acknowledged_per_s", "notified_per_s") if step[name] is not None]
    is_quick = all(each.get("p99_ms", math.inf) <= HIGHEST_P99_MS for each in measures)
    return is_quick and all(rate >= least for rate in rates) and step["accepted"] == step["sent"] and not step["lost"]


def machine_cpu_s() -> float:
    """Return the processor time of everything on the machine, with what its host took from it."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = (int(field) for field in fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def best_step(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the stretch with the highest rate that the product kept up with."""
    return max((step for step in steps if step["keeps_up"]), key=lambda step: step["per_second"], default=None)


def _rate(times_s: Sequence[float]) -> float:
    """Return the events a second between the first and the last."""
    if len(times_s) < 2:
        return 0.0
    return round((len(times_s) - 1) / (max(times_s) - min(times_s)), 1)


def _between(passed: int, failed: int) -> int:
    """Return the rate in the middle, as a round number."""
    middle = (passed + failed) / 2
    step = 10 ** max(int(math.log10(middle)) - 1, 0)
    return round(middle / step) * step


async def walk_bare(rates: Sequence[int], seconds: float) -> list[dict[str, Any]]:
    """Walk the load generator against `bare.py`: it acknowledges and does nothing else."""
    from benchmarks.bare import SOURCES
    from benchmarks.load import template_message

    server = Child("benchmarks.bare")
    cpu = TreeCpu()
    steps: list[dict[str, Any]] = []
    request = template_message(15_560_000_000, next(iter(SOURCES)))
    try:
        server.wait_ready()
        for rate in rates:
            submissions = [Submission(number, request) for number in range(round(rate * seconds))]
            before_s, own_before_s = cpu.read_s([server.pid]), time.process_time()
            sent = await OpenLoop(server.port, submissions, rate).run()
            own_s = time.process_time() - own_before_s
            accepted = [each for each in sent if each.is_accepted]
            step: dict[str, Any] = {
                "per_second": rate,
                "sent": len(sent),
                "accepted": len(accepted),
                "lost": 0,
                "late": summarize_latencies(each.sent_s - each.due_s for each in sent if each.sent_s),
                "acknowledged": summarize_latencies(each.ended_s - each.due_s for each in accepted),
                "acknowledged_per_s": _rate([each.ended_s for each in accepted]),
                "notified_per_s": None,
                "cpu_us_per_message": {
                    "product": round(1e6 * (cpu.read_s([server.pid]) - before_s) / len(sent)),
                    "load": round(1e6 * own_s / len(sent)),
                },
            }
            step["keeps_up"] = keeps_up(step)
            steps.append(step)
            if not step["keeps_up"]:
                break
    finally:
        server.end()
    return steps
