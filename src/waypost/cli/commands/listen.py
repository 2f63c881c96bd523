"""`waypost listen`: a receiver that subscribes, prints every callback, and unsubscribes at the end."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from waypost.assembly.http.servers import HttpServer, bind, port_of, signalled
from waypost.client.api_client import ApiClient, OverHttp
from waypost.client.dev_variables import MissingVariable


async def listen(
    variables: dict[str, str], *, modes: str, port: int, say: Callable[[str], None], ready_fd: int | None = None
) -> None:
    """Receive callbacks of one app until a signal, one line each.

    Args:
        variables: of the running `waypost dev`.
        modes: which callbacks, with commas.
        port: to receive on; 0 takes a free one.
        say: prints a line.
        ready_fd: a pipe that is closed after one byte once callbacks come.

    Raises:
        DoorRefused: the subscription was refused.
        NotReached: the service does not answer.
        PortInUse: somebody else listens there.
        MissingVariable: a variable is missing.
    """
    try:
        base_url, app_id, token = (variables[name] for name in ("PARTNER_URL", "APP_ID", "APP_TOKEN"))
    except KeyError as error:
        raise MissingVariable(
            f"{error.args[0]} is missing in the file of variables: start `waypost dev`, which writes it"
        ) from error
    bound = bind("127.0.0.1", port, option="--port")
    server = HttpServer(_Receiver(say), bound)
    await server.start()
    door = ApiClient(OverHttp(base_url), {"Authorization": token})
    path = f"/partner/app/{app_id}/subscription"
    url = f"http://127.0.0.1:{port_of(bound)}/callbacks"
    fields = {"modes": modes, "tag": f"listen-{port_of(bound)}", "url": url, "version": "2"}
    try:
        made = await door.form("POST", path, fields)
        say(f"listening at {url}; Ctrl+C stops" if ready_fd is None else f"listening at {url}")
        if ready_fd is not None:
            os.write(ready_fd, b"1")
            os.close(ready_fd)
        await signalled()
        await door.json("DELETE", f"{path}/{made['subscription']['id']}")
    finally:
        await server.stop()


def listen_in_background(options: Sequence[str], *, say: Callable[[str], None]) -> int:
    """Start `waypost listen` as a process of its own, and return its exit code, or 0 once it listens."""
    is_ready, ready_fd = os.pipe()
    command = [sys.executable, "-m", "waypost", "listen", *options, "--ready-fd", str(ready_fd)]
    listener = subprocess.Popen(command, pass_fds=(ready_fd,), stdin=subprocess.DEVNULL)  # noqa: S603  our own
    os.close(ready_fd)
    with os.fdopen(is_ready, "rb") as pipe:
        if not pipe.read(1):  # it ended, and has said why
            return listener.wait() or 1
    say(f"stop the listener with: kill {listener.pid}")
    listener.returncode = 0  # it outlives this process, and nobody waits for it
    return 0


class _Receiver:
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        try:
            told = json.loads(body)
        except ValueError:
            return
        if told.get("type") != "user-event":  # the check of the address itself
            self._say(json.dumps(told, ensure_ascii=False))
