"""Recovery after an outage: messages or callbacks a second once the operator, the receiver or the database is back.

While one of them is away, messages are accepted and wait. The first second is the one in which it accepts
connections again.
"""

import argparse
import asyncio
import itertools
import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop

from benchmarks.fleet import peak, post_control, read_deliveries
from benchmarks.load import Exchange, prepare_requests, send_closed_loop, template_message
from benchmarks.pipeline import CONNECTIONS, GATHER_MS, PHONES, SOURCES, start_children
from benchmarks.processes import Child, describe_machine, temporary_folder, write_result
from benchmarks.receiver import EVENTS
from benchmarks.stores import Store, Stores, open_stores
from waypost.base.clock import SystemClock

if TYPE_CHECKING:
    from tests.support.postgres import Server

WARM_MESSAGES: Final = 500
SHOWN_S: Final = 30
WINDOW_S: Final = 2
"""A rate is measured over so many seconds: in one second it varies too much."""
RECOVERED_SHARE: Final = 0.9
WITHIN_S: Final = 300
STALL_S: Final = 75
"""Longer than a retry may be away."""
QUIET_S: Final = 3
SEND: Final = {"on": "call", "call": "messages.send"}
TEMPORARILY_DOWN: Final = {**SEND, "what": {"error": 131016}}
GATEWAY: Final = {**SEND, "what": {"garbage": "html", "status": 503, "processed": False}}


@dataclass
class RecoveryRun:
    """The processes of one run.

    Attributes:
        children: by name; an outage may replace one.
        store: of the service.
        server: the PostgreSQL server, if any.
        fault: the id of the armed fault.
    """

    children: dict[str, Child]
    store: Store
    server: "Server | None"
    fault: str = ""

    def stop_operator(self) -> None:
        """End the operator's process: connections are refused."""
        self.children["simulator"].end()

    def start_operator(self) -> None:
        """Start the operator again on its port, with what it had stored."""
        webhook = f"http://127.0.0.1:{self.children['service'].port}/operator/webhook/demo"
        self.children["simulator"] = Child(
            "benchmarks.simulator",
            *("--data", str(Path(self.store.folder) / "simulator.db"), "--gather-ms", str(GATHER_MS)),
            *("--webhook", webhook),
            port=self.children["simulator"].port,
        )
        self.children["simulator"].wait_ready()

    def respond_503(self) -> None:
        """Let the operator respond to each message with 503 and its code for a temporary outage."""
        self._arm_fault(TEMPORARILY_DOWN)

    def respond_as_gateway(self) -> None:
        """Let a gateway respond to each message with 503 and a page: a message may have been sent, and is uncertain."""
        self._arm_fault(GATEWAY)

    def _arm_fault(self, fault: dict[str, Any]) -> None:
        body = {"faults": [fault]}
        self.fault = post_control(self.children["simulator"].port, "/control/faults", body)["faults"][0]["id"]

    def clear_fault(self) -> None:
        """Let the operator accept messages again."""
        post_control(self.children["simulator"].port, f"/control/faults/{self.fault}", None, method="DELETE")

    def pause_operator(self) -> None:
        """Stop the operator's process: it accepts connections and does not respond."""
        os.kill(self.children["simulator"].pid, signal.SIGSTOP)

    def continue_operator(self) -> None:
        """Continue the operator's process."""
        os.kill(self.children["simulator"].pid, signal.SIGCONT)

    def stop_receiver(self) -> None:
        """End the receiver's process: connections are refused."""
        self.children["receiver"].end()

    def start_receiver(self) -> None:
        """Start the receiver again on its port, with an empty log."""
        self.children["receiver"] = Child("benchmarks.receiver", port=self.children["receiver"].port)
        self.children["receiver"].wait_ready()

    def stop_database(self) -> None:
        """Kill the database server."""
        if self.server is not None:
            self.server.kill()

    def start_database(self) -> None:
        """Start the database server again."""
        if self.server is not None:
            self.server.start()


@dataclass(frozen=True, slots=True)
class OutageKind:
    """One kind of outage.

    Attributes:
        title: what is away.
        begin: begins the outage.
        end: ends it.
        submits_first: the outage begins when the messages have been accepted, not before.
        counts_callbacks: callbacks are counted, not messages.
        engine: the only engine on which it makes sense; empty for any.
    """

    title: str
    begin: Callable[[RecoveryRun], None]
    end: Callable[[RecoveryRun], None]
    submits_first: bool = False
    counts_callbacks: bool = False
    engine: str = ""


