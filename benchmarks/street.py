"""T3: the whole street. Submit, operator, phone; enqueued, sent, delivered and read each called back."""

import argparse
import asyncio
import itertools
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.load import Answered, as_fast_as_answered, at_rate, prepared, template_message
from benchmarks.processes import Child, Profile, cpu_s, folder, free_port, keep, machine
from benchmarks.receiver import KINDS

PHONES = 10_000
WITHIN_S = 60
# fmt: off
TARGET, AIM = 600, 1000  # messages a second. Source: design, section 7, T3
# fmt: on


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print, keep."""
    with folder() as at:
        about = machine(at)
        children = _start(at, options)
        try:
            for child in children.values():
                child.wait_ready()
            await _run(children, options, messages=500)  # what loads once, loads now
            await asyncio.to_thread(children["receiver"].get, "/forget")
            profiles = _profiles(children, options)
            figures = await _run(children, options, messages=options.messages)
            told = [await asyncio.to_thread(profile.text) for profile in profiles]
        finally:
            for child in reversed(children.values()):
                child.end()
    settings = {
        "messages": options.messages,
        "per_second": options.rate or "as fast as acknowledged",
        "connections": options.connections,
        "sources": options.sources,
        "phones": PHONES,
        "profiled": bool(told),
    }
    result = {"benchmark": "street", "machine": about, "settings": settings, **figures}
    print(_table(result))
    for text in told:
        print("\n" + text)
    print(f"\nkept in {keep('street', result)}")
    return result


def _start(at: Path, options: argparse.Namespace) -> dict[str, Child]:
    """Simulator and service need each other's addresses; the simulator's port is found first."""
    receiver = Child("benchmarks.receiver")
    graph = free_port()
    service = Child(
        "benchmarks.service",
        *("--stages", "--data", str(at / "service")),
        *("--operator", f"http://127.0.0.1:{graph}"),
        *("--receiver", f"http://127.0.0.1:{receiver.port}/callbacks"),
    )
    simulator = Child(
        "benchmarks.other_party",
        *("--data", str(at / "simulator.db"), "--gather-ms", str(options.gather_ms)),
        *("--webhook", f"http://127.0.0.1:{service.port}/operator/webhook/demo"),
        port=graph,
    )
    return {"receiver": receiver, "service": service, "simulator": simulator}


def _profiles(children: dict[str, Child], options: argparse.Namespace) -> list[Profile]:
    if not options.profile:
        return []
    seconds = 0.7 * options.messages / (options.rate or AIM)
    return [
        Profile(f"the {name}, whole street", children[name].pid, seconds=seconds)
        for name in ("service", "simulator")
    ]


async def _run(
    children: dict[str, Child], options: argparse.Namespace, *, messages: int
) -> dict[str, Any]:
    receiver, service = children["receiver"], children["service"]
    requests = prepared(template_message, phones=PHONES, sources=options.sources)
    wanted = list(itertools.islice(itertools.cycle(requests), messages))
    used = {name: child.cpu_s() for name, child in children.items()}
    used["load"] = cpu_s(os.getpid())
    began_s = time.monotonic()
    if options.rate:
        answers = await at_rate(
            service.port, wanted, per_second=options.rate, connections=options.connections
        )
    else:
        answers = await as_fast_as_answered(
            service.port, iter(wanted), connections=options.connections
        )
    acknowledged_s = time.monotonic() - began_s
    while (await asyncio.to_thread(receiver.get, "/reads"))["reads"] < messages:
        if time.monotonic() - began_s > WITHIN_S:
            break
        await asyncio.sleep(0.1)
    spent = {name: child.cpu_s() - used[name] for name, child in children.items()}
    spent["load"] = cpu_s(os.getpid()) - used["load"]
    judged = await asyncio.to_thread(receiver.get, "/judged")
    return _figures(answers, judged, spent, began_s, acknowledged_s)


def _figures(
    answers: Sequence[Answered],
    judged: dict[str, Any],
    spent: dict[str, float],
    began_s: float,
    acknowledged_s: float,
) -> dict[str, Any]:
    seen: dict[str, dict[str, float]] = judged["seen"]
    submitted = {one.message_id: one for one in answers}
    lost = sum(len(KINDS) - len(seen.get(message_id, {})) for message_id in submitted)
    ended_s = max((max(times.values()) for times in seen.values() if times), default=began_s)
    count = len(answers)
    latencies: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        took = sorted(
            1000 * (seen[one][kind] - answer.began_s)
            for one, answer in submitted.items()
            if kind in seen.get(one, {})
        )
        if took:
            latencies[kind] = {
                "p50_ms": round(statistics.median(took), 1),
                "p99_ms": round(took[len(took) * 99 // 100], 1),
            }
    return {
        "per_s": count / (ended_s - began_s),
        "acknowledged_per_s": count / acknowledged_s,
        "cpu_us_per_message": {name: round(1e6 * s / count) for name, s in spent.items()},
        "latencies": latencies,
        "lost": lost,
        "strangers": len(seen.keys() - submitted.keys()),
        "wrong": judged["wrong"],
    }


def _table(result: dict[str, Any]) -> str:
    about, settings = result["machine"], result["settings"]
    per_s = result["per_s"]
    verdict = (
        "MISSED" if per_s < TARGET else "met, aim missed" if per_s < AIM else "met, and the aim"
    )
    if settings["per_second"] != "as fast as acknowledged":
        verdict = "not judged at a set rate"
    cpu = result["cpu_us_per_message"]
    lines = [
        f"The whole street ({about['processor']}, {about['cores']} cores, revision {about['revision']}"
        f"{' and changes' if about['changed_files'] else ''})",
        f"{settings['messages']} template messages, {settings['per_second']} per second, "
        f"{settings['sources']} sources, {PHONES} phones, all processes on the same cores",
        "",
        f"  {per_s:8.0f}  messages a second end to end; at least {TARGET}, aim {AIM}: {verdict}"
        + (" (slowed by the profiler)" if settings["profiled"] else ""),
        f"  {result['acknowledged_per_s']:8.0f}  acknowledged a second",
        f"  {result['lost']:8}  callbacks lost",
        f"  {sum(result['wrong'].values()):8}  out of order or told twice {result['wrong'] or ''}",
        f"  {sum(cpu.values()):8}  us of processor time a message: "
        + ", ".join(f"{name} {us}" for name, us in cpu.items()),
    ]
    lines += [
        f"  {took['p50_ms']:8.1f}  ms from submission to {kind}, median; p99 {took['p99_ms']:.1f}"
        for kind, took in result["latencies"].items()
    ]
    return "\n".join(lines)


def options_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=12_000)
    parser.add_argument("--rate", type=float, help="Messages a second; else as acknowledged.")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--gather-ms", type=int, default=50)
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args(words)


if __name__ == "__main__":
    uvloop.run(main(options_of()))
