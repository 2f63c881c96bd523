"""`python -m simulation --seeds 1-100`: run each seed, and print what broke with the command that repeats it."""

import argparse
import sys
import time
import traceback
from typing import Any

import simloom

from simulation.choices import Choices
from simulation.machine import replace_machine
from simulation.world import Outcome, run_world
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs


def main(options: argparse.Namespace) -> int:
    """Run the seeds; return 1 if a promise was broken, or a seed did not repeat."""
    set_up_logs(SystemClock(), as_json=True, level="critical")
    transports: list[Any] = []
    replace_machine(transports)
    first, _, last = options.seeds.partition("-")
    failed, steps, began_s = 0, 0, time.perf_counter()
    seeds = range(int(first), int(last or first) + 1)
    for seed in seeds:
        runs = [_run(seed, options, transports) for _ in range(2 if options.twice else 1)]
        result = runs[0]
        steps += len(result.log)
        problems = list(_problems(result))
        if len({one.digest for one in runs}) > 1:
            problems.append("the seed did not repeat")
        failed += bool(problems)
        if problems or options.verbose:
            print(f"seed {seed}: {result.value}", flush=True)
        for problem in problems:
            print(f"  {problem}", flush=True)
        if problems:
            print(f"  repeat it with: make simulate ARGS='--seeds {seed} --messages {options.messages} --verbose'")
    took_s = time.perf_counter() - began_s
    repeated = ", each twice" if options.twice else ""
    print(f"{len(seeds)} seeds{repeated}, {steps} steps in {took_s:.1f} s: {failed} failed")
    return 1 if failed else 0


def _run(seed: int, options: argparse.Namespace, transports: list[Any]) -> Any:
    async def world(_world: Any) -> Outcome:
        return await run_world(Choices(seed), options.messages, transports, has_faults=not options.no_faults)

    return simloom.run(
        world,
        seed=seed,
        virtual_time=True,
        seed_randomness=True,
        raise_on_error=False,
        on_unhandled="record",
        gc_interval=100_000,  # its collections take most of the time otherwise
    )


def _problems(result: Any) -> list[str]:
    if result.error is not None:
        return ["".join(traceback.format_exception(result.error)).replace("\n", "\n  ")]
    return result.value.broken


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make simulate ARGS=...", description=__doc__)
    parser.add_argument("--seeds", default="1-100", help="One, or the first and the last.")
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--twice", action="store_true", help="Run each seed again, and compare the traces.")
    parser.add_argument("--verbose", action="store_true", help="Print what each seed did.")
    sys.exit(main(parser.parse_args()))
