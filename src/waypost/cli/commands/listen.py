"""`waypost listen`: a receiver that subscribes, prints each callback, and unsubscribes at the end."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from waypost.assembly.http.servers import HttpServer, bind_socket, port_of, wait_for_signal
from waypost.client.api_client import ApiClient, HttpTransport
from waypost.client.dev_variables import MissingVariable


async def listen(
    variables: dict[str, str], *, modes: str, port: int, print_line: Callable[[str], None], ready_fd: int | None = None
) -> None:
    """Receive callbacks of one app until a signal, and print each as one line.

    Args:
        variables: of the running `waypost dev`.
        modes: of the subscription, separated by commas.
        port: to receive on; 0 takes a free one.
        print_line: prints a line.
        ready_fd: a pipe that gets one byte, and is closed, once the subscription is active.

    Raises:
        ApiResponseError: the subscription was rejected.
        ApiUnreachable: the service does not respond.
        PortInUse: the port is in use.
        MissingVariable: a variable is missing.
    """
    try:
        base_url, app_id, token = (variables[name] for name in ("PARTNER_URL", "APP_ID", "APP_TOKEN"))
    except KeyError as error:
        raise MissingVariable(
            f"{error.args[0]} is missing in the environment file: start `waypost dev`, which writes it"
        ) from error
    bound = bind_socket("127.0.0.1", port, option="--port")
    server = HttpServer(_PrintingReceiver(print_line), bound)
    await server.start()
    client = ApiClient(HttpTransport(base_url), {"Authorization": token})
    path = f"/partner/app/{app_id}/subscription"
    url = f"http://127.0.0.1:{port_of(bound)}/callbacks"
    fields = {"modes": modes, "tag": f"listen-{port_of(bound)}", "url": url, "version": "2"}
    try:
        response = await client.form("POST", path, fields)
        print_line(f"listening at {url}; Ctrl+C stops" if ready_fd is None else f"listening at {url}")
        if ready_fd is not None:
            os.write(ready_fd, b"1")
            os.close(ready_fd)
        await wait_for_signal()
        await client.json("DELETE", f"{path}/{response['subscription']['id']}")
    finally:
        await server.stop()


def listen_in_background(options: Sequence[str], *, print_line: Callable[[str], None]) -> int:
    """Start `waypost listen` as a separate process; return 0 once it listens, else its exit code."""
    is_ready, ready_fd = os.pipe()
    command = [sys.executable, "-m", "waypost", "listen", *options, "--ready-fd", str(ready_fd)]
    listener = subprocess.Popen(command, pass_fds=(ready_fd,), stdin=subprocess.DEVNULL)  # noqa: S603  our own
    os.close(ready_fd)
    with os.fdopen(is_ready, "rb") as pipe:
        if not pipe.read(1):  # it ended, and has printed why
            return listener.wait() or 1
    print_line(f"stop the listener with: kill {listener.pid}")
    listener.returncode = 0  # it outlives this process, which does not wait for it
    return 0


class _PrintingReceiver:
    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print_line = print_line

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
            callback = json.loads(body)
        except ValueError:
            return
        if callback.get("type") != "user-event":  # the ping that verifies the endpoint URL
            self._print_line(json.dumps(callback, ensure_ascii=False))
