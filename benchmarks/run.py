"""Everything in one go: `make bench`. T1 to T7 on each engine, one table, one JSON file."""

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import accept, callbacks, growth, pipeline, scale_out, weight
from benchmarks.figures import Figure, as_json, table
from benchmarks.processes import folder, keep, machine
from benchmarks.stores import ENGINES, SETTINGS, Stores, stores_of

TARGETS = ("T1", "T2", "T3", "T4", "T5", "T6", "T7")
RATE = 100  # messages a second, at which latencies are told
# fmt: off
SIZES = {  # what a run takes; `--quick` is rougher, and says less of growth
    #              usual      quick
    "rounds":     (3,         1),
    "seconds":    (2.0,       1.0),
    "messages":   (8_000,     2_000),
    "callbacks":  (20_000,    5_000),
    "stored":     (5_000_000, 100_000),
}
# fmt: on


async def main(options: argparse.Namespace) -> list[Figure]:
    """Measure, print, keep."""
    figures: list[Figure] = []
    raw: dict[str, Any] = {}
    with folder() as at, ExitStack() as ends:
        options.at = at
        about = machine(at)
        stores = {engine: ends.enter_context(stores_of(engine, at)) for engine in options.engines}
        about["engines"] = [made.version for made in stores.values()]
        print(_heading(about, options), end="\n\n", flush=True)
        await _measure(stores, at, options, figures, raw)
    settings = {name: getattr(options, name) for name in SIZES}
    settings |= {"engines": options.engines, "only": options.only, "profiled": options.profile}
    settings |= {"postgresql": SETTINGS, "sqlite": {"synchronous": "FULL"}}
    figures.sort(key=lambda one: one.target)
    print(table(figures))
    missed = [one for one in figures if one.verdict == "MISSED"]
    print(f"\n{len(missed)} of {sum(one.least is not None for one in figures)} targets missed")
    if options.profile:
        print("Figures of a run with profiles are slowed by them; compare none of them with another run's.")
    result = {"machine": about, "settings": settings, "figures": as_json(figures), "raw": raw}
    print(f"kept in {keep('bench', result)}")
    return figures


async def _measure(
    stores: dict[str, Stores], at: Path, options: argparse.Namespace, figures: list[Figure], raw: dict[str, Any]
) -> None:
    """One after the other; one that fails is told, and the others are measured all the same."""
    plan: list[tuple[str, str, Any]] = []
    if {"T1", "T2"} & set(options.only):
        plan.append(("T1", "accept", lambda: accept.measure(stores, options)))
    for engine, made in stores.items():
        if "T3" in options.only:
            plan.append(("T3", f"pipeline on {engine}", lambda made=made: pipeline.measure(made, options)))
        if "T3" in options.only and not options.profile:
            plan.append((
                "T3", f"pipeline at {RATE} a second on {engine}",
                lambda made=made: pipeline.measure(made, _fewer(options), rate=RATE),
            ))  # fmt: skip
        if "T4" in options.only:
            plan.append(("T4", f"callbacks on {engine}", lambda made=made: callbacks.measure(made, options)))
        if "T5" in options.only:
            plan.append(("T5", f"growth on {engine}", lambda made=made: growth.measure(made, options)))
        if "T6" in options.only and engine == "postgresql":
            plan.append(("T6", "scale-out", lambda made=made: scale_out.measure(made, options)))
    if "T7" in options.only:
        plan.append(("T7", "weight", lambda: weight.measure(at, options)))
    for target, name, measure in plan:
        try:
            found, details = await measure()
        except Exception as error:  # noqa: BLE001  told in the table, which has a verdict for it
            found = [Figure(target, "", f"{name} was not measured: {error!r}"[:200], 1, "", 0, lower_is_better=True)]
            details = {"error": repr(error)}
        figures += found
        raw[name] = details
        print(table(found), end="\n\n", flush=True)


def _fewer(options: argparse.Namespace) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(options), "messages": options.messages // 8})


def _heading(about: dict[str, Any], options: argparse.Namespace) -> str:
    changed = f" and {about['changed_files']} changed files" if about["changed_files"] else ""
    return (
        f"waypost {about['revision']}{changed}, {about['at']}\n"
        f"{about['processor']}, {about['cores']} cores, {about['system']}, Python {about['python']}, "
        f"{', '.join(about['engines'])}\n"
        f"the disk flushes 4 KiB in {about['flush_us']} us; load before {about['load_before']:.2f}\n"
        + ", ".join(f"{name} {getattr(options, name):,}" for name in SIZES)
    )


def options_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument("--engines", type=_list_of(ENGINES), default=list(ENGINES), help="sqlite,postgresql")
    parser.add_argument("--only", type=_list_of(TARGETS), default=list(TARGETS), help="T1,T3")
    parser.add_argument("--quick", action="store_true", help="A few minutes, and rougher.")
    parser.add_argument("--profile", action="store_true", help="Where the time goes; T1 and T3 only.")
    parser.add_argument("--plans", action="store_true", help="The plans of the hot statements; with T5.")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64, 256])
    for name, (usual, _) in SIZES.items():
        parser.add_argument(f"--{name}", type=type(usual))
    options = parser.parse_args(words)
    for name, sizes in SIZES.items():
        if getattr(options, name) is None:
            setattr(options, name, sizes[options.quick])
    if options.profile:
        options.only = [one for one in options.only if one in ("T1", "T3")]
    if options.plans and options.only == list(TARGETS):
        options.only = ["T5"]
    return options


def _list_of(known: Sequence[str]) -> Any:
    def read(words: str) -> list[str]:
        chosen = words.split(",")
        for one in chosen:
            if one not in known:
                raise argparse.ArgumentTypeError(f"{one} is none of {', '.join(known)}")
        return [one for one in known if one in chosen]

    return read


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(options_of()))
