"""What `waypost dev` prints."""

from collections.abc import Callable
from pathlib import Path

from waypost.assembly.dev.dev import Dev, DevOptions, Running
from waypost.assembly.http.servers import hear_end_of_input, hear_signals, settle_memory
from waypost.cli.commands.clock import manner
from waypost.config import Settings

Say = Callable[[str], None]


async def run_dev(
    settings: Settings,
    *,
    simulator_port: int,
    memory: bool,
    env_file: Path,
    until_stdin_ends: bool,
    start_from: Path | None,
    scenario: Path | None,
    seed: str | None,
    say: Say,
) -> None:
    """Start, say where everything is, and stop at a signal, or where wanted when standard input ends.

    Raises:
        PortInUse: somebody else listens there.
        StoreInUse: another process has the store open.
        WrongStore: the store is not the demonstration's.
        SnapshotError: the snapshot to start from cannot be used.
        InvalidScenario: the file of faults cannot be used.
    """
    told = hear_signals()
    if until_stdin_ends:
        hear_end_of_input(told)
    options = DevOptions(
        settings, simulator_port, memory=memory, env_file=env_file, start_from=start_from, scenario=scenario, seed=seed
    )
    dev = Dev(options)
    try:
        running = await dev.open()
        settle_memory()
        for line in greeting(running, env_file, memory=memory, host=settings.host):
            say(line)
        await told.wait()
        say("stopping …")
    finally:
        await dev.close()


def greeting(running: Running, env_file: Path, *, memory: bool, host: str) -> list[str]:
    """The lines a newcomer reads first."""
    known = running.variables
    kept = "a temporary folder, gone at the end" if memory else f"{running.data}/"
    lines = [
        "",
        "Waypost is running. Ctrl+C stops it.",
        "",
        f"  open in a browser           {running.base_url}   (phones, templates, messages, callbacks)",
        "",
        f"  partner and messaging API   {running.base_url}",
        f"  its reference, page by page {running.base_url}/docs",
        f"  simulator (Graph API)       {running.graph_url}",
        f"  phones and reviews (JSON)   {known['CONTROL_URL']}/phones",
        f"  administration              {known['ADMIN_URL']}",
        "",
        f"  log in as                   {known['EMAIL']}  {known['PASSWORD']}",
        f"  app                         {known['SRC_NAME']}  {known['APP_ID']}",
        f"  from                        {known['SOURCE']}",
        f"  to a simulated phone        {known['DESTINATION']}",
        "",
        f"  all of this, for programs   {env_file}",
        f"  data                        {kept}",
        *clock_lines(running),
        "",
        "The README's journey takes a minute: log in, create, send, tap, see the callback. The console in the",
        "browser shows it as it happens; there, one click enters.",
        "",
    ]
    if host not in ("127.0.0.1", "localhost", "::1"):
        lines.insert(1, f"WARNING: listening on {host}, and the demonstration's secrets are known to everybody.")
    return lines


def clock_lines(running: Running) -> list[str]:
    """What is worth knowing of the clock: nothing, when it is the machine's."""
    if abs(running.ahead_ms) < 1000 and running.factor == 1:
        return []
    way = manner(running.ahead_ms, running.factor)
    return [f"  clock                       {way}: see `waypost clock`"]
