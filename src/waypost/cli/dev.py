"""What `waypost dev` prints."""

from collections.abc import Callable
from pathlib import Path

from waypost.assembly.dev import Dev, DevOptions, Running
from waypost.assembly.servers import hear_signals, settle_memory
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.config import Settings

Say = Callable[[str], None]


async def run_dev(
    settings: Settings, *, simulator_port: int, memory: bool, env_file: Path, say: Say
) -> None:
    """Start, say where everything is, and stop at a signal.

    Raises:
        PortInUse: somebody else listens there.
        StoreInUse: another process has the store open.
        WrongStore: the store is not the demonstration's.
    """
    told = hear_signals()
    clock = SystemClock()
    options = DevOptions(settings, simulator_port, memory=memory, env_file=env_file)
    dev = Dev(options, clock, RandomIds(clock))
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
        "",
        "The README's journey takes a minute: log in, create, send, tap, see the callback.",
        "",
    ]
    if host not in ("127.0.0.1", "localhost", "::1"):
        lines.insert(
            1,
            f"WARNING: listening on {host}, and the demonstration's secrets are known to everybody.",
        )
    return lines
