"""A fleet of phones at a number's throughput: the operator's limits are kept; nothing is lost or duplicated."""

import argparse
import asyncio
import itertools
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.load import FIRST_PHONE, prepare_requests, send_closed_loop, template_message
from benchmarks.processes import Child, describe_machine, free_port, temporary_folder, write_result
from benchmarks.receiver import EVENTS

SECOND_MS = 1000
LIMITS = ("130429", "131056")
SPARE_S = 60
SCRIPT = [
    {"on": "button", "do": "read", "after_ms": [50, 500]},
    {"on": "button", "do": "tap", "index": 0, "after_ms": [500, 2000], "probability": 0.2},
]


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print, and write the result."""
    with temporary_folder() as at:
        machine = describe_machine(at)
        children = _start(at, options)
        try:
            for child in children.values():
                child.wait_ready()
            measurements = await _run(children, options)
        finally:
            for child in reversed(children.values()):
                child.end()
    settings = {"rate": options.rate, "messages": options.messages, "phones": options.phones}
    result = {"benchmark": "fleet", "machine": machine, "settings": settings, **measurements}
    print(_table(result))
    print(f"\nwritten to {write_result('fleet', result)}")
    return result


def _start(at: Path, options: argparse.Namespace) -> dict[str, Child]:
    receiver = Child("benchmarks.receiver")
    graph = free_port()
    service = Child(
        "benchmarks.service",
        *("--stages", "--data", str(at / "service"), "--per-second", str(options.rate)),
        *("--operator", f"http://127.0.0.1:{graph}"),
        *("--receiver", f"http://127.0.0.1:{receiver.port}/callbacks"),
    )
    simulator = Child(
        "benchmarks.simulator",
        *("--data", str(at / "simulator.db"), "--throughput", str(options.rate)),
        *("--webhook", f"http://127.0.0.1:{service.port}/operator/webhook/demo"),
        port=graph,
    )
    return {"receiver": receiver, "service": service, "simulator": simulator}


async def _run(children: dict[str, Child], options: argparse.Namespace) -> dict[str, Any]:
    """Submit everything at once, so that the service sets the pace; then wait for the last tap."""
    receiver, service, simulator = (children[name] for name in ("receiver", "service", "simulator"))
    fleet = {
        "name": "crowd", "first": str(FIRST_PHONE), "count": options.phones, "script": SCRIPT,
        "seed": options.seed,
    }  # fmt: skip
    await asyncio.to_thread(post_control, simulator.port, "/control/fleets", fleet)
    requests = prepare_requests(template_message, phones=options.phones, sources=1)
    submissions = itertools.islice(itertools.cycle(requests), options.messages)
    cpu_before_s = {name: child.cpu_s() for name, child in children.items()}
    began_s = time.monotonic()
    exchanges = await send_closed_loop(service.port, submissions, connections=64)
    within_s = options.messages / options.rate * 1.5 + SPARE_S
    while time.monotonic() - began_s < within_s:
        fleet_state = await asyncio.to_thread(simulator.get, "/control/fleets/crowd")
        received = await asyncio.to_thread(receiver.get, "/counts")
        tapped = fleet_state["steps"][1]["planned"]
        is_complete = received["reads"] >= options.messages and received["taps"] >= tapped
        if fleet_state["counts"]["read"] == options.messages and is_complete:
            break
        await asyncio.sleep(0.5)
    took_s = time.monotonic() - began_s
    used_cpu_s = {name: child.cpu_s() - cpu_before_s[name] for name, child in children.items()}
    deliveries = await asyncio.to_thread(read_deliveries, simulator)
    state = await asyncio.to_thread(simulator.get, "/control/state")
    final_fleet_state = await asyncio.to_thread(simulator.get, "/control/fleets/crowd")
    summary = await asyncio.to_thread(receiver.get, "/summary")
    ids = Counter(delivery["callback_data"] for delivery in deliveries)
    seen: dict[str, dict[str, float]] = summary["seen"]
    times = sorted(delivery["at_ms"] for delivery in deliveries)
    return {
        "took_s": round(took_s, 1),
        "sent_per_s": round(1000 * (len(times) - 1) / max(1, times[-1] - times[0]), 1),
        "peak_in_a_second": peak(times),
        "errors": state["errors"],
        "counts": final_fleet_state["counts"],
        "taps_planned": final_fleet_state["steps"][1]["planned"],
        "taps_called_back": summary["taps"],
        "doubled": sum(ids.values()) - len(ids) + summary["taps_doubled"],
        "lost": sum(exchange.message_id not in ids for exchange in exchanges),
        "callbacks_lost": sum(len(EVENTS) - len(seen.get(exchange.message_id, {})) for exchange in exchanges),
        "wrong": summary["wrong"],
        "cpu_us_per_message": {name: round(1e6 * seconds / options.messages) for name, seconds in used_cpu_s.items()},
    }


def peak(times_ms: Sequence[int]) -> int:
    """Return the maximum of messages within any 1,000 ms, as the operator counts them; times in order."""
    first = most = 0
    for last, at_ms in enumerate(times_ms):
        while times_ms[first] <= at_ms - SECOND_MS:
            first += 1
        most = max(most, last - first + 1)
    return most


def read_deliveries(simulator: Child) -> list[dict[str, Any]]:
    """Return every message that the simulator has accepted, in order."""
    every: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        page = simulator.get(f"/control/deliveries?limit=20000&after={after}")
        every += page["deliveries"]
        after = page["next"]
    return every


def post_control(port: int, path: str, body: dict[str, Any] | None, *, method: str = "POST") -> Any:
    """Call the simulator's control API, and return the JSON of its response."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())


def _table(result: dict[str, Any]) -> str:
    machine, settings, counts = result["machine"], result["settings"], result["counts"]
    met = {code: count for code, count in result["errors"].items() if code in LIMITS}
    is_kept = result["peak_in_a_second"] <= settings["rate"] and not met
    lines = [
        f"A fleet of {settings['phones']} phones, real time ({machine['processor']}, "
        f"{machine['cores']} cores, revision {machine['revision']}"
        f"{' and changes' if machine['changed_files'] else ''})",
        f"{settings['messages']} template messages from one number of {settings['rate']} a second",
        "",
        f"  {result['sent_per_s']:8.1f}  messages a second accepted by the operator, from first to last",
        f"  {result['peak_in_a_second']:8}  maximum within any 1,000 ms: "
        + ("the limit is kept" if is_kept else "the limit is NOT kept"),
        f"  {sum(met.values()):8}  rejected with 130429 or 131056 {met or ''}; "
        f"with other codes: {sum(result['errors'].values()) - sum(met.values())}",
        f"  {counts['delivered']:8}  delivered, {counts['read']} read, {counts['failed']} failed",
        f"  {result['taps_called_back']:8}  taps called back, of {result['taps_planned']}",
        f"  {result['lost']:8}  messages lost, {result['callbacks_lost']} callbacks lost",
        f"  {result['doubled']:8}  duplicated; out of order: {result['wrong'] or 'none'}",
        f"  {result['took_s']:8.1f}  s in all; us of processor time a message: "
        + ", ".join(f"{name} {us}" for name, us in result["cpu_us_per_message"].items()),
    ]
    return "\n".join(lines)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=80, help="The number's throughput.")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--phones", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    uvloop.run(main(parse_options()))
