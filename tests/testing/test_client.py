"""The plugin's client: the errors of calls without a response, and of responses with an error."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pytest_waypost.client import ApiResponseError, ApiUnreachable, BlockingApiClient


def test_address_where_nobody_listens_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    client = BlockingApiClient(f"http://127.0.0.1:{port}/admin")

    with pytest.raises(ApiUnreachable, match=f"no response to GET http://127.0.0.1:{port}/admin/queues"):
        client.json("GET", "/queues")


def test_server_that_never_responds_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = BlockingApiClient(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=0.05)

        with pytest.raises(ApiUnreachable, match="timed out"):
            client.json("GET", "/")


@dataclass
class FixedResponse:
    """The response of a server to every request."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])


@pytest.fixture
def fixed_response() -> FixedResponse:
    return FixedResponse(204, b"")


@pytest.fixture
def client(fixed_response: FixedResponse) -> Iterator[BlockingApiClient]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(fixed_response.status)
            for name, value in fixed_response.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(fixed_response.body)))
            self.end_headers()
            self.wfile.write(fixed_response.body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield BlockingApiClient(f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    thread.join()
    server.server_close()


def test_response_without_a_body_is_none(client: BlockingApiClient) -> None:
    assert client.json("GET", "/x") is None


_HINT = {"Waypost-Error": '{"field":"a","rule":"odd","accepted":"2"}', "Waypost-Reason": "a: is odd"}


@pytest.mark.parametrize(
    ("response", "text", "details"),
    [
        (FixedResponse(400, b'{"status":"error","message":"Bad"}'), "Bad (400)", ("", "", "")),
        (FixedResponse(400, b'{"message":"Bad"}', _HINT), "Bad: a: is odd (400)", ("a", "odd", "2")),
        (FixedResponse(404, b'{"error":"b: no","field":"b","rule":"no"}'), "b: no (404)", ("b", "no", "")),
        (FixedResponse(400, b'{"error":{"message":"(#100) Bad"}}'), "(#100) Bad (400)", ("", "", "")),
        (FixedResponse(400, b'{"message":"No.","field":7}'), "No. (400)", ("", "", "")),
        (FixedResponse(502, b"<html>"), "GET URL/x failed without an error message (502)", ("", "", "")),
        (FixedResponse(502, b"\xff"), "GET URL/x failed without an error message (502)", ("", "", "")),
        (FixedResponse(502, b"[]"), "GET URL/x failed without an error message (502)", ("", "", "")),
    ],
)
def test_error_has_the_text_and_the_field_of_the_api(
    client: BlockingApiClient,
    fixed_response: FixedResponse,
    response: FixedResponse,
    text: str,
    details: tuple[str, ...],
) -> None:
    vars(fixed_response).update(vars(response))

    with pytest.raises(ApiResponseError) as raised:
        client.json("GET", "/x")

    error = raised.value
    assert str(error) == text.replace("URL", client.base_url)
    assert (error.field, error.rule, error.accepted) == details
