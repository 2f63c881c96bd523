"""`python -m benchmarks.peers`: the saturation walk of each product, one table, one JSON file."""

import argparse
import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.peers import durability, jasmin, kannel
from benchmarks.peers.external import NotInstalled
from benchmarks.peers.product import Product, Surroundings
from benchmarks.peers.walk import Walker, best_step, walk_bare
from benchmarks.peers.waypost import WaypostProduct
from benchmarks.processes import Child, describe_machine, temporary_folder, write_result
from benchmarks.stores import let_others_traverse, open_stores

# fmt: off
PRODUCTS = ("sqlite", "postgresql", "sqlite-simulator", "postgresql-simulator", "kannel", "jasmin")
QUICK_PRODUCTS = ("sqlite", "postgresql", "kannel", "jasmin")
RATES = (25, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400)
QUICK_RATES = (25, 100, 400, 1_600, 6_400)
BARE_RATES = (800, 1_600, 3_200, 6_400, 12_800)
BARE_S = 1.0
SIZES = {  # `--quick` has shorter and fewer steps, no simulator, and nothing is killed
    #              usual  quick
    "seconds":     (4.0,  2.0),
    "refinements": (2,    0),
    "attempts":    (2,    1),
}
# fmt: on


async def main(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print, and write the result."""
    began_s = time.monotonic()
    results: list[dict[str, Any]] = []
    with temporary_folder() as at, ExitStack() as stack:
        let_others_traverse(at)
        machine = describe_machine(at)
        print(f"{machine['processor']}, {machine['cores']} cores; load before {machine['load_before']:.2f}", flush=True)
        bare = await walk_bare(BARE_RATES, BARE_S)
        _print_steps("Load generator against bare.py", bare)
        receiver = Child("benchmarks.peers.receiver")
        stack.callback(receiver.end)
        receiver.wait_ready()
        stores = {
            engine: stack.enter_context(open_stores(engine, at))
            for engine in ("sqlite", "postgresql")
            if any(name.startswith(engine) for name in options.products)
        }
        make = _makers(at, stores)
        for name in options.products:
            result = await _measure_product(name, make[name], Surroundings(at / name, receiver.port), receiver, options)
            results.append(result)
    print(format_results(results))
    settings = {
        "rates": QUICK_RATES if options.quick else RATES,
        "seconds": options.seconds,
        "refinements": options.refinements,
    }
    settings |= {"report_after_ms": Surroundings(Path(), 0).report_after_ms, "products": options.products}
    result = {
        "benchmark": "peers",
        "machine": machine,
        "settings": settings,
        "took_s": round(time.monotonic() - began_s),
        "bare": bare,
        "products": results,
    }
    print(f"{result['took_s']} s; written to {write_result('peers', result)}")
    return result


def _makers(at: Path, stores: dict[str, Any]) -> dict[str, Callable[[Surroundings], Product]]:
    """Return what makes each product; Jasmin is installed once, when it is first needed."""
    environment: list[Path] = []

    def make_jasmin(around: Surroundings) -> Product:
        if not environment:
            environment.append(jasmin.install(at))
        return jasmin.JasminProduct(around, environment[0])

    return {
        "sqlite": lambda around: WaypostProduct(stores["sqlite"], around, simulated=False),
        "postgresql": lambda around: WaypostProduct(stores["postgresql"], around, simulated=False),
        "sqlite-simulator": lambda around: WaypostProduct(stores["sqlite"], around, simulated=True),
        "postgresql-simulator": lambda around: WaypostProduct(stores["postgresql"], around, simulated=True),
        "kannel": kannel.KannelProduct,
        "jasmin": make_jasmin,
    }


async def _measure_product(
    name: str,
    make: Callable[[Surroundings], Product],
    around: Surroundings,
    receiver: Child,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return the result of one product; what goes wrong is in it, and the others are still measured."""
    result: dict[str, Any] = {"id": name}
    rates = QUICK_RATES if options.quick else RATES
    around.folder.mkdir(parents=True)
    try:
        product = await asyncio.to_thread(make, around.inside("walk"))
        result |= {"name": product.name, **product.description}
        try:
            await asyncio.to_thread(product.start)
            walker = Walker(product, receiver, seconds=options.seconds, attempts=options.attempts)
            await walker.warm_up()
            result["flushes"] = await durability.count_flushes(product, walker, around.folder)
            result["steps"] = await walker.walk(rates, refinements=options.refinements)
        finally:
            await asyncio.to_thread(product.end)
        _print_steps(product.name, result["steps"])
        if not options.quick and not name.endswith("-simulator"):
            result["kill"] = await _kill(make, around, receiver)
    except NotInstalled as error:
        result |= {"name": result.get("name", name), "not_measured": str(error)}
        print(f"\n{name} is not measured: {error}", flush=True)
    except Exception as error:  # noqa: BLE001  the others are still measured
        result |= {"name": result.get("name", name), "not_measured": repr(error)[:1000]}
        print(f"\n{name} is not measured: {error!r}", flush=True)
    return result


async def _kill(make: Callable[[Surroundings], Product], around: Surroundings, receiver: Child) -> dict[str, Any]:
    around = Surroundings(
        around.folder / "kill", receiver.port, respond_after_ms=durability.KILL_RESPOND_AFTER_MS,
        distinct_recipients=True, uncertain_for_s=durability.KILL_UNCERTAIN_FOR_S,
    )  # fmt: skip
    product = await asyncio.to_thread(make, around)
    try:
        await asyncio.to_thread(product.start)
        return await durability.kill_under_load(product, receiver)
    finally:
        await asyncio.to_thread(product.end)


def _print_steps(name: str, steps: Sequence[dict[str, Any]]) -> None:
    print(f"\n{name}")
    for step in steps:
        acknowledged, notified = step["acknowledged"], step.get("notified", {})
        cpu = ", ".join(f"{role} {us}" for role, us in step["cpu_us_per_message"].items())
        counts = ", ".join(f"{step[key]} {key}" for key in ("lost", "doubled", "out_of_order") if step.get(key))
        print(
            f"  {step['per_second']:6,}/s  acknowledged {step['acknowledged_per_s']:8,.0f}/s"
            f" p50 {acknowledged.get('p50_ms', 0):8.2f} p99 {acknowledged.get('p99_ms', 0):8.2f} ms"
            f"  notified {step['notified_per_s'] or 0:8,.0f}/s"
            f" p50 {notified.get('p50_ms', 0):8.1f} p99 {notified.get('p99_ms', 0):8.1f} ms"
            f"  late p99 {step['late'].get('p99_ms', 0):6.2f}  us: {cpu}"
            f"  others {step.get('others_share', 0):4.0%}  {'' if step['keeps_up'] else 'FALLS BEHIND'} {counts}",
            flush=True,
        )


def format_results(results: Sequence[dict[str, Any]]) -> str:
    """Return the table: the highest rate that each product kept up with, and its latencies there."""
    lines = [f"\n{'':32}{'keeps up':>9}{'acknowledged, ms':>26}{'last notification, ms':>30}{'flushes':>10}"]
    lines.append(f"{'':32}{'/s':>9}{'p50':>10}{'p99':>8}{'p99.9':>8}{'p50':>12}{'p99':>9}{'p99.9':>9}{'/message':>10}")
    for result in results:
        best = best_step(result.get("steps", []))
        if best is None:
            lines.append(f"{result['name']:32}{result.get('not_measured', 'keeps up with no rate')[:100]}")
            continue
        acknowledged, notified = best["acknowledged"], best["notified"]
        flushes = result.get("flushes")
        lines.append(
            f"{result['name']:32}{best['per_second']:>9,}"
            f"{acknowledged['p50_ms']:>10.1f}{acknowledged['p99_ms']:>8.1f}{acknowledged['p99_9_ms']:>8.1f}"
            f"{notified['p50_ms']:>12.1f}{notified['p99_ms']:>9.1f}{notified['p99_9_ms']:>9.1f}"
            f"{flushes['per_message'] if flushes else '?':>10}"
        )
        if "kill" in result:
            lines.append(
                " " * 4 + "after a kill: " + ", ".join(f"{key} {value}" for key, value in result["kill"].items())
            )
    return "\n".join(lines)


def parse_options(text: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command's options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--products", type=_parse_products, help=",".join(PRODUCTS))
    parser.add_argument("--quick", action="store_true", help="Under three minutes, less precise, and without a kill.")
    parser.add_argument("--seconds", type=float, help="Length of each step.")
    parser.add_argument("--refinements", type=int, help="Steps between the last two rates.")
    parser.add_argument("--attempts", type=int, help="At a rate that is missed.")
    options = parser.parse_args(text)
    options.products = options.products or list(QUICK_PRODUCTS if options.quick else PRODUCTS)
    for name, sizes in SIZES.items():
        if getattr(options, name) is None:
            setattr(options, name, sizes[options.quick])
    return options


def _parse_products(text: str) -> list[str]:
    selected = text.split(",")
    for name in selected:
        if name not in PRODUCTS:
            raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(PRODUCTS)}")
    return selected


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(parse_options()))