# fmt: off
OUTAGES: Final = {
    "operator":        OutageKind("the operator refuses connections", RecoveryRun.stop_operator, RecoveryRun.start_operator),
    "operator-503":    OutageKind("the operator responds with 503", RecoveryRun.respond_503, RecoveryRun.clear_fault),
    "operator-gateway": OutageKind("a gateway responds with 503 in its place", RecoveryRun.respond_as_gateway, RecoveryRun.clear_fault),
    "operator-paused": OutageKind("the operator does not respond", RecoveryRun.pause_operator, RecoveryRun.continue_operator),
    "receiver":        OutageKind("the receiver refuses connections", RecoveryRun.stop_receiver, RecoveryRun.start_receiver, counts_callbacks=True),
    "database":        OutageKind("the database server is killed", RecoveryRun.stop_database, RecoveryRun.start_database, submits_first=True, engine="postgresql"),
}
# fmt: on


async def measure(kind: OutageKind, stores: Stores, options: argparse.Namespace) -> dict[str, Any]:
    """Cause one outage and return the rates after it."""
    store = stores.new()
    run = RecoveryRun(start_children(store, "--per-second", str(options.rate)), store, stores.server)
    try:
        for child in run.children.values():
            child.wait_ready()
        await _submit(run, WARM_MESSAGES)
        await _wait_until_called_back(run, messages=WARM_MESSAGES, reads=WARM_MESSAGES)
        return await _cause_outage(run, kind, options)
    finally:
        for child in reversed(run.children.values()):
            child.end()


async def _cause_outage(run: RecoveryRun, kind: OutageKind, options: argparse.Namespace) -> dict[str, Any]:
    messages = options.messages // len(EVENTS) if kind.counts_callbacks else options.messages
    exchanges: list[Exchange] = []
    if kind.submits_first:
        exchanges = await _submit(run, messages)
    began_s = time.monotonic()
    await asyncio.to_thread(kind.begin, run)
    if not kind.submits_first:
        exchanges = await _submit(run, messages)
    if kind.counts_callbacks:
        await _wait_until_queued(run, messages=WARM_MESSAGES + messages)
    await asyncio.sleep(max(0.0, options.down - (time.monotonic() - began_s)))
    cpu_before_s = run.children["service"].cpu_s()
    await asyncio.to_thread(kind.end, run)
    back_ms, back_s = SystemClock().now_ms(), time.monotonic()
    reads = messages if kind.counts_callbacks else WARM_MESSAGES + messages  # a receiver starts with an empty log
    await _wait_until_called_back(run, messages=WARM_MESSAGES + messages, reads=reads)
    deliveries = await asyncio.to_thread(read_deliveries, run.children["simulator"])
    summary = await asyncio.to_thread(run.children["receiver"].get, "/summary")
    ids = {exchange.message_id for exchange in exchanges}
    ours = [delivery for delivery in deliveries if delivery["callback_data"] in ids]
    seen: dict[str, dict[str, float]] = summary["seen"]
    if kind.counts_callbacks:
        times_s = sorted(at_s - back_s for times in seen.values() for at_s in times.values())
    else:
        times_s = sorted((delivery["at_ms"] - back_ms) / 1000 for delivery in ours)
    counts = Counter(delivery["callback_data"] for delivery in ours)
    callbacks_lost = sum(len(EVENTS) - len(seen.get(message_id, {})) for message_id in ids)
    return {
        **summarize_rates([at_s for at_s in times_s if at_s >= 0]),
        "outage": kind.title,
        "accepted": len(exchanges),
        "down_s": round(back_s - began_s, 1),
        "lost": callbacks_lost if kind.counts_callbacks else len(ids - counts.keys()),
        "doubled": sum(counts.values()) - len(counts) + summary["wrong"].get("duplicated", 0),
        "out_of_order": count_out_of_order(exchanges, ours) + sum(summary["wrong"].values()),
        "callbacks_lost": callbacks_lost,
        "wrong": summary["wrong"],
        "peak_in_a_second": peak(sorted(delivery["at_ms"] for delivery in ours)),
        "service_cpu_s": round(run.children["service"].cpu_s() - cpu_before_s, 1),
    }


async def _submit(run: RecoveryRun, messages: int) -> list[Exchange]:
    requests = prepare_requests(template_message, phones=PHONES, sources=SOURCES)
    submissions = itertools.islice(itertools.cycle(requests), messages)
    return await send_closed_loop(run.children["service"].port, submissions, connections=CONNECTIONS)


async def _wait_until_called_back(run: RecoveryRun, *, messages: int, reads: int) -> None:
    """Return when the operator has so many messages and the receiver so many reads, or nothing more comes."""
    last, began_s = (-1, -1), time.monotonic()
    since_s = began_s
    while time.monotonic() < min(began_s + WITHIN_S, since_s + STALL_S):
        counts = (await asyncio.to_thread(run.children["simulator"].get, "/control/state"))["counts"]
        called_back = await asyncio.to_thread(run.children["receiver"].get, "/counts")
        current = (counts["messages"], called_back["reads"])
        if current >= (messages, reads):
            return
        if current != last:
            last, since_s = current, time.monotonic()
        await asyncio.sleep(0.25)


