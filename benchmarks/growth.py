"""T5: the cost of a large store: acknowledgements and lists, with few messages stored and with many."""

import argparse
import asyncio
import shutil
import statistics
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

from sqlalchemy import select

from benchmarks import query_plans
from benchmarks.accept import LOAD_CORE, SERVER_CORE, PinnedToCore, Server, run_round
from benchmarks.bulk_fill import fill_store, numbers_per_app
from benchmarks.measurements import Measurement
from benchmarks.processes import Child
from benchmarks.seeding import connect_store, seed_store
from benchmarks.stores import Store, Stores
from waypost.store.messages.lists import messages_of_app
from waypost.store.tables import apps

FEW = 5_000
TARGET = 0.9  # Source: decision 0087, T5
BYTES_PER_MESSAGE = 2_000
"""Observed size on disk with dependent rows, doubled for indexes that are being built."""
QUERIES = 300
_APPS = select(apps.c.id, apps.c.phone_number, apps.c.partner_id).order_by(apps.c.phone_number)


async def measure(stores: Stores, options: argparse.Namespace) -> tuple[list[Measurement], dict[str, Any]]:
    """Measure T5 on one engine, and optionally the plans of the hot statements."""
    many = options.stored
    free = shutil.disk_usage(options.at).free
    if free < 2 * many * BYTES_PER_MESSAGE:
        raise RuntimeError(
            f"{many} messages need {2 * many * BYTES_PER_MESSAGE / 1e9:.0f} GB free below {options.at}, "
            f"and there are {free / 1e9:.0f}"
        )
    filled: dict[int, Store] = {}
    raw: dict[str, Any] = {}
    for count in (FEW, many):
        filled[count] = stores.new()
        await asyncio.to_thread(seed_store, filled[count])
        raw[f"filling {count} took s"] = await asyncio.to_thread(_fill, filled[count], count)
    few, many_rounds = await _acknowledged(filled[FEW], filled[many], options)
    ratios = [b["per_s"] / a["per_s"] for a, b in zip(few, many_rounds, strict=True)]
    measurements = [
        Measurement(
            "T5", stores.engine, f"acknowledged at 64 at once, {many:,} stored / {FEW:,}",
            statistics.median(ratios), "x", TARGET, is_ratio=True,
            note=f"{statistics.median(values['per_s'] for values in many_rounds):,.0f}/s of "
            f"{statistics.median(values['per_s'] for values in few):,.0f}/s",
        )
    ]  # fmt: skip
    raw |= {"few": few, "many": many_rounds}
    for name, by_number in (("newest 50 of an app", False), ("the same of one number", True)):
        took = {count: await asyncio.to_thread(_query_us, store, count, by_number) for count, store in filled.items()}
        raw[name] = took
        measurements.append(Measurement(
            "T5", stores.engine, f"{name}, {many:,} stored / {FEW:,}, a second", took[FEW] / took[many], "x", TARGET,
            is_ratio=True, note=f"{took[many]:.0f} us of {took[FEW]:.0f} us",
        ))  # fmt: skip
    if options.plans:
        measurements += await query_plans.measure(stores, filled[many])
    return measurements, raw


def _fill(store: Store, count: int) -> float:
    with connect_store(store) as connection:
        app_rows = connection.execute(_APPS).all()
        connection.rollback()
        return fill_store(
            connection,
            [(row.id, row.phone_number) for row in app_rows],
            partner_id=app_rows[0].partner_id,
            count=count,
            now_ms=int(time.time() * 1000),
        )


async def _acknowledged(
    few: Store, many: Store, options: argparse.Namespace
) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    with PinnedToCore(LOAD_CORE), ExitStack() as stack:
        servers: list[Server] = []
        for store in (few, many):
            service_options = (*store.options, "--seeded", "--core", str(SERVER_CORE))
            child = Child("benchmarks.service", *service_options)
            stack.callback(child.end)
            servers.append(Server(child, store))
        for server in servers:
            await asyncio.to_thread(server.child.wait_responding)
            await run_round([server], "session text", 64, 0.5)
        all_rounds: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for nth in range(2 * options.rounds):
            pairs = list(zip(all_rounds, servers, strict=True))
            for rounds, server in pairs if nth % 2 else reversed(pairs):
                rounds.append(await run_round([server], "session text", 64, options.seconds))
        return all_rounds


def _query_us(store: Store, count: int, by_number: bool) -> float:
    """Return the median of the microseconds of a list, over many apps and numbers."""
    with connect_store(store) as connection:
        app_rows = connection.execute(_APPS).all()
        took: list[float] = []
        for nth in range(QUERIES):
            app = app_rows[nth % len(app_rows)]
            number = str(_number(nth, len(app_rows), count)) if by_number else None
            query = partial(messages_of_app, connection, app.partner_id, app.id, destination=number)
            began_s = time.perf_counter()
            query()
            took.append(time.perf_counter() - began_s)
        return 1e6 * statistics.median(took)


def _number(nth: int, app_count: int, count: int) -> int:
    """Return a number to which the app of the nth query has sent, as `bulk_fill` numbers them."""
    index = nth // app_count * 7919 % numbers_per_app(app_count, count)
    return 15_560_000_000 + index * app_count + nth % app_count
