"""Clients that disconnect in the middle of a request: no defect, and the service goes on."""

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.support.builders import APP, OPERATOR
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs

PATHS: Final = {
    "webhook": f"/operator/webhook/{OPERATOR.id}",
    "partner API": f"/partner/app/{APP.id}/templates",
    "upload": f"/partner/app/{APP.id}/upload/media",
    "admin API": "/admin/partners",
}


@pytest.fixture
def errors(logs: Callable[[], None]) -> Iterator[io.StringIO]:
    """Collect the errors that the service logs."""
    stream = io.StringIO()
    set_up_logs(SystemClock(), as_json=True, level="error", stream=stream)
    yield stream
    logs()


@pytest.mark.parametrize("api", PATHS)
async def test_client_that_disconnects_within_its_body_causes_no_defect(
    pipeline: PipelineHarness, api: str, errors: io.StringIO
) -> None:
    address = urlsplit(pipeline.service_url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(
        f"POST {PATHS[api]} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 1000\r\n"
        f"Authorization: {pipeline.app_token if api != 'admin API' else f'Bearer {ADMIN_TOKEN}'}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\nhalf=".encode()
    )
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert await pipeline.send_text()  # the service still works
    assert errors.getvalue() == ""
