"""How a command reaches the administration door: that of a running service, or one on its store."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import typer

from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.cli.errors import one_line, settings_of
from waypost.client.api_client import ApiClient, InProcess, NotReached, OverHttp
from waypost.client.dev_variables import MissingVariable, read_variables
from waypost.config import STAGES, Settings
from waypost.store.contract import StoreAway, StoreInUse, WrongStore

WITHIN_S = 90
"""For one call; the doctor's and a switch ask the operator a good deal."""

ENV_FILE = Path("waypost-dev.env")


def show(method: str, path: str, body: Any = None) -> None:
    """Make one call and print its answer as JSON; a refusal is one line, and exit code 1."""

    async def call(door: ApiClient, _running: bool) -> Any:
        return await door.json(method, path, body)

    typer.echo(json.dumps(asyncio.run(with_door(call)), indent=2, ensure_ascii=False))


async def with_door(use: Callable[[ApiClient, bool], Awaitable[Any]]) -> Any:
    """Use the door of the running service; where none runs, the door on its store in this process."""
    settings = settings_of()
    token, url = settings.admin_token, os.environ.get("WAYPOST_ADMIN_URL")
    if token is None and settings.secret_key is None:
        token, url = _demonstration()
    address = f"WAYPOST_ADMIN_URL, or ADMIN_URL in {ENV_FILE},"
    with one_line(StoreAway, StoreInUse, WrongStore, address=address, credential="WAYPOST_ADMIN_TOKEN"):
        if token is not None:
            address = url or _own_address(settings)
            door = ApiClient(
                OverHttp(address.removesuffix("/admin"), timeout_s=WITHIN_S), {"Authorization": f"Bearer {token}"}
            )
            try:
                return await use(door, True)
            except NotReached:
                if url is not None:
                    raise
        return await _on_store(settings, use)


def _own_address(settings: Settings) -> str:
    """Where the admin API of the service with these settings listens."""
    if settings.admin_port is None:
        return f"http://{settings.host}:{settings.port}"
    first = settings.admin_port + (1 if settings.workers > 1 else 0)
    return f"http://{settings.admin_host or '127.0.0.1'}:{first}"


def _demonstration() -> tuple[str | None, str | None]:
    """Token and address of the `waypost dev` that runs in this folder; nothing where none has."""
    try:
        known = read_variables(ENV_FILE)
    except MissingVariable:
        return None, None
    return known.get("ADMIN_TOKEN"), known.get("ADMIN_URL")


async def _on_store(settings: Settings, use: Callable[[ApiClient, bool], Awaitable[Any]]) -> Any:
    if settings.secret_key is None:
        raise MissingVariable(
            "set WAYPOST_ADMIN_TOKEN to reach a running service, or WAYPOST_SECRET_KEY to open its store; "
            f"in a folder with {ENV_FILE} the demonstration is reached without either"
        )
    from waypost.assembly.service import Waypost  # it takes a second, and most commands need none

    clock = SystemClock()
    ids = RandomIds(clock)
    token = ids.secret()
    service = Waypost(settings.model_copy(update={"admin_token": token, "stages": STAGES}), clock, ids)
    await service.open()
    try:
        door = ApiClient(InProcess(service.application), {"Authorization": f"Bearer {token}"})
        return await use(door, False)
    finally:
        await service.close()
