"""The weight of the source: its lines and modules, and what one template message passes until it is called back.

`python -m benchmarks.weight` prints a table; `--json FILE` writes it as well, `--calls` prints every function that the
message passed. Nothing is compared: run it before and after a change.
"""

import argparse
import ast
import asyncio
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.load import prepare_requests, send_closed_loop, template_message
from benchmarks.pipeline import run_load, start_children
from benchmarks.processes import Child, temporary_folder
from benchmarks.stores import Stores, open_stores
from benchmarks.words import count_words, hand_written

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "waypost"
WIDTH = 120
WARM = 50
IDLE_S = 3.0
WARM_LOAD = 300
LOAD = 1_000
WITHIN_S = 60
UNIT_TEST = "tests/unit/test_shown_urls.py"
_SWITCHES = re.compile(r"[ \t]*# fmt: (?:off|on|skip)[^\n]*")


@dataclass(frozen=True, slots=True)
class Source:
    """What is counted in the files of a package."""

    modules: int
    packages: int
    lines: int
    wide: int
    functions: int
    small: int  # functions whose body has at most three lines


Function = tuple[str, str]
"""A module and the name of a function in it."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What one message passed in the service, and the functions between the claim of a job and the wire."""

    modules: int
    functions: int
    calls: int
    dispatch_hands: int
    callback_hands: int


HAND_PACKAGES = ("admission/", "dispatch/", "callbacks/", "outbound/")
"""The packages between a queue and the wire; the operator adapter, which renders the message, is not counted."""


def measure_source(folder: Path, at: Path) -> dict[str, Source]:
    """Return the counts of each package below a folder, and of all under the empty name.

    Lines are those of `ruff format` at 120 columns with every switch of the formatter removed.
    """
    copy = at / "formatted" / "waypost"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for file in copy.rglob("*.py"):
        file.write_text(_SWITCHES.sub("", file.read_text()))
    ruff = Path(sys.executable).parent / "ruff"
    subprocess.run([ruff, "format", "-q", "--config", str(ROOT / "pyproject.toml"), str(copy)], check=True)
    packages: dict[str, list[Path]] = {"": []}
    for file in sorted(folder.rglob("*.py")):
        relative = file.relative_to(folder)
        packages[""].append(relative)
        packages.setdefault(relative.parts[0].removesuffix(".py"), []).append(relative)
    return {name: _count(folder, copy, files) for name, files in packages.items()}


def _count(folder: Path, formatted: Path, files: list[Path]) -> Source:
    texts = [(folder / file).read_text() for file in files]
    bodies = [
        (node.body[-1].end_lineno or 0) - node.body[_has_docstring(node)].lineno + 1
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.body) > _has_docstring(node)
    ]
    return Source(
        modules=len(files),
        packages=sum(file.name == "__init__.py" for file in files),
        lines=sum(len((formatted / file).read_text().splitlines()) for file in files),
        wide=sum(len(line) > WIDTH for text in texts for line in text.splitlines()),
        functions=len(bodies),
        small=sum(lines <= 3 for lines in bodies),
    )


def _has_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None


async def trace_message(stores: Stores, at: Path) -> tuple[Counter[Function], list[Function]]:
    """Return how often each function ran in the service for one template message, and the main thread's in order.

    From its request to its callbacks for enqueued, sent and delivered; what the service does when it is idle for as
    long is left out.
    """
    file, store = at / "calls.txt", stores.new()
    service_options = ("--trace", str(file), "--modes", "ENQUEUED,SENT,DELIVERED")
    children = start_children(store, *service_options, simulator=("--read-after-ms", "never"))
    service, receiver = children["service"], children["receiver"]
    try:
        for child in children.values():
            child.wait_ready()
        requests = prepare_requests(template_message, phones=WARM + 1, sources=1)
        await send_closed_loop(service.port, iter(requests[:WARM]), connections=1)
        await _wait_for_callbacks(receiver, 3 * WARM)
        await asyncio.sleep(1)  # the last outcomes are stored behind the last responses
        idle = await _traced(service.pid, file, lambda: asyncio.sleep(IDLE_S))

        async def one_message() -> None:
            await send_closed_loop(service.port, iter(requests[WARM:]), connections=1)
            await _wait_for_callbacks(receiver, 3 * WARM + 3)
            await asyncio.sleep(0.3)

        began_s = time.monotonic()
        calls = await _traced(service.pid, file, one_message)
        took_s = time.monotonic() - began_s
    finally:
        for child in reversed(children.values()):
            child.end()
    for function, count in idle.items():
        calls[function] -= round(count * took_s / IDLE_S)
    return +calls, _read_order(file)


def _read_order(file: Path) -> list[Function]:
    lines = (line.split("\t") for line in file.with_suffix(".order").read_text().splitlines())
    return [(module.lstrip("/"), name) for module, name in lines]