async def _wait_until_queued(run: RecoveryRun, *, messages: int) -> None:
    """Return when the operator has so many messages and has posted the last status of each."""
    last, since_s = (0, 0), time.monotonic()
    while last[0] < messages or time.monotonic() < since_s + QUIET_S:
        state = await asyncio.to_thread(run.children["simulator"].get, "/control/state")
        current = (state["counts"]["messages"], state["webhook_posts"])
        if current != last:
            last, since_s = current, time.monotonic()
        await asyncio.sleep(0.25)


def summarize_rates(times_s: Sequence[float]) -> dict[str, Any]:
    """Return the rates after an outage.

    The steady rate is the median of the seconds in which anything was sent, but for the first and last tenth.

    Args:
        times_s: of each message or callback, in order, from the end of the outage on.
    """
    per_second = Counter(int(at_s) for at_s in times_s)
    if not times_s:
        return {"per_second": [], "steady_per_s": 0, "recovered_s": None, "most_s": None, "ended_s": None}
    first_s, last_s = (int(times_s[len(times_s) * tenths // 10]) for tenths in (1, 9))
    steady = statistics.median(per_second[second] for second in range(first_s, last_s + 1) if per_second[second])
    return {
        "per_second": [per_second[second] for second in range(SHOWN_S)],
        "steady_per_s": steady,
        "recovered_s": _recovered_s(times_s, RECOVERED_SHARE * steady),
        "most_s": round(times_s[len(times_s) * 99 // 100], 1),
        "ended_s": round(times_s[-1], 1),
    }


def _recovered_s(times_s: Sequence[float], per_s: float) -> float | None:
    """Return from when on the rate was at least so high; None if it never was."""
    last = 0
    for first, at_s in enumerate(times_s):
        while last < len(times_s) and times_s[last] < at_s + WINDOW_S:
            last += 1
        if last - first >= per_s * WINDOW_S:
            return round(at_s, 1)
    return None


def count_out_of_order(exchanges: Sequence[Exchange], deliveries: Sequence[dict[str, Any]]) -> int:
    """Return how many messages the operator accepted after a later one of the same pair."""
    ended_s = {exchange.message_id: exchange.ended_s for exchange in exchanges}
    last_s: dict[str, float] = {}
    violations = 0
    for delivery in deliveries:
        phone, at_s = delivery["to"], ended_s[delivery["callback_data"]]
        violations += at_s < last_s.get(phone, 0)
        last_s[phone] = max(at_s, last_s.get(phone, 0))
    return violations


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print, and write the result."""
    rows: list[dict[str, Any]] = []
    with temporary_folder() as at:
        machine = describe_machine(at)
        for name in options.only:
            kind = OUTAGES[name]
            engine = kind.engine or options.engine
            (at / name).mkdir()
            with open_stores(engine, at / name) as stores:
                rows.append({"name": name, "engine": engine, **await measure(kind, stores, options)})
            print(format_row(rows[-1]), flush=True)
    settings = {"rate": options.rate, "messages": options.messages, "down": options.down}
    result = {"benchmark": "recovery", "machine": machine, "settings": settings, "rows": rows}
    print(f"\nwritten to {write_result('recovery', result)}")
    return result


def format_row(row: dict[str, Any]) -> str:
    """Return the lines of one outage."""
    seconds = [f"{count:6}" for count in row["per_second"]]
    lines = [
        f"\n{row['name']} on {row['engine']}: {row['outage']} for {row['down_s']:.0f} s, {row['accepted']} messages accepted",
        *("  " + "".join(seconds[first : first + 10]) for first in range(0, len(seconds), 10)),
        f"  steady {row['steady_per_s']:.0f}/s; {RECOVERED_SHARE:.0%} of it after {row['recovered_s']} s; "
        f"99% of all after {row['most_s']} s, all after {row['ended_s']} s; maximum within 1 s {row['peak_in_a_second']}; "
        f"{row['service_cpu_s']} s of processor time",
        f"  lost {row['lost']}, doubled {row['doubled']}, out of order {row['out_of_order']}; "
        f"callbacks lost {row['callbacks_lost']} {row['wrong'] or ''}",
    ]
    return "\n".join(lines)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=30_000, help="Accepted messages, or waiting callbacks.")
    parser.add_argument("--rate", type=int, default=1000, help=f"Throughput of each of the {SOURCES} sources.")
    parser.add_argument("--down", type=float, default=60, help="Least seconds of the outage.")
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--only", type=_read_names, default=list(OUTAGES), help=f"Of {', '.join(OUTAGES)}.")
    return parser.parse_args(arguments)


def _read_names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in OUTAGES:
            raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(OUTAGES)}")
    return names


if __name__ == "__main__":
    uvloop.run(main(parse_options()))
