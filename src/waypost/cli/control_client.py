"""Calls of the commands to the control API of the simulator that `waypost dev` runs."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from waypost.cli.errors import report_api_errors
from waypost.client.api_client import ApiClient, HttpTransport
from waypost.client.dev_variables import MissingVariable, read_variables
from waypost.client.responses import read_json_response

CONTROL_CALL_TIMEOUT_S = 900
"""For one call: an advance of many days has many stops."""

EnvFile = Annotated[Path, typer.Option(help="File with the variables of `waypost dev`.")]
ENV_FILE = Path("waypost-dev.env")


def call_control_api(env_file: Path, method: str, path: str, body: Any = None) -> Any:
    """Make one call; an error is printed as one line, with exit code 1.

    `WAYPOST_CONTROL_URL` and `WAYPOST_CONTROL_TOKEN` name a simulator that runs elsewhere.
    """
    return _run_call(env_file, lambda client, _: client.json(method, path, body))


def download(env_file: Path, path: str) -> bytes:
    """Return the bytes of one response; an error is printed as one line, with exit code 1."""

    async def fetch(_client: ApiClient, transport: HttpTransport) -> bytes:
        response = await transport("GET", path, control_headers(), None)
        if response.status != 200:
            read_json_response(response, f"GET {path}")
        return response.body

    return _run_call(env_file, fetch)


def _run_call(env_file: Path, use: Callable[[ApiClient, HttpTransport], Awaitable[Any]]) -> Any:
    async def call() -> Any:
        transport = HttpTransport(control_address(env_file), timeout_s=CONTROL_CALL_TIMEOUT_S)
        return await use(ApiClient(transport, control_headers()), transport)

    address = f"WAYPOST_CONTROL_URL, or CONTROL_URL in {env_file},"
    is_set = "WAYPOST_CONTROL_TOKEN" in os.environ
    credential = "WAYPOST_CONTROL_TOKEN" if is_set else "WAYPOST_CONTROL_TOKEN, which is not set,"
    with report_api_errors(address=address, credential=credential):
        return asyncio.run(call())


def control_client(env_file: Path) -> ApiClient:
    """Return a client of the control API.

    Raises:
        MissingVariable: there is no simulator.
    """
    return ApiClient(HttpTransport(control_address(env_file), timeout_s=CONTROL_CALL_TIMEOUT_S), control_headers())


def control_address(env_file: Path) -> str:
    """Return the base URL of the simulator.

    Raises:
        MissingVariable: neither the environment nor the file has one.
    """
    url = os.environ.get("WAYPOST_CONTROL_URL") or read_variables(env_file).get("CONTROL_URL")
    if not url:
        raise MissingVariable(f"{env_file} has no CONTROL_URL: start `waypost dev`, which writes it")
    return url.removesuffix("/control")


def control_headers() -> dict[str, str]:
    """Return the credential of the control API as headers; none if there is none."""
    token = os.environ.get("WAYPOST_CONTROL_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}
