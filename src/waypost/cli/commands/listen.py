"""`waypost listen`: the command's options."""

import asyncio
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from waypost.cli.connections import ENV_FILE, EnvFile, read_environment
from waypost.cli.errors import EXIT_USAGE, fail, report_api_errors
from waypost.wire.callbacks.kinds import CALLBACK_KINDS

DEFAULT_MODES: Final = "ENQUEUED,SENT,DELIVERED,READ,FAILED,MESSAGE,TEMPLATE"
ALL_MODES: Final = f"{DEFAULT_MODES},DELETED,OTHERS,ACCOUNT,BILLING,FLOWS_MESSAGE,PAYMENTS"
"""Modes with `--events`, which filters what arrives."""
LISTENED_EVENTS: Final = frozenset(name for kind in CALLBACK_KINDS for name in (kind.type, kind.inner_type) if name)
"""What `--events` accepts: the events of version 2, and its types."""
MAX_PORT: Final = 65_535


def listen(
    env_file: EnvFile = ENV_FILE,
    forward_to: Annotated[
        str | None,
        typer.Option(help="Post each callback to this URL too, such as http://localhost:3000/hook; print its status."),
    ] = None,
    events: Annotated[
        str | None, typer.Option(help="Only these events or types, such as delivered,read,message. [default: all]")
    ] = None,
    pretty: Annotated[bool, typer.Option("--pretty", help="Print one line for people instead of JSON.")] = False,
    modes: Annotated[str | None, typer.Option(help=f"Modes of the subscription. [default: {DEFAULT_MODES}]")] = None,
    port: Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Port to receive on; 0 takes a free one.")] = 0,
    background: Annotated[
        bool,
        typer.Option(
            "--background",
            help="Return once it listens; it goes on printing in the background. A second one is not started.",
        ),
    ] = False,
    ready_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Subscribe to the demonstration's callbacks, print each, and forward it to an application."""
    if forward_to is not None and (
        urlsplit(forward_to).scheme not in ("http", "https") or not urlsplit(forward_to).netloc
    ):
        fail(f"--forward-to must be a URL such as http://localhost:3000/hook; {forward_to!r} is not", code=EXIT_USAGE)
    names = frozenset(name.strip() for name in (events or "").split(",") if name.strip())
    if unknown := sorted(names - LISTENED_EVENTS):
        fail(
            f"--events: there is no event {unknown[0]}; accepted: {', '.join(sorted(LISTENED_EVENTS))}", code=EXIT_USAGE
        )
    from waypost.cli.commands.listener import NEEDED, ListenOptions
    from waypost.cli.commands.listener import listen as listen_until_signalled
    from waypost.cli.serving import run_until_stopped

    chosen_modes = modes or (ALL_MODES if names else DEFAULT_MODES)
    chosen = ListenOptions(chosen_modes, names, forward_to, pretty, port)
    if background:
        from waypost.cli.commands.listener import find_listener, listen_in_background

        with report_api_errors(address=f"PARTNER_URL in {env_file}", credential=f"APP_TOKEN in {env_file}"):
            running = asyncio.run(find_listener(read_environment(env_file, *NEEDED), chosen))
        if running is not None:
            url, pid = running
            typer.echo(f"Ready: a listener prints here already, at {url}")
            typer.echo(f"stop the listener with: kill {pid}")
            return
        options = ["--env-file", str(env_file), "--modes", chosen_modes, "--port", str(port)]
        options += ["--events", events] if events else []
        options += ["--forward-to", forward_to] if forward_to else []
        options += ["--pretty"] if pretty else []
        raise typer.Exit(listen_in_background(options, print_line=typer.echo))
    with report_api_errors(address=f"PARTNER_URL in {env_file}", credential=f"APP_TOKEN in {env_file}"):
        variables = read_environment(env_file, *NEEDED)
        run_until_stopped(listen_until_signalled(variables, chosen, print_line=typer.echo, ready_fd=ready_fd))
