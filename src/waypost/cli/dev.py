"""`waypost dev`: run until a signal, and print the addresses."""

import shutil
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from waypost.assembly.dev.dev import DevOptions, DevServer, DevStatus
from waypost.assembly.dev.files import format_env
from waypost.assembly.http.servers import handle_stop_signals, tune_garbage_collector, watch_end_of_input
from waypost.cli.commands.clock import describe_clock

PrintLine = Callable[[str], None]
STANDARD_OUTPUT: Final = Path("-")
"""As the environment file: the variables and an empty line are all that is printed."""


async def run_dev(options: DevOptions, env_file: Path, print_line: PrintLine, *, until_stdin_ends: bool) -> None:
    """Start, print the addresses, and stop at a signal; with `until_stdin_ends`, also when standard input ends."""
    stop_event = handle_stop_signals()
    if until_stdin_ends:
        watch_end_of_input(stop_event)
    is_printed = env_file == STANDARD_OUTPUT
    dev = DevServer(replace(options, env_file=None if is_printed else env_file))
    try:
        running = await dev.open()
        tune_garbage_collector()
        if stop_event.is_set():  # a program that has started this and reads the variables would use them
            return
        if is_printed:
            print_line(format_env(running.variables))
        else:
            for line in greeting_lines(running, env_file, options):
                print_line(line)
        await stop_event.wait()
        if not is_printed:
            print_line("stopping …")
    finally:
        await dev.close()


def greeting_lines(running: DevStatus, env_file: Path, options: DevOptions) -> list[str]:
    """Return the lines that are printed once everything runs."""
    variables = running.variables
    data = "a temporary folder, deleted at the end" if options.memory else f"{running.data}/"
    lines = [
        "",
        "Waypost is running. Ctrl+C stops it.",
        "",
        f"  open in a browser           {running.base_url}   (phones, templates, messages, callbacks)",
        "",
        f"  partner and messaging API   {running.base_url}",
        f"  API reference               {running.base_url}/docs",
        f"  simulator (Graph API)       {running.graph_url}",
        f"  phones and reviews (JSON)   {variables['CONTROL_URL']}/phones",
        f"  administration              {variables['ADMIN_URL']}",
        "",
        f"  log in as                   {variables['EMAIL']}  {variables['PASSWORD']}",
        f"  app                         {variables['SRC_NAME']}  {variables['APP_ID']}",
        f"  from                        {variables['SOURCE']}",
        f"  to a simulated phone        {variables['DESTINATION']}",
        "",
        f"  environment file            {env_file}",
        *path_lines(),
        f"  data                        {data}",
        f"  store                       {running.store_path.absolute()}",
        *clock_lines(running),
        "",
        "The quick start in the README takes a minute: log in, create, send, tap, see the callback. The console in",
        "the browser shows each step as it happens; one click logs you in there.",
        "",
    ]
    host = options.settings.host
    if host not in ("127.0.0.1", "localhost", "::1"):
        lines.insert(1, f"WARNING: listening on {host}, and the demonstration's secrets are public.")
    return lines


def path_lines() -> list[str]:
    """Return the line by which another terminal finds the command; none if it is on the path."""
    folder = Path(sysconfig.get_path("scripts"))
    if shutil.which("waypost") is not None or not (folder / "waypost").exists():
        return []
    return [f'  in each other terminal      export PATH="{folder}:$PATH"   (finds the command `waypost`)']


def clock_lines(running: DevStatus) -> list[str]:
    """Return the line about the clock; none if it is the machine's."""
    if abs(running.ahead_ms) < 1000 and running.factor == 1:
        return []
    clock = describe_clock(running.ahead_ms, running.factor)
    return [f"  clock                       {clock}: see `waypost clock`"]
