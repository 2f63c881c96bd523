"""All benchmarks, for `make bench`: T1 to T11 on each engine, one table, one JSON file."""

import argparse
import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import accept, callbacks, footprint, growth, latency, pipeline, scale_out, written_rows
from benchmarks.measurements import Measurement, format_table, measurements_as_json
from benchmarks.processes import describe_machine, temporary_folder, write_result
from benchmarks.stores import ENGINES, SETTINGS, Stores, open_stores

TARGETS = ("T1", "T2", "T3", "T4", "T5", "T6", "T7", "T9", "T10")  # T10 measures T11 as well
PER_ENGINE: dict[str, tuple[str, Callable[..., Any]]] = {
    "T3": ("pipeline", pipeline.measure_throughput),
    "T4": ("callbacks", callbacks.measure),
    "T5": ("growth", growth.measure),
    "T6": ("scale-out", scale_out.measure),
    "T9": ("rows", written_rows.measure),
    "T10": ("latency", latency.measure),
}
# fmt: off
SIZES = {  # sizes of a run; `--quick` is less precise, above all about growth
    #              usual      quick
    "rounds":     (3,         1),
    "seconds":    (2.0,       1.0),
    "messages":   (8_000,     2_000),
    "callbacks":  (20_000,    5_000),
    "stored":     (5_000_000, 100_000),
    "counted":    (2_000,     500),
}
# fmt: on


async def main(options: argparse.Namespace) -> list[Measurement]:
    """Measure, print, and write the result."""
    measurements: list[Measurement] = []
    raw: dict[str, Any] = {}
    with temporary_folder() as at, ExitStack() as stack:
        options.at = at
        machine = describe_machine(at)
        stores = {engine: stack.enter_context(open_stores(engine, at)) for engine in options.engines}
        machine["engines"] = [engine_stores.version for engine_stores in stores.values()]
        print(_heading(machine, options), end="\n\n", flush=True)
        await _measure(stores, at, options, measurements, raw)
    settings = {name: getattr(options, name) for name in SIZES}
    settings |= {"engines": options.engines, "only": options.only, "profiled": options.profile}
    settings |= {"postgresql": SETTINGS, "sqlite": {"synchronous": "FULL"}}
    measurements.sort(key=lambda measurement: int(measurement.target[1:]))
    print(format_table(measurements))
    missed = [measurement for measurement in measurements if measurement.verdict == "MISSED"]
    print(f"\n{len(missed)} of {sum(measurement.least is not None for measurement in measurements)} targets missed")
    if options.profile:
        print("Profiling slows a run; do not compare its measurements with those of another run.")
    result = {"machine": machine, "settings": settings, "figures": measurements_as_json(measurements), "raw": raw}
    print(f"written to {write_result('bench', result)}")
    return measurements


async def _measure(
    stores: dict[str, Stores],
    at: Path,
    options: argparse.Namespace,
    measurements: list[Measurement],
    raw: dict[str, Any],
) -> None:
    """Run the benchmarks one after the other; a failure is reported, and the others still run."""
    plan: list[tuple[str, str, Any]] = []
    if {"T1", "T2"} & set(options.only):
        plan.append(("T1", "accept", partial(accept.measure, stores, options)))
    for engine, engine_stores in stores.items():
        plan += [
            (target, f"{name} on {engine}", partial(function, engine_stores, options))
            for target, (name, function) in PER_ENGINE.items()
            if target in options.only and (target != "T6" or engine == "postgresql")
        ]
    if "T7" in options.only:
        plan.append(("T7", "footprint", partial(footprint.measure, at, options)))
    for target, name, measure in plan:
        try:
            results, details = await measure()
        except Exception as error:  # noqa: BLE001  reported in the table, which has a verdict for it
            results = [
                Measurement(target, "", f"{name} was not measured: {error!r}"[:200], 1, "", 0, lower_is_better=True)
            ]
            details = {"error": repr(error)}
        measurements += results
        raw[name] = details
        print(format_table(results), end="\n\n", flush=True)


def _heading(machine: dict[str, Any], options: argparse.Namespace) -> str:
    changed = f" and {machine['changed_files']} changed files" if machine["changed_files"] else ""
    return (
        f"waypost {machine['revision']}{changed}, {machine['at']}\n"
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"{', '.join(machine['engines'])}\n"
        f"the disk flushes 4 KiB in {machine['flush_us']} us; load before {machine['load_before']:.2f}\n"
        + ", ".join(f"{name} {getattr(options, name):,}" for name in SIZES)
    )


def parse_options(text: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command's options."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument("--engines", type=_parse_list(ENGINES), default=list(ENGINES), help="sqlite,postgresql")
    parser.add_argument("--only", type=_parse_list(TARGETS), default=list(TARGETS), help="T1,T3")
    parser.add_argument("--quick", action="store_true", help="A few minutes, and less precise.")
    parser.add_argument("--profile", action="store_true", help="Profile the processor time; T1 and T3 only.")
    parser.add_argument("--plans", action="store_true", help="Print the plans of the hot statements; with T5.")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64, 256])
    for name, (usual, _) in SIZES.items():
        parser.add_argument(f"--{name}", type=type(usual))
    options = parser.parse_args(text)
    for name, sizes in SIZES.items():
        if getattr(options, name) is None:
            setattr(options, name, sizes[options.quick])
    if options.profile:
        options.only = [target for target in options.only if target in ("T1", "T3")]
    if options.plans and options.only == list(TARGETS):
        options.only = ["T5"]
    return options


def _parse_list(known: Sequence[str]) -> Any:
    def read(text: str) -> list[str]:
        selected = text.split(",")
        for name in selected:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(known)}")
        return [name for name in known if name in selected]

    return read


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(parse_options()))
