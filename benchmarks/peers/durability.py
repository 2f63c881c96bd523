"""What an acknowledgement is worth: flushes per message, counted by strace; and a kill under load, counted by message."""

import asyncio
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.external import tree_of
from benchmarks.peers.open_loop import OpenLoop, Submission
from benchmarks.peers.product import Product
from benchmarks.peers.walk import Notifications, Walker
from benchmarks.processes import Child

# fmt: off
FLUSHES = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")
FLUSH_PER_S, FLUSH_S = 20, 3
KILL_PER_S, KILL_AFTER_S, KILL_S = 100, 2, 5
KILL_RESPOND_AFTER_MS = 20  # so that messages are at the upstream, unanswered, when the kill comes
KILL_UNCERTAIN_FOR_S = 5    # instead of 15 minutes
SETTLED_S = 10              # without one notification
SETTLED_AT_MOST_S = 45
# fmt: on


async def count_flushes(product: Product, walker: Walker, folder: Path) -> dict[str, Any] | None:
    """Return the flushes per message of product and store at a low rate; None without strace."""
    if shutil.which("strace") is None:
        return None
    trees = product.trees()
    pids = [pid for role in ("product", "store") for root in trees.get(role, []) for pid in tree_of(root)]
    summary = folder / "flushes"
    selected = [option for pid in pids for option in ("-p", str(pid))]
    tracing = subprocess.Popen(  # noqa: ASYNC220  it takes a moment, before the load
        ["strace", "-f", "-c", "-o", str(summary), "-e", "trace=" + ",".join(FLUSHES), *selected],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    await asyncio.sleep(0.5)
    try:
        step = await walker.measure(FLUSH_PER_S, FLUSH_S)
    finally:
        tracing.send_signal(signal.SIGINT)
        await asyncio.to_thread(tracing.wait, 20)
    calls = dict.fromkeys(FLUSHES, 0)
    for line in summary.read_text().splitlines():
        fields = line.split()
        if fields and fields[-1] in calls:
            calls[fields[-1]] = int(fields[3])
    total = sum(calls.values())
    return {
        "messages": step["accepted"],
        "calls": {name: n for name, n in calls.items() if n},
        "per_message": round(total / max(step["accepted"], 1), 2),
    }


async def kill_under_load(product: Product, receiver: Child) -> dict[str, Any]:
    """Kill product and store under load, start them again, and count what became of acknowledged messages."""
    await asyncio.to_thread(receiver.get, "/control/drain")
    warm = [Submission(number, product.request(number)) for number in range(50)]
    await OpenLoop(product.port, warm, KILL_PER_S / 2).run()
    await asyncio.sleep(1.5)
    first = len(warm)
    submissions = [Submission(n, product.request(n)) for n in range(first, first + KILL_PER_S * KILL_S)]
    load = asyncio.create_task(OpenLoop(product.port, submissions, KILL_PER_S).run())
    await asyncio.sleep(KILL_AFTER_S)
    killed_s = time.monotonic()
    await asyncio.to_thread(product.kill)
    await asyncio.to_thread(product.restart)
    restarted_s = time.monotonic()
    sent = await load
    count, changed_s = -1, time.monotonic()
    until_s = changed_s + SETTLED_AT_MOST_S
    while time.monotonic() - changed_s < SETTLED_S and time.monotonic() < until_s:
        now = await asyncio.to_thread(receiver.get, "/control/count")
        count, changed_s = (now, time.monotonic()) if now != count else (count, changed_s)
        await asyncio.sleep(0.2)
    notifications = Notifications({})
    notifications.add(await asyncio.to_thread(receiver.get, "/control/drain"))
    accepted_upstream = await asyncio.to_thread(product.accepted_by_recipient) or {}
    return {
        "restart_s": round(restarted_s - killed_s, 1),
        "acknowledged_before": sum(each.is_accepted and each.ended_s < killed_s for each in sent),
        **summarize_kill(product, sent, notifications, accepted_upstream),
    }


def summarize_kill(
    product: Product, sent: Sequence[Submission], notifications: Notifications, accepted_upstream: dict[str, int]
) -> dict[str, Any]:
    """Return what became of acknowledged messages: at the upstream, and at the receiver."""
    result: Counter[str] = Counter()
    for submission in sent:
        if not submission.is_accepted:
            continue
        match = re.search(rb"1556\d{7}", submission.request)
        assert match is not None
        times = accepted_upstream.get(match[0].decode(), 0)
        kinds = Counter(
            kind for kind, _ in notifications.by_key.get(product.key(submission.number, submission.body), [])
        )
        result["acknowledged"] += 1
        result["never_sent"] += times == 0
        result["sent_twice"] += times > 1
        result["without_last_notification"] += not kinds[product.kinds[1]]
        result["reported_as_uncertain"] += kinds["failed"] > 0
        result["notified_twice"] += any(n > 1 for n in kinds.values())
    return dict(result)
