"""The upstream as a process: an SMPP message centre and a minimal Cloud API, which share one count."""

import argparse
import asyncio
import signal

import uvloop

from benchmarks.peers.cloud import CloudConnection, WebhookPoster
from benchmarks.peers.deliveries import Deliveries
from benchmarks.peers.smpp import MessageCentre, SmppConnection


async def serve(options: argparse.Namespace) -> None:
    deliveries = Deliveries(
        report_after_s=options.report_after_ms / 1000, respond_after_s=options.respond_after_ms / 1000
    )
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    poster = WebhookPoster(options.webhook_port, "/operator/webhook/demo", gather_s=options.gather_ms / 1000)
    posting = asyncio.create_task(poster.run())
    centre = MessageCentre(deliveries)
    servers = [
        await loop.create_server(lambda: CloudConnection(deliveries, poster), "127.0.0.1", options.port, backlog=512),
        await loop.create_server(lambda: SmppConnection(centre), "127.0.0.1", options.smpp_port),
    ]
    await stop.wait()
    posting.cancel()
    for server in servers:
        server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--smpp-port", type=int, required=True)
    parser.add_argument("--webhook-port", type=int, default=9)
    parser.add_argument("--report-after-ms", type=int, default=50)
    parser.add_argument("--respond-after-ms", type=int, default=0)
    parser.add_argument("--gather-ms", type=int, default=10)
    uvloop.run(serve(parser.parse_args()))
