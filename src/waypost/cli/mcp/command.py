"""`waypost mcp`: the command, which needs the extra `mcp`."""

import asyncio
from typing import Final

from waypost.base.extras import install_command
from waypost.cli.connections import ENV_FILE, EnvFile
from waypost.cli.errors import fail, load_settings

_EXTRA: Final = ("mcp", "mcp_types")
"""Modules of the extra."""


def mcp(env_file: EnvFile = ENV_FILE) -> None:
    """Serve tools for agents over standard input and output: send, tap, wait, advance the clock, arm faults, explain."""
    try:
        from waypost.cli.mcp.server import serve_tools
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        fail(f"`waypost mcp` needs a package that is not installed; install it with: {install_command('mcp')}")
    from waypost.cli.mcp.connection import ServiceConnection

    asyncio.run(serve_tools(ServiceConnection(load_settings(), env_file)))
