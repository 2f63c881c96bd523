"""How a command reaches the control door of the simulator that `waypost dev` runs."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from waypost.cli.errors import one_line
from waypost.client.api_client import ApiClient, OverHttp
from waypost.client.dev_variables import MissingVariable, read_variables
from waypost.client.responses import read_answer

WITHIN_S = 900
"""For one call: a journey of many days has many stops."""

EnvFile = Annotated[Path, typer.Option(help="Where the variables of `waypost dev` are.")]
ENV_FILE = Path("waypost-dev.env")


def ask(env_file: Path, method: str, path: str, body: Any = None) -> Any:
    """Make one call; a refusal is one line, and exit code 1.

    `WAYPOST_CONTROL_URL` and `WAYPOST_CONTROL_TOKEN` name a simulator that runs elsewhere.
    """
    return _run(env_file, lambda door, _: door.json(method, path, body))


def download(env_file: Path, path: str) -> bytes:
    """The bytes that one call answers; a refusal is one line, and exit code 1."""

    async def fetch(_door: ApiClient, transport: OverHttp) -> bytes:
        reply = await transport("GET", path, _headers(), None)
        if reply.status != 200:
            read_answer(reply, f"GET {path}")
        return reply.body

    return _run(env_file, fetch)


def _run(env_file: Path, use: Callable[[ApiClient, OverHttp], Awaitable[Any]]) -> Any:
    async def call() -> Any:
        transport = OverHttp(_address(env_file), timeout_s=WITHIN_S)
        return await use(ApiClient(transport, _headers()), transport)

    address = f"WAYPOST_CONTROL_URL, or CONTROL_URL in {env_file},"
    with one_line(address=address, credential="WAYPOST_CONTROL_TOKEN"):
        return asyncio.run(call())


def _address(env_file: Path) -> str:
    url = os.environ.get("WAYPOST_CONTROL_URL") or read_variables(env_file).get("CONTROL_URL")
    if not url:
        raise MissingVariable(f"{env_file} has no CONTROL_URL: start `waypost dev`, which writes it")
    return url.removesuffix("/control")


def _headers() -> dict[str, str]:
    token = os.environ.get("WAYPOST_CONTROL_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}
