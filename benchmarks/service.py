"""The service as a process of a measurement: seeded, and with its other stages only if requested."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import uvloop

from benchmarks.bare import API_KEY, SOURCES, TEMPLATE_ID
from benchmarks.call_trace import CallTrace
from benchmarks.statements import Statements
from waypost.admin import provisioning
from waypost.admin.apps import NewApp, add_app
from waypost.assembly.dev import demo
from waypost.assembly.http.limits import http_limits
from waypost.assembly.http.servers import HttpServer, bind_socket, handle_stop_signals, tune_garbage_collector
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.encryption import hash_secret
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.config import Settings
from waypost.domain.app import BusinessAccount
from waypost.domain.callbacks import Subscription
from waypost.domain.partner import Partner
from waypost.domain.templates.template import Template
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import add_partner
from waypost.store.callbacks.subscriptions import add_subscription
from waypost.store.properties import seed_template

NETWORK = ("127.0.0.0/8",)
NEIGHBOUR = replace(demo.PARTNER, id=2, name="Neighbour", email="neighbour@waypost.test")
NEIGHBOUR_ACCOUNT = replace(demo.ACCOUNT, id="1000000000000021", partner_id=NEIGHBOUR.id)
NEIGHBOUR_KEY = "c0de" * 16
NEIGHBOUR_SOURCE = "15559990000"
NEIGHBOUR_APP = "BenchNeighbour"
NEIGHBOUR_NUMBER_ID = "1000000000000022"
NEIGHBOUR_TEMPLATE_ID = "01990000-0000-7000-8000-00000000be0d"
NEIGHBOUR_OPERATOR_TEMPLATE_ID = "1000000000000024"
REQUEST_LOG_ROWS = Settings.request_log_rows


async def serve(options: argparse.Namespace) -> None:
    clock = SystemClock()
    set_up_logs(clock, as_json=False, level="warning")
    statements = Statements(None) if options.collect else None
    settings = Settings(
        data=options.data,
        database_url=options.database_url,
        secret_key="benchmarks only, known to everybody",
        rates=False,
        max_connections_per_address=0,  # all load comes from one address
        per_second=options.per_second,
        uncertain_for_s=options.uncertain_for_s,
        allowed_networks=NETWORK,
        request_log_rows=0 if options.no_request_log else REQUEST_LOG_ROWS,
    )
    bound = bind_socket("127.0.0.1", options.port, option="--port")
    waypost = Waypost(settings, clock, RandomIds(clock))
    await waypost.open()
    if not options.seeded:
        await seed(waypost, options)
    server = HttpServer(waypost.application, bound, limits=http_limits(settings))
    await server.start()
    recording: asyncio.Task[None] | None = None
    if options.stages:
        waypost.start()
    elif waypost.recorder is not None:  # what the API stage alone does besides
        recording = asyncio.create_task(waypost.recorder.run())
    tune_garbage_collector()
    await handle_stop_signals().wait()
    await server.stop()
    if options.stages:
        await waypost.drain()
    elif waypost.recorder is not None and recording is not None:
        waypost.recorder.stop()
        await recording
    await waypost.close()
    if statements is not None:
        statements.write(options.collect)


async def seed(waypost: Waypost, options: argparse.Namespace) -> None:
    """Create a partner with an app for each source, and its neighbour with one app.

    Each has one template, and subscriptions if there is a receiver.
    """
    await provisioning.put_operator_account(waypost.admin_context, demo.operator_account(options.operator))
    template = replace(demo.template(SystemClock().now_ms()), id=TEMPLATE_ID)
    apps = [(name, source, phone_number_id(nth)) for nth, (source, name) in enumerate(SOURCES.items())]
    await _seed_partner(waypost, options, demo.PARTNER, API_KEY, demo.ACCOUNT, template, apps)
    template = replace(
        template,
        id=NEIGHBOUR_TEMPLATE_ID,
        partner_id=NEIGHBOUR.id,
        business_account_id=NEIGHBOUR_ACCOUNT.id,
        operator_template_id=NEIGHBOUR_OPERATOR_TEMPLATE_ID,
    )
    apps = [(NEIGHBOUR_APP, NEIGHBOUR_SOURCE, NEIGHBOUR_NUMBER_ID)]
    await _seed_partner(waypost, options, NEIGHBOUR, NEIGHBOUR_KEY, NEIGHBOUR_ACCOUNT, template, apps)


async def _seed_partner(
    waypost: Waypost,
    options: argparse.Namespace,
    partner: Partner,
    api_key: str,
    account: BusinessAccount,
    template: Template,
    apps: Sequence[tuple[str, str, str]],
) -> None:
    context, database, now_ms = waypost.admin_context, waypost.database, SystemClock().now_ms()
    await database.write(add_partner, partner, "no password", now_ms)
    await database.write(add_credential, CredentialKind.API_KEY, partner.id, hash_secret(api_key), now_ms)
    await provisioning.add_business_account(context, account)
    for nth, (name, source, number_id) in enumerate(apps):
        new_app = NewApp(partner.id, name, source, number_id, account.id, options.per_second)
        app_id = (await add_app(context, new_app)).id
        if nth == 0:
            await database.write(seed_template, replace(template, app_id=app_id))
        if options.receiver:
            modes = tuple(options.modes.split(","))
            subscription = Subscription("", partner.id, app_id, "bench", options.receiver, 2, modes, now_ms, now_ms)
            await database.write(add_subscription, subscription, waypost.directory.seal, 5)


def phone_number_id(nth: int) -> str:
    """Return the operator's id of the nth source."""
    return str(int(demo.PHONE_NUMBER_ID) + 100 + nth)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--core", type=int)
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--operator", default="http://127.0.0.1:9")
    parser.add_argument("--receiver", default="")
    parser.add_argument("--modes", default="ENQUEUED,SENT,DELIVERED,READ,FAILED,MESSAGE", help="Of the subscriptions.")
    parser.add_argument("--per-second", type=int, default=1000)
    parser.add_argument("--uncertain-for-s", type=int, default=900)
    parser.add_argument("--database-url")
    parser.add_argument("--seeded", action="store_true", help="The store has been seeded before.")
    parser.add_argument("--no-request-log", action="store_true")
    parser.add_argument("--collect", type=Path, help="Write every executed statement to this file.")
    parser.add_argument("--trace", type=Path, help="Write the functions that ran between two SIGUSR1 to this file.")
    options = parser.parse_args()
    if options.trace:
        CallTrace(options.trace).install()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(options))
