"""The commands and their help."""

from pathlib import Path
from typing import Annotated

import typer

from waypost import __version__
from waypost.base.clock import SystemClock
from waypost.base.files import set_umask
from waypost.cli.commands.accounts import account
from waypost.cli.commands.apps import app as apps
from waypost.cli.commands.audit import audit
from waypost.cli.commands.callbacks import callbacks
from waypost.cli.commands.clock import clock
from waypost.cli.commands.doctor import doctor
from waypost.cli.commands.jobs import dead_letter, message
from waypost.cli.commands.partners import partner
from waypost.cli.commands.snapshots import snapshot
from waypost.cli.commands.store import move, store
from waypost.cli.commands.trace import trace
from waypost.cli.errors import EXIT_USAGE, fail, load_settings, report_api_errors
from waypost.client.dev_variables import read_variables

app = typer.Typer(
    help="A messaging and template service that a business runs itself.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # it would read [default: …] as markup, and print errors in boxes
)

EnvFile = Annotated[Path, typer.Option(help="File with the variables of `waypost dev`.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the store. [default: .waypost]")]
Host = Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")]
Port = Annotated[int | None, typer.Option(help="Port of the service. [default: 8080]")]
MAX_PORT = 65_535
"""The highest port."""


@app.command()
def dev(
    data: Data = None,
    host: Host = None,
    port: Port = None,
    simulator_port: Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Port of the simulator.")] = 8081,
    memory: Annotated[bool, typer.Option("--memory", help="Delete all data at the end.")] = False,
    env_file: Annotated[Path, typer.Option(help="File to write the variables for other programs to.")] = Path(
        "waypost-dev.env"
    ),
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
) -> None:
    """Start service and simulator in one process, with a demonstration partner and phones."""
    from waypost.base.telemetry.logs import set_up_logs
    from waypost.cli.dev import run_dev
    from waypost.cli.server_loop import run_until_stopped
    from waypost.simulator import STARTUP_ERRORS

    settings = load_settings(data=data, host=host, port=port)
    set_up_logs(SystemClock(), as_json=settings.log_format == "json", level="warning")
    run_until_stopped(
        run_dev(
            settings,
            simulator_port=simulator_port,
            memory=memory,
            env_file=env_file,
            until_stdin_ends=until_stdin_ends,
            start_from=start_from,
            scenario=scenario,
            seed=seed,
            print_line=typer.echo,
        ),
        *STARTUP_ERRORS,
    )


@app.command()
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
    worker: Annotated[int | None, typer.Option(hidden=True)] = None,
    socket: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Start the service alone, for real traffic. WAYPOST_ variables set further settings."""
    from waypost.base.telemetry.logs import set_up_logs

    settings = load_settings(data=data, host=host, port=port, workers=workers, stages=stages, hold=hold or None)
    as_json = settings.log_format == "json"
    set_up_logs(SystemClock(), as_json=as_json, level=settings.log_level, worker=worker)
    if worker is None and settings.workers > 1:
        from waypost.cli.supervisor import supervise

        supervise(settings, worker_options={"data": data, "host": host, "stages": stages, "hold": hold or None})
    else:
        from waypost.cli.serve import serve_in_process

        serve_in_process(settings, worker, socket)


@app.command()
def simulator(
    control_token: Annotated[str, typer.Option(envvar="WAYPOST_CONTROL_TOKEN", help="Credential of the control API.")],
    data: Data = None,
    host: Host = None,
    port: Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Port; 0 takes a free one.")] = 8081,
    limits: Annotated[bool, typer.Option(help="Apply the operator's limits.")] = True,
    scenario: Annotated[Path | None, typer.Option(help="A TOML file of faults to arm at the start.")] = None,
) -> None:
    """Start the simulator alone: the operator's Graph API, and simulated phones."""
    from waypost.assembly.http.limits import http_limits
    from waypost.assembly.simulator_alone import simulate
    from waypost.base.telemetry.logs import set_up_logs
    from waypost.cli.server_loop import run_until_stopped
    from waypost.config import check_secret
    from waypost.simulator import STARTUP_ERRORS, SimulatorSettings

    try:
        check_secret(control_token, "WAYPOST_CONTROL_TOKEN")
    except ValueError as error:
        fail(str(error), code=EXIT_USAGE)
    settings = load_settings(data=data, host=host, port=port)
    set_up_logs(SystemClock(), as_json=settings.log_format == "json", level=settings.log_level)
    run_until_stopped(
        simulate(
            SimulatorSettings(
                path=settings.data / "simulator.db",
                control_token=control_token,
                limits=limits,
                least_free_mb=settings.least_free_mb,
            ),
            settings.host,
            port,
            ready=lambda url: typer.echo(f"the simulator listens at {url}"),
            scenario=scenario,
            limits=http_limits(settings),
        ),
        *STARTUP_ERRORS,
    )


@app.command()
def listen(
    env_file: EnvFile = Path("waypost-dev.env"),
    modes: Annotated[
        str, typer.Option(help="Modes of the subscription.")
    ] = "ENQUEUED,SENT,DELIVERED,READ,FAILED,MESSAGE,TEMPLATE",
    port: Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Port to receive on; 0 takes a free one.")] = 0,
    background: Annotated[
        bool, typer.Option("--background", help="Return once it listens; it goes on printing in the background.")
    ] = False,
    ready_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Subscribe to the demonstration's callbacks and print each as one line of JSON."""
    if background:
        from waypost.cli.commands.listen import listen_in_background

        options = ["--env-file", str(env_file), "--modes", modes, "--port", str(port)]
        raise typer.Exit(listen_in_background(options, print_line=typer.echo))
    from waypost.cli.commands.listen import listen as listen_until_signalled
    from waypost.cli.server_loop import run_until_stopped

    with report_api_errors(address=f"PARTNER_URL in {env_file}", credential=f"APP_TOKEN in {env_file}"):
        variables = read_variables(env_file)
        run_until_stopped(
            listen_until_signalled(variables, modes=modes, port=port, print_line=typer.echo, ready_fd=ready_fd)
        )


app.command()(message)
app.command()(trace)
app.command()(doctor)
app.command()(audit)
app.command()(move)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def _print_version(is_given: bool) -> None:
    if is_given:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    is_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A messaging and template service that a business runs itself."""


app.add_typer(partner, name="partner")
app.add_typer(account, name="account")
app.add_typer(apps, name="app")
app.add_typer(callbacks, name="callbacks")
app.add_typer(dead_letter, name="dead-letter")
app.add_typer(clock, name="clock")
app.add_typer(snapshot, name="snapshot")
app.add_typer(store, name="store")


def main() -> None:
    """Run the command line. Only the user who runs a command can read the files it writes."""
    set_umask()
    app()
