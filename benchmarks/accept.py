"""T1 and T2: durable acknowledgements of the accept stage alone, against the bare server."""

import argparse
import asyncio
import itertools
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import uvloop

from benchmarks.load import as_fast_as_answered, prepared, session_text, template_message
from benchmarks.processes import Child, Profile, folder, keep, machine

SERVER_CORE, LOAD_CORE = 0, 1
WARM_S = 0.3
# fmt: off
TARGETS = {  # Source: design, section 7, T1 on SQLite: by connections the ratio that must be reached, and the aim
    16: (0.35, 0.35),
    64: (0.45, 0.60),
}
KINDS = {"session text": session_text, "template": template_message}
# fmt: on


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print, keep."""
    if (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {LOAD_CORE})
    with folder() as at:
        about = machine(at)
        core = ("--core", str(SERVER_CORE))
        servers = {
            "bare": Child("benchmarks.bare", *core),
            "accept": Child("benchmarks.service", "--data", str(at / "service"), *core),
        }
        try:
            for server in servers.values():
                server.wait_ready()
            rows = await _measure(servers, options)
            profile = await _profile(servers["accept"]) if options.profile else ""
        finally:
            for server in servers.values():
                server.end()
    settings = {"rounds": options.rounds, "seconds": options.seconds, "synchronous": "FULL"}
    result = {"benchmark": "accept", "machine": about, "settings": settings, "rows": rows}
    print(_table(result))
    if profile:
        print("\n" + profile)
    print(f"\nkept in {keep('accept', result)}")
    return result


async def _measure(servers: dict[str, Child], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rounds are interleaved, so that noise of the machine meets both servers; medians are kept."""
    cases = [("session text", count) for count in options.connections]
    cases += [("template", 64)] if 64 in options.connections else []
    found: dict[tuple[str, int, str], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for kind, connections in cases:
            for name, server in servers.items():
                once = await _once(server, kind, connections, options.seconds)
                found.setdefault((kind, connections, name), []).append(once)
    rows: list[dict[str, Any]] = []
    for kind, connections in cases:
        row: dict[str, Any] = {"kind": kind, "connections": connections}
        for name in servers:
            rounds = found[kind, connections, name]
            row[name] = {what: statistics.median(one[what] for one in rounds) for what in rounds[0]}
        pairs = zip(*(found[kind, connections, name] for name in ("accept", "bare")), strict=True)
        row["ratio"] = statistics.median(one["per_s"] / other["per_s"] for one, other in pairs)
        rows.append(row)
    return rows


async def _once(server: Child, kind: str, connections: int, seconds: float) -> dict[str, float]:
    requests = prepared(KINDS[kind], phones=2000, sources=8)
    began_s = time.monotonic()
    load = asyncio.create_task(
        as_fast_as_answered(
            server.port,
            _until(requests, began_s + WARM_S + seconds),
            connections=connections,
        )
    )
    await asyncio.sleep(WARM_S)
    from_s, cpu_s = time.monotonic(), server.cpu_s()
    await asyncio.sleep(seconds)
    to_s, used_s = time.monotonic(), server.cpu_s() - cpu_s
    counted = [one for one in await load if from_s <= one.ended_s < to_s]
    took_ms = sorted(1000 * (one.ended_s - one.began_s) for one in counted)
    return {
        "per_s": len(counted) / (to_s - from_s),
        "p50_ms": took_ms[len(took_ms) // 2],
        "p99_ms": took_ms[len(took_ms) * 99 // 100],
        "cpu_us": 1e6 * used_s / len(counted),
    }


def _until(requests: Sequence[bytes], until_s: float) -> Iterator[bytes]:
    return itertools.takewhile(lambda _: time.monotonic() < until_s, itertools.cycle(requests))


async def _profile(server: Child) -> str:
    profile = Profile("the accept stage, 64 connections", server.pid, seconds=4)
    await asyncio.sleep(0.5)
    await _once(server, "session text", 64, 4)
    return await asyncio.to_thread(profile.text)


def _table(result: dict[str, Any]) -> str:
    about = result["machine"]
    lines = [
        f"Accept stage alone, against the bare server ({about['processor']}, {about['cores']} cores, "
        f"Python {about['python']}, SQLite {about['sqlite']}, revision {about['revision']}"
        f"{' and changes' if about['changed_files'] else ''})",
        f"One server process on core {SERVER_CORE}, load on core {LOAD_CORE}; medians of "
        f"{result['settings']['rounds']} interleaved rounds; the disk flushes 4 KiB in {about['flush_us']} us",
        "",
        f"{'connections':>22}{'bare':>9}{'accept':>9}{'ratio':>7}{'p50':>8}{'p99':>8}{'p99/':>7}{'cpu us per ack':>18}",
        f"{'':22}{'per s':>9}{'per s':>9}{'':7}{'ms':>8}{'ms':>8}{'p50':>7}{'bare':>9}{'accept':>9}",
    ]
    for row in result["rows"]:
        ours, bare = row["accept"], row["bare"]
        lines.append(
            f"{row['kind']:14}{row['connections']:>8}{bare['per_s']:>9.0f}{ours['per_s']:>9.0f}"
            f"{row['ratio']:>7.2f}{ours['p50_ms']:>8.2f}{ours['p99_ms']:>8.2f}"
            f"{ours['p99_ms'] / ours['p50_ms']:>7.1f}{bare['cpu_us']:>9.0f}{ours['cpu_us']:>9.0f}"
            f"  {_verdict(row)}"
        )
    return "\n".join(lines)


def _verdict(row: dict[str, Any]) -> str:
    if row["kind"] != "session text" or row["connections"] not in TARGETS:
        return ""
    least, aim = TARGETS[row["connections"]]
    if row["ratio"] < least:
        return f"MISSED: at least {least}"
    return f"met: at least {least}" + (f"; aim {aim} missed" if row["ratio"] < aim else "")


def options_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args(words)


if __name__ == "__main__":
    uvloop.run(main(options_of()))
