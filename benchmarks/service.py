"""The service as a process of a measurement: seeded, and with its other stages only if requested."""

import argparse
import asyncio
import dataclasses
import os
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
from waypost.domain.callbacks import Subscription
from waypost.domain.templates.template import Template
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import add_partner
from waypost.store.callbacks.subscriptions import add_subscription
from waypost.store.properties import seed_template

NETWORK = ("127.0.0.0/8",)
REQUEST_LOG_ROWS = Settings.model_fields["request_log_rows"].default


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
    if options.stages:
        waypost.start()
    elif waypost.recorder is not None:  # what the API stage alone does besides
        recording = asyncio.create_task(waypost.recorder.run())
    tune_garbage_collector()
    await handle_stop_signals().wait()
    await server.stop()
    if options.stages:
        await waypost.drain()
    elif waypost.recorder is not None:
        waypost.recorder.stop()
        await recording
    await waypost.close()
    if statements is not None:
        statements.write(options.collect)


async def seed(waypost: Waypost, options: argparse.Namespace) -> None:
    """Create a partner with an app for each source, one template, and subscriptions if there is a receiver."""
    context, now_ms = waypost.admin_context, SystemClock().now_ms()
    await provisioning.put_operator_account(context, demo.operator_account(options.operator))
    await waypost.database.write(add_partner, demo.PARTNER, "no password", now_ms)
    await waypost.database.write(add_credential, CredentialKind.API_KEY, demo.PARTNER.id, hash_secret(API_KEY), now_ms)
    await provisioning.add_business_account(context, demo.ACCOUNT)
    for nth, (source, name) in enumerate(SOURCES.items()):
        new_app = NewApp(demo.PARTNER.id, name, source, phone_number_id(nth), demo.WABA_ID, options.per_second)
        app_id = (await add_app(context, new_app)).id
        if nth == 0:
            await waypost.database.write(seed_template, _template(app_id, now_ms))
        if options.receiver:
            subscription = Subscription(
                id="",
                partner_id=demo.PARTNER.id,
                app_id=app_id,
                tag="bench",
                url=options.receiver,
                version=2,
                modes=tuple(options.modes.split(",")),
                created_on_ms=now_ms,
                modified_on_ms=now_ms,
            )
            seal = waypost.directory.seal
            await waypost.database.write(add_subscription, subscription, seal, 5)


def phone_number_id(nth: int) -> str:
    """Return the operator's id of the nth source."""
    return str(int(demo.PHONE_NUMBER_ID) + 100 + nth)


def _template(app_id: str, now_ms: int) -> Template:
    return dataclasses.replace(demo.template(now_ms), id=TEMPLATE_ID, app_id=app_id)


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
