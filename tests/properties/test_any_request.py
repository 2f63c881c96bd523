"""Any request gets a documented response: never a 500, and never a partial effect in the store."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.partner_seeding import store_partner
from waypost.admin import provisioning
from waypost.api.route import RouteRow
from waypost.api.routes import ROUTES
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.encryption import hash_secret
from waypost.base.ids import RandomIds
from waypost.client.api_client import ClientResponse, InProcessTransport
from waypost.config import Settings
from waypost.domain.errors import ErrorCode
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.console.trace import message_counts
from waypost.store.properties import seed_template
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import count_jobs_by_state
from waypost.wire.errors import ERRORS

ALWAYS_POSSIBLE = {401, 413, 429}


class InProcessService:
    """A service on its own store, called in process; its event loop lasts as long as the module."""

    def __init__(self, data: Path) -> None:
        clock = SystemClock()
        settings = Settings(data=data, secret_key="instance key of a test, of forty characters", rates=False)
        self.loop = asyncio.new_event_loop()
        self.service = Waypost(settings, clock, RandomIds(clock))
        self.token = ""
        self.loop.run_until_complete(self._open(clock.now_ms()))

    def call(self, method: str, path: str, headers: dict[str, str], body: bytes) -> ClientResponse:
        transport = InProcessTransport(self.service.application)
        return self.loop.run_until_complete(transport(method, path, headers, body))

    def count_stored(self) -> tuple[dict[str, int], int]:
        """Return the numbers of messages by state, and of outbound jobs."""

        async def count() -> tuple[dict[str, int], int]:
            read = self.service.database.read
            depth = await read(count_jobs_by_state, QueueName.OUTBOUND)
            return await read(message_counts), sum(depth.values())

        return self.loop.run_until_complete(count())

    def close(self) -> None:
        self.loop.run_until_complete(self.service.close())
        self.loop.close()

    async def _open(self, now_ms: int) -> None:
        await self.service.open()
        context, write = self.service.admin_context, self.service.database.write
        await provisioning.put_operator_account(context, demo.operator_account("http://127.0.0.1:9"))
        self.token = await store_partner(context, demo.PARTNER, demo.ACCOUNT, demo.app(now_ms))
        await write(add_credential, CredentialKind.API_KEY, demo.PARTNER.id, hash_secret("key"), now_ms)
        await write(seed_template, demo.template(now_ms))


@pytest.fixture(scope="module")
def running_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessService]:
    service = InProcessService(tmp_path_factory.mktemp("service"))
    yield service
    service.close()


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
json_texts = any_json.map(json.dumps) | st.sampled_from(
    [
        '{"type":"text","text":"hi"}',
        f'{{"id":"{demo.TEMPLATE_ID}","params":["a",1,2.5,null]}}',
        '[{"index":0,"text":"a"}]',
        '[{"index":-1,"text":"a"}]',
        '[{"type":"URL","text":"a","url":"https://a.example/{{1}}"}]',
        '{"headers":{"X-A":"b"}}',
        '{"headers":{"X\\n":"b"}}',
        '{"text":"\\u0000"}',
        '{"text":"\\ud800"}',
        "[" * 40 + "]" * 40,
        "{",
    ]
)
values = st.text() | json_texts | st.sampled_from(
    ["true", "", demo.SOURCE, demo.DESTINATION, demo.APP_NAME, "whatsapp", "9" * 5000, "٣", "{{1}}", "a b\x00"]
)  # fmt: skip


def forms_of(row: RouteRow) -> st.SearchStrategy[bytes]:
    names = st.sampled_from([field.name for field in row.fields]) if row.fields else st.text()
    pairs = st.lists(st.tuples(names | st.text(max_size=10), values), max_size=14)
    forms = pairs.map(lambda fields: urlencode(fields, errors="replace").encode())
    return forms | pairs.map(encode_multipart) | st.binary()


def encode_multipart(fields: list[tuple[str, str]]) -> bytes:
    """Return a multipart body; names and texts are not escaped, so it may be malformed."""
    parts = (f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields)
    return "".join([*parts, "--x--\r\n"]).encode("utf-8", "replace")


@st.composite
def requests(draw: st.DrawFn) -> tuple[RouteRow, str, dict[str, str], bytes]:
    row = draw(st.sampled_from(ROUTES))
    app_id = draw(st.sampled_from([demo.APP_ID, "none", "%00", "%F0%9F"]))
    path = re.sub(r"\{\w+\}", "9" * 30, row.path.replace("{app_id}", app_id))
    kind = draw(
        st.sampled_from(
            [
                "application/x-www-form-urlencoded",
                "application/json",
                "multipart/form-data; boundary=x",
                "text/plain",
                "",
            ]
        )
    )
    body = draw(forms_of(row))
    if row.calls_out:  # nothing may be sent to a random URL
        last = encode_multipart([("doCheck", "false")])
        is_parts = kind.startswith("multipart")
        body = body.removesuffix(b"--x--\r\n") + (last if is_parts else b"&doCheck=false")
    return row, path, {"content-type": kind}, body


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=requests())
def test_any_request_gets_a_documented_response(
    running_service: InProcessService, request: tuple[RouteRow, str, dict[str, str], bytes]
) -> None:
    row, path, headers, body = request
    credentials = {"apikey": "key", "token": running_service.token}

    reply = running_service.call(row.method, path, {**headers, **credentials}, body)

    assert reply.status in ALWAYS_POSSIBLE | set(row.statuses), (row.path, reply)
    if reply.status != 204:
        content: dict[str, Any] = json.loads(reply.body)
        if reply.status < 300:
            assert row.response_schema is not None
            assert list(jsonschema_rs.iter_errors(row.response_schema, content)) == []
        else:
            assert content["status"] == "error"
            assert content["message"]
    counts, job_count = running_service.count_stored()
    assert sum(counts.values()) <= job_count  # templates have jobs too


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    headers=st.dictionaries(st.sampled_from(["apikey", "token", "authorization"]), st.text()), first=st.integers(0, 3)
)
@example(headers={}, first=0)
@example(headers={}, first=1)
@example(headers={}, first=2)
@example(headers={}, first=3)
def test_every_wrong_credential_gets_the_same_error(
    running_service: InProcessService, headers: dict[str, str], first: int
) -> None:
    """Each example tests a quarter of the routes."""
    encoded = {name: text.encode("utf-8", "replace").decode() for name, text in headers.items()}

    for row in [row for row in ROUTES if row.credential != "none"][first::4]:
        path = re.sub(r"\{\w+\}", "1", row.path.replace("{app_id}", demo.APP_ID))
        reply = running_service.call(row.method, path, encoded, b"")
        error = ERRORS[row.wrong_credential]
        is_short = ErrorCode.UNAUTHORIZED_ACCESS in row.errors
        texts = {error.text, *(["Unauthorized Access"] if is_short else [])}
        assert reply.status == error.status
        assert json.loads(reply.body)["message"] in texts
