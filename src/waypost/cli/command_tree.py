"""The commands and their help."""

import asyncio
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from waypost import __version__
from waypost.base.clock import SystemClock
from waypost.cli.command_group import (
    COMPLETES,
    EXCHANGE,
    INSPECT,
    OTHER,
    RUN,
    SET_UP,
    SIMULATE,
    STORE,
    SubjectGroup,
    add_examples,
    create_app,
)
from waypost.cli.commands.accounts import account
from waypost.cli.commands.apply import apply
from waypost.cli.commands.callbacks import callbacks, replay
from waypost.cli.commands.clock import clock, snapshot
from waypost.cli.commands.flows import flow
from waypost.cli.commands.inspection import doctor, tail, trace
from waypost.cli.commands.intercept import intercept
from waypost.cli.commands.listen import listen
from waypost.cli.commands.messages import send, tap
from waypost.cli.commands.partners import apps, partner
from waypost.cli.commands.recipients import recipient
from waypost.cli.commands.records import audit, dead_letter, requests
from waypost.cli.commands.store import move, secret, store
from waypost.cli.commands.templates import template
from waypost.cli.commands.trigger import trigger
from waypost.cli.connections import ENV_FILE, EnvFile
from waypost.cli.errors import EXIT_USAGE, fail, load_settings, log_process
from waypost.cli.health import health
from waypost.cli.shown_settings import ConfigFile, config

app = create_app()

Data = Annotated[Path | None, typer.Option(help="Folder of the store. [default: .waypost]")]
Host = Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")]
Port = Annotated[int | None, typer.Option(help="Port of the service. [default: 8080]")]
MAX_PORT = 65_535
"""The highest port."""
_MCP_MODULES = ("mcp", "mcp_types")
"""Modules of the extra `mcp`."""


@app.command(rich_help_panel=RUN)
def dev(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    simulator_port: Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Port of the simulator.")] = 8081,
    memory: Annotated[bool, typer.Option("--memory", help="Delete all data at the end.")] = False,
    env_file: Annotated[
        Path, typer.Option(help="File to write the variables for other programs to; - prints them.")
    ] = Path("waypost-dev.env"),
    until_stdin_ends: Annotated[
        bool,
        typer.Option(
            "--until-stdin-ends",
            help="Also stop when standard input ends, so that it does not outlive the program that started it.",
        ),
    ] = False,
    start_from: Annotated[
        Path | None, typer.Option("--from", help="A snapshot to start from; it replaces the data of the folder.")
    ] = None,
    scenario: Annotated[Path | None, typer.Option(help="A TOML file of faults to arm at the start.")] = None,
    seed: Annotated[
        str | None, typer.Option(help="Any text; runs with the same seed and the same times make the same ids.")
    ] = None,
    no_rates: Annotated[
        bool, typer.Option("--no-rates", help="Limit no requests; failed logins stay limited.")
    ] = False,
    config_file: ConfigFile = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the service, such as rates=false; repeatable."),
    ] = None,
) -> None:
    """Start service and simulator in one process, with a demonstration partner and phones."""
    from waypost.assembly.dev.dev import DevOptions
    from waypost.assembly.dev.files import EnvFileInUse
    from waypost.base.telemetry.logs import set_up_logs
    from waypost.cli.dev import run_dev
    from waypost.cli.serving import run_until_stopped
    from waypost.simulator import STARTUP_ERRORS

    rates = False if no_rates else None
    given = load_settings(config_file, assignments or (), data=data, host=host, port=port, rates=rates)
    settings = given.settings
    set_up_logs(SystemClock(), as_json=settings.log_format == "json", level="warning")
    options = DevOptions(settings, simulator_port, memory=memory, start_from=start_from, scenario=scenario, seed=seed)
    running = run_dev(options, env_file, typer.echo, until_stdin_ends=until_stdin_ends)
    run_until_stopped(running, *STARTUP_ERRORS, EnvFileInUse)


