"""Spans: one trace a message, whoever makes it, linked to what its sender was doing."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final
from uuid import UUID

import pytest
from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, StatusCode

from tests.support.builders import ANN, APP, id_number
from tests.support.callback_sink import in_turn
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.waiting import HANGS_AFTER_S
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.operations.tracing import SpanTracing, TracingUnavailable, open_tracing, trace_and_span_ids

SENDER: Final = "4bf92f3577b34da6a3ce929d0e0e4736"


def context_of(span: ReadableSpan) -> SpanContext:
    """Of a span that was made, which always has one."""
    assert span.context is not None
    return span.context


class Spans:
    """What has been handed on."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()

    def of(self, message_id: str) -> list[ReadableSpan]:
        """A message's, in the order in which they ended."""
        trace_id = UUID(message_id).int
        return [one for one in self.exporter.get_finished_spans() if context_of(one).trace_id == trace_id]


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Spans as the SDK hands them on, kept in memory."""
    spans = Spans()
    tracing = SpanTracing(SimpleSpanProcessor(spans.exporter))
    yield spans
    tracing.close()


async def test_message_is_one_trace_from_its_acceptance_to_its_callbacks(spans: Spans, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.wait_for_state(message_id, "delivered")

    made = spans.of(message_id)
    stages = {one.name.partition(":")[0] for one in made}
    [first] = [one for one in made if one.parent is None]
    assert stages == {"api", "queue", "operators", "dispatch", "events", "callbacks"}
    assert first.name == "api: accepted"
    assert {one.parent.span_id for one in made if one.parent} == {context_of(first).span_id}
    assert len({context_of(one).span_id for one in made}) == len(made)
    assert all(one.attributes and one.attributes["waypost.message_id"] == message_id for one in made)
    [answered] = [one for one in made if one.name.startswith("operators")]
    assert (answered.end_time or 0) > (answered.start_time or 0) > 0


async def test_trace_goes_on_in_the_process_that_takes_over(spans: Spans, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await pipeline.close_service()
    await pipeline.open_operator()

    await pipeline.open_service()
    await pipeline.events_of(message_id, until="delivered")

    made = spans.of(message_id)
    [first] = [one for one in made if one.parent is None]
    assert {one.parent.span_id for one in made if one.parent} == {context_of(first).span_id}


async def test_trace_is_linked_to_what_its_sender_was_doing(spans: Spans, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    form = {
        "channel": "whatsapp", "source": APP.phone_number, "destination": ANN, "src.name": APP.name,
        "message": '{"type":"text","text":"Hello"}',
    }  # fmt: skip
    headers = {"apikey": API_KEY, "traceparent": f"00-{SENDER}-00f0670000a90207-01"}

    answer = await pipeline.ask("POST", "/wa/api/v1/msg", form, headers)

    [first] = [one for one in spans.of(answer.body["messageId"]) if one.parent is None]
    assert [f"{link.context.trace_id:032x}" for link in first.links] == [SENDER]


async def test_failed_attempt_is_an_error_and_names_no_number(spans: Spans, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    pipeline.sink.answers = in_turn(500, 200)

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")

    failed = [one for one in spans.of(message_id) if one.status.status_code is StatusCode.ERROR]
    assert [one.name for one in failed] == ["callbacks: callback attempted"]
    said = str([(one.name, dict(one.attributes or {})) for one in spans.of(message_id)])
    assert ANN not in said
    assert APP.phone_number not in said


@pytest.mark.parametrize("junk", ["", "00-zz-1-01", "00-" + "0" * 32 + "-00f0670000a90207-01", "x" * 4000])
def test_traceparent_that_cannot_be_read_links_nothing(spans: Spans, junk: str) -> None:
    tracer.record(TraceStep.ACCEPTED, id_number(1), traceparent=junk)

    [first] = spans.of(id_number(1))
    assert list(first.links) == []


def test_share_of_messages_is_traced_and_every_process_decides_alike() -> None:
    ids = RandomIds(SystemClock())
    asked = [ids.new() for _ in range(400)]
    chosen: list[set[int]] = []
    for _ in range(2):
        exporter = InMemorySpanExporter()
        tracing = SpanTracing(SimpleSpanProcessor(exporter), share=0.25)
        for message_id in asked:
            tracer.record(TraceStep.OPERATOR_RESPONDED, message_id)
        tracing.close()
        chosen.append({context_of(one).trace_id for one in exporter.get_finished_spans()})

    assert chosen[0] == chosen[1]
    assert 50 < len(chosen[0]) < 150


def test_ids_of_a_message_are_its_own() -> None:
    trace_id, span_id = trace_and_span_ids(id_number(7))

    assert UUID(int=trace_id) == UUID(id_number(7))
    assert 0 < span_id < 1 << 64


@pytest.fixture
async def collector() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Where spans go, and what has come."""
    came: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        came.append(await request.read())
        return web.Response(content_type="application/x-protobuf")

    application = web.Application()
    application.router.add_post("/v1/traces", take)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces", came
    await runner.cleanup()


async def test_spans_are_sent_over_http_and_what_is_left_at_the_end_too(collector: tuple[str, list[bytes]]) -> None:
    url, came = collector
    tracing = open_tracing(url, share=1, process="0")

    tracer.record(TraceStep.ACCEPTED, id_number(1))
    await asyncio.to_thread(tracing.close)

    assert UUID(id_number(1)).bytes in b"".join(came)
    assert not tracer.is_enabled


def test_spans_that_cannot_be_made_are_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    with pytest.raises(TracingUnavailable, match=r"pip install 'waypost\[otel\]'"):
        open_tracing("http://127.0.0.1:9/v1/traces", share=1, process="0")


def test_neither_spans_nor_metrics_are_loaded_before_somebody_asks() -> None:
    heavy = ("opentelemetry", "prometheus_client")
    loaded = f"[name for name in {heavy} if name in sys.modules]"
    script = f"import sys, waypost.cli.main; sys.exit(len({loaded}))"

    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=HANGS_AFTER_S)

    assert done.returncode == 0
