"""T5: what a store of years costs. Acknowledgements and lists, with few messages stored and with many."""

import argparse
import asyncio
import shutil
import statistics
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

from sqlalchemy import select

from benchmarks import plans
from benchmarks.accept import LOAD_CORE, SERVER_CORE, Server, once, only_on
from benchmarks.figures import Figure
from benchmarks.filling import fill, numbers_of_each
from benchmarks.processes import Child
from benchmarks.seeding import connected, seed
from benchmarks.stores import Store, Stores
from waypost.store.messages.lists import messages_of_app
from waypost.store.tables import apps

FEW = 5_000
LEAST = 0.9  # Source: decision 0087, T5
BYTES_A_MESSAGE = 2_000
"""On disk with all that hangs on it, as far as it was seen, and as much again for what is built meanwhile."""
LOOKS = 300
_APPS = select(apps.c.id, apps.c.phone_number, apps.c.partner_id).order_by(apps.c.phone_number)


async def measure(stores: Stores, options: argparse.Namespace) -> tuple[list[Figure], dict[str, Any]]:
    """T5 on one engine; and the plans of the hot statements, where they are asked for."""
    many = options.stored
    free = shutil.disk_usage(options.at).free
    if free < 2 * many * BYTES_A_MESSAGE:
        raise RuntimeError(
            f"{many} messages need {2 * many * BYTES_A_MESSAGE / 1e9:.0f} GB free below {options.at}, "
            f"and there are {free / 1e9:.0f}"
        )
    stocked: dict[int, Store] = {}
    raw: dict[str, Any] = {}
    for count in (FEW, many):
        stocked[count] = stores.new()
        await asyncio.to_thread(seed, stocked[count])
        raw[f"filling {count} took s"] = await asyncio.to_thread(_fill, stocked[count], count)
    few, lots = await _acknowledged(stocked[FEW], stocked[many], options)
    ratios = [b["per_s"] / a["per_s"] for a, b in zip(few, lots, strict=True)]
    figures = [
        Figure(
            "T5", stores.engine, f"acknowledged at 64 at once, {many:,} stored / {FEW:,}",
            statistics.median(ratios), "x", LEAST, is_ratio=True,
            note=f"{statistics.median(one['per_s'] for one in lots):,.0f}/s of "
            f"{statistics.median(one['per_s'] for one in few):,.0f}/s",
        )
    ]  # fmt: skip
    raw |= {"few": few, "many": lots}
    for name, by_number in (("newest 50 of an app", False), ("the same of one number", True)):
        took = {count: await asyncio.to_thread(_looked_up, store, count, by_number) for count, store in stocked.items()}
        raw[name] = took
        figures.append(Figure(
            "T5", stores.engine, f"{name}, {many:,} stored / {FEW:,}, a second", took[FEW] / took[many], "x", LEAST,
            is_ratio=True, note=f"{took[many]:.0f} us of {took[FEW]:.0f} us",
        ))  # fmt: skip
    if options.plans:
        figures += await plans.measure(stores, stocked[many])
    return figures, raw


def _fill(store: Store, count: int) -> float:
    with connected(store) as connection:
        of_partner = connection.execute(_APPS).all()
        connection.rollback()
        return fill(
            connection,
            [(row.id, row.phone_number) for row in of_partner],
            partner_id=of_partner[0].partner_id,
            count=count,
            now_ms=int(time.time() * 1000),
        )


async def _acknowledged(
    few: Store, many: Store, options: argparse.Namespace
) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    with only_on(LOAD_CORE), ExitStack() as ends:
        servers: list[Server] = []
        for store in (few, many):
            options_of = (*store.options, "--seeded", "--core", str(SERVER_CORE))
            child = Child("benchmarks.service", *options_of)
            ends.callback(child.end)
            servers.append(Server(child, store))
        for server in servers:
            await asyncio.to_thread(server.child.wait_answering)
            await once([server], "session text", 64, 0.5)
        found: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for nth in range(2 * options.rounds):
            pairs = list(zip(found, servers, strict=True))
            for rounds, server in pairs if nth % 2 else reversed(pairs):
                rounds.append(await once([server], "session text", 64, options.seconds))
        return found


def _looked_up(store: Store, count: int, by_number: bool) -> float:
    """Microseconds of one list, the median of many apps and numbers."""
    with connected(store) as connection:
        found = connection.execute(_APPS).all()
        took: list[float] = []
        for nth in range(LOOKS):
            app = found[nth % len(found)]
            number = str(_number(nth, len(found), count)) if by_number else None
            look = partial(messages_of_app, connection, app.partner_id, app.id, destination=number)
            began_s = time.perf_counter()
            look()
            took.append(time.perf_counter() - began_s)
        return 1e6 * statistics.median(took)


def _number(nth: int, of_apps: int, count: int) -> int:
    """One that the nth look's app has sent to, as `filling` numbers them."""
    which = nth // of_apps * 7919 % numbers_of_each(of_apps, count)
    return 15_560_000_000 + which * of_apps + nth % of_apps