def find_hands(order: Sequence[Function], prepare: str, send: str) -> list[Function]:
    """Return the functions, without comprehensions, that a job passes from its claim until its bytes are sent.

    Of several jobs those of the shortest way: it is the one over a connection that is open already.

    Args:
        prepare: the function that the claimed jobs are given to.
        send: the last function before the connection.
    """
    names = [name for _, name in order]
    claims = [index for index, name in enumerate(names) if name == "QueueScheduler.claim_due"]
    ways: list[list[Function]] = []
    for claimed, next_claim in zip(claims, [*claims[1:], len(names)], strict=True):
        if prepare in names[claimed:next_claim] and send in names[claimed:]:
            sent = names.index("PooledConnection.exchange", names.index(send, claimed))
            passed = (one for one in order[claimed:sent] if one[0].startswith(HAND_PACKAGES) and "<" not in one[1])
            ways.append(list(dict.fromkeys(passed)))
    return min(ways, key=len)


async def calls_under_load(stores: Stores, at: Path) -> float:
    """Return how many functions run in the service for one of many messages with four callbacks each, as in T3.

    What a claim, a query or a commit takes is shared by the messages of a batch then.
    """
    file, store = at / "calls.txt", stores.new()
    children = start_children(store, "--trace", str(file))
    try:
        for child in children.values():
            child.wait_ready()
        await run_load(children, store, messages=WARM_LOAD)

        async def load() -> None:
            await run_load(children, store, messages=LOAD)

        calls = await _traced(children["service"].pid, file, load)
    finally:
        for child in reversed(children.values()):
            child.end()
    return calls.total() / LOAD


async def _wait_for_callbacks(receiver: Child, count: int) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while (await asyncio.to_thread(receiver.get, "/summary"))["callbacks"] < count:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"fewer than {count} callbacks")
        await asyncio.sleep(0.02)


async def _traced(pid: int, file: Path, work: Callable[[], Awaitable[None]]) -> Counter[tuple[str, str]]:
    await asyncio.to_thread(file.unlink, missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    await asyncio.sleep(0.05)
    await work()
    os.kill(pid, signal.SIGUSR1)
    return await asyncio.to_thread(_read_calls, file)


def _read_calls(file: Path) -> Counter[tuple[str, str]]:
    deadline_s = time.monotonic() + WITHIN_S
    while not file.exists():
        if time.monotonic() > deadline_s:
            raise TimeoutError("the service wrote no trace")
        time.sleep(0.02)
    calls: Counter[tuple[str, str]] = Counter()
    for line in file.read_text().splitlines():
        count, module, name = line.split("\t")
        calls[module, name] += int(count)  # two functions of a module may have one name
    return calls


def unit_test_cpu_s() -> float:
    """Return the processor time of one unit test with the start of pytest, the best of three."""
    took_s: list[float] = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "0", UNIT_TEST],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(took_s), 2)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="Write everything to this file.")
    parser.add_argument("--calls", action="store_true", help="Print each function that the message passed.")
    parser.add_argument("--source-only", action="store_true", help="Start nothing.")
    options = parser.parse_args(arguments)
    result: dict[str, Any] = {}
    with temporary_folder() as at:
        packages = measure_source(SOURCE, at)
        whole = packages.pop("")
        result |= {"source": asdict(whole), "packages": {name: asdict(package) for name, package in packages.items()}}
        rows = [
            ("formatted lines of src", whole.lines, 90_000),
            ("modules", f"{whole.modules} ({whole.packages} __init__.py)", 700),
            ("lines wider than 120", whole.wide, 0),
            ("functions", whole.functions, ""),
            ("  with at most three lines", f"{100 * whole.small / whole.functions:.0f}%", ""),
        ]
        rows.append(("words of pages by hand", count_words(hand_written()).total(), 80_000))
        if not options.source_only:
            with open_stores("sqlite", at) as stores:
                calls, order = asyncio.run(trace_message(stores, at))
                under_load = round(asyncio.run(calls_under_load(stores, at)))
            dispatch_hands = find_hands(order, "OutboundDispatcher.prepare", "CloudHttpClient.send")
            callback_hands = find_hands(order, "CallbackSender.prepare", "VettedClient.post")
            modules = len({module for module, _ in calls})
            traced = Traced(modules, len(calls), calls.total(), len(dispatch_hands), len(callback_hands))
            unit_test_s = unit_test_cpu_s()
            result |= {"message": asdict(traced), "calls_under_load": under_load, "unit_test_cpu_s": unit_test_s}
            rows += [
                ("a message: modules", traced.modules, 60),
                ("a message: functions", traced.functions, 300),
                ("a message: calls", traced.calls, 1_200),
                ("  from its claim to the wire: functions", traced.dispatch_hands, 12),
                ("  of a callback: functions", traced.callback_hands, 12),
                ("one of many with four callbacks: calls", under_load, ""),
                ("processor time of a unit test, s", unit_test_s, 1.5),
            ]
            if options.calls:
                for hands in (dispatch_hands, callback_hands):
                    print("\n".join(f"{module} {name}" for module, name in hands), end="\n\n")
                print(
                    "\n".join(f"{count:5} {module} {name}" for (module, name), count in calls.most_common()), end="\n\n"
                )
    print(f"{'':40}{'now':>22}{'wanted':>10}")
    for name, now, wanted in rows:
        print(f"{name:40}{now:>22}{wanted:>10}")
    print(f"\n{'package':16}{'lines':>9}{'modules':>9}{'wide':>7}{'functions':>11}{'small':>7}")
    for name, package in sorted(packages.items(), key=lambda item: -item[1].lines):
        print(
            f"{name:16}{package.lines:>9}{package.modules:>9}{package.wide:>7}{package.functions:>11}{package.small:>7}"
        )
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