@app.command(rich_help_panel=RUN)
def serve(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes; more than one needs PostgreSQL. [default: 1]")
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(help="Stages to run, separated by commas: api, dispatch, events, callbacks. [default: all]"),
    ] = None,
    hold: Annotated[
        bool, typer.Option("--hold", help="Send, call and accept nothing, to inspect a restored store.")
    ] = False,
    config_file: ConfigFile = None,
    worker: Annotated[int | None, typer.Option(hidden=True)] = None,
    socket: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Start the service alone, for real traffic. `waypost config` lists further settings."""
    settings = load_settings(
        config_file, data=data, host=host, port=port, workers=workers, stages=stages, hold=hold or None
    ).settings
    print_line = log_process(settings, worker=worker)
    if worker is None and settings.workers > 1:
        from waypost.cli.supervisor import supervise

        options = {"config": config_file, "data": data, "host": host, "stages": stages, "hold": hold or None}
        supervise(settings, worker_options=options, print_line=print_line)
    else:
        from waypost.cli.serving import serve_in_process

        serve_in_process(settings, worker, socket, print_line=print_line)


@app.command(rich_help_panel=RUN)
def simulator(
    control_token: Annotated[str, typer.Option(envvar="WAYPOST_CONTROL_TOKEN", help="Credential of the control API.")],
    data: Data = None,
    host: Host = None,
    port: Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Port; 0 takes a free one.")] = 8081,
    limits: Annotated[bool, typer.Option(help="Apply the operator's limits.")] = True,
    scenario: Annotated[Path | None, typer.Option(help="A TOML file of faults to arm at the start.")] = None,
    config_file: ConfigFile = None,
) -> None:
    """Start the simulator alone: the operator's Graph API, and simulated phones."""
    from waypost.assembly.http.limits import http_limits
    from waypost.assembly.simulator_alone import simulate
    from waypost.cli.serving import run_until_stopped
    from waypost.config import check_secret
    from waypost.simulator import STARTUP_ERRORS, SimulatorSettings

    try:
        check_secret(control_token, "WAYPOST_CONTROL_TOKEN")
    except ValueError as error:
        fail(str(error), code=EXIT_USAGE)
    settings = load_settings(config_file, data=data, host=host, port=port).settings
    print_line = log_process(settings)
    run_until_stopped(
        simulate(
            SimulatorSettings(
                path=settings.data / "simulator.db",
                control_token=control_token,
                limits=limits,
                least_free_mb=settings.least_free_mb,
                media_networks=settings.allowed_networks,
            ),
            settings.host,
            port,
            ready=lambda url: print_line(f"the simulator listens at {url}"),
            scenario=scenario,
            limits=http_limits(settings),
        ),
        *STARTUP_ERRORS,
    )


app.command(rich_help_panel=RUN)(intercept)
for _exchange in (send, tap, listen, tail, trigger, replay):
    app.command(rich_help_panel=EXCHANGE)(_exchange)
app.command(rich_help_panel=SET_UP)(apply)
for _inspection in (trace, doctor, config, health):
    app.command(rich_help_panel=INSPECT)(_inspection)
app.command("audit", rich_help_panel=INSPECT)(audit)
app.command(rich_help_panel=STORE)(move)


@app.command(
    rich_help_panel=EXCHANGE,
    help="Serve tools for agents over standard input and output: send, tap, wait, advance the clock, arm faults, "
    "explain.",
)
def mcp(env_file: EnvFile = ENV_FILE) -> None:
    """Serve the tools until standard input ends."""
    from waypost.base.extras import install_command

    try:
        from waypost.cli.mcp.server import serve_tools
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _MCP_MODULES:
            raise
        fail(f"`waypost mcp` needs a package that is not installed; install it with: {install_command('mcp')}")
    from waypost.cli.mcp.connection import ServiceConnection

    asyncio.run(serve_tools(ServiceConnection(load_settings().settings, env_file)))


class Shell(StrEnum):
    """A shell."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(rich_help_panel=OTHER)
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the script that completes commands and options in a shell: eval "$(waypost completion bash)"."""
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage]

    typer.echo(get_completion_script(prog_name="waypost", complete_var=COMPLETES, shell=shell.value))


@app.command(rich_help_panel=OTHER)
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


for _group, _name, _subject in (
    (partner, "partner", SET_UP),
    (account, "account", SET_UP),
    (apps, "app", SET_UP),
    (template, "template", EXCHANGE),
    (flow, "flow", SET_UP),
    (recipient, "recipient", STORE),
    (callbacks, "callbacks", INSPECT),
    (dead_letter, "dead-letter", INSPECT),
    (requests, "requests", INSPECT),
    (clock, "clock", SIMULATE),
    (snapshot, "snapshot", SIMULATE),
    (store, "store", STORE),
    (secret, "secret", STORE),
):
    app.add_typer(_group, name=_name, cls=SubjectGroup, rich_help_panel=_subject)
add_examples(app)


def run() -> None:
    """Run the command line."""
    if COMPLETES in os.environ:  # a shell requests completions
        from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage]

        completion_init()
    app()
