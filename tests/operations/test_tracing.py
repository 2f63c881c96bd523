"""Spans: one trace per message across processes, linked to the trace of its sender."""

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
from tests.support.callback_sink import respond_in_turn
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.polling import HANGS_AFTER_S
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.operations.tracing import SpanTracing, TracingUnavailable, open_tracing, trace_and_span_ids

SENDER: Final = "4bf92f3577b34da6a3ce929d0e0e4736"


def context_of(span: ReadableSpan) -> SpanContext:
    """Return the context of a recorded span, which always has one."""
    assert span.context is not None
    return span.context


class Spans:
    """The exported spans."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()

    def find(self, message_id: str) -> list[ReadableSpan]:
        """Return a message's spans in the order in which they ended."""
        trace_id = UUID(message_id).int
        return [span for span in self.exporter.get_finished_spans() if context_of(span).trace_id == trace_id]


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Export spans to memory."""
    spans = Spans()
    tracing = SpanTracing(SimpleSpanProcessor(spans.exporter))
    yield spans
    tracing.close()


async def test_message_has_one_trace_from_its_acceptance_to_its_callbacks(spans: Spans, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.wait_for_state(message_id, "delivered")

    message_spans = spans.find(message_id)
    stages = {span.name.partition(":")[0] for span in message_spans}
    [first] = [span for span in message_spans if span.parent is None]
    assert stages == {"api", "queue", "operators", "dispatch", "events", "callbacks"}
    assert first.name == "api: accepted"
    assert {span.parent.span_id for span in message_spans if span.parent} == {context_of(first).span_id}
    assert len({context_of(span).span_id for span in message_spans}) == len(message_spans)
    assert all(span.attributes and span.attributes["waypost.message_id"] == message_id for span in message_spans)
    [responded] = [span for span in message_spans if span.name.startswith("operators")]
    assert (responded.end_time or 0) > (responded.start_time or 0) > 0


async def test_trace_continues_in_the_process_that_takes_over(spans: Spans, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await pipeline.close_service()
    await pipeline.open_operator()

    await pipeline.open_service()
    await pipeline.events_of(message_id, until="delivered")

    message_spans = spans.find(message_id)
    [first] = [span for span in message_spans if span.parent is None]
    assert {span.parent.span_id for span in message_spans if span.parent} == {context_of(first).span_id}


async def test_trace_is_linked_to_the_trace_of_its_sender(spans: Spans, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    form = {
        "channel": "whatsapp", "source": APP.phone_number, "destination": ANN, "src.name": APP.name,
        "message": '{"type":"text","text":"Hello"}',
    }  # fmt: skip
    headers = {"apikey": API_KEY, "traceparent": f"00-{SENDER}-00f0670000a90207-01"}

    response = await pipeline.send_request("POST", "/wa/api/v1/msg", form, headers)

    [first] = [span for span in spans.find(response.body["messageId"]) if span.parent is None]
    assert [f"{link.context.trace_id:032x}" for link in first.links] == [SENDER]


async def test_failed_attempt_is_an_error_span_without_a_phone_number(spans: Spans, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    pipeline.sink.choose_status = respond_in_turn(500, 200)

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")

    failed = [span for span in spans.find(message_id) if span.status.status_code is StatusCode.ERROR]
    assert [span.name for span in failed] == ["callbacks: callback attempted"]
    exported = str([(span.name, dict(span.attributes or {})) for span in spans.find(message_id)])
    assert ANN not in exported
    assert APP.phone_number not in exported


@pytest.mark.parametrize(("flags", "ratio", "traced"), [("01", 0, True), ("00", 1, False)])
async def test_sampled_flag_of_the_sender_decides_in_every_process(
    make_pipeline: Any, flags: str, ratio: float, traced: bool
) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    processes = [Spans(), Spans()]
    opened = [SpanTracing(SimpleSpanProcessor(each.exporter), sample_ratio=ratio) for each in processes]
    form = {
        "channel": "whatsapp", "source": APP.phone_number, "destination": ANN, "src.name": APP.name,
        "message": '{"type":"text","text":"Hello"}',
    }  # fmt: skip
    headers = {"apikey": API_KEY, "traceparent": f"00-{SENDER}-00f0670000a90207-{flags}"}

    response = await pipeline.send_request("POST", "/wa/api/v1/msg", form, headers)
    message_id = response.body["messageId"]
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.wait_for_state(message_id, "delivered")
    for each in opened:
        each.close()

    assert [bool(each.find(message_id)) for each in processes] == [traced, traced]
    assert UUID(message_id).version == 7


@pytest.mark.parametrize("traceparent", ["", "00-zz-1-01", "00-" + "0" * 32 + "-00f0670000a90207-01", "x" * 4000])
def test_invalid_traceparent_is_not_linked(spans: Spans, traceparent: str) -> None:
    tracer.record(TraceStep.ACCEPTED, id_number(1), traceparent=traceparent)

    [first] = spans.find(id_number(1))
    assert list(first.links) == []


def test_every_process_traces_the_same_share_of_messages() -> None:
    ids = RandomIds(SystemClock())
    message_ids = [ids.new() for _ in range(400)]
    traced: list[set[int]] = []
    for _ in range(2):
        exporter = InMemorySpanExporter()
        tracing = SpanTracing(SimpleSpanProcessor(exporter), sample_ratio=0.25)
        for message_id in message_ids:
            tracer.record(TraceStep.OPERATOR_RESPONDED, message_id)
        tracing.close()
        traced.append({context_of(span).trace_id for span in exporter.get_finished_spans()})

    assert traced[0] == traced[1]
    assert 50 < len(traced[0]) < 150


def test_trace_and_span_ids_are_derived_from_the_message_id() -> None:
    trace_id, span_id = trace_and_span_ids(id_number(7))

    assert UUID(int=trace_id) == UUID(id_number(7))
    assert 0 < span_id < 1 << 64


@pytest.fixture
async def collector() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Start a collector of spans; return its URL and the received bodies."""
    received: list[bytes] = []

    async def receive(request: web.Request) -> web.Response:
        received.append(await request.read())
        return web.Response(content_type="application/x-protobuf")

    application = web.Application()
    application.router.add_post("/v1/traces", receive)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces", received
    await runner.cleanup()


async def test_spans_are_sent_over_http_including_those_pending_at_the_end(collector: tuple[str, list[bytes]]) -> None:
    url, received = collector
    tracing = open_tracing(url, sample_ratio=1, process="0")

    tracer.record(TraceStep.ACCEPTED, id_number(1))
    await asyncio.to_thread(tracing.close)

    assert UUID(id_number(1)).bytes in b"".join(received)
    assert not tracer.is_enabled


def test_tracing_without_its_packages_is_an_error_with_the_fix_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    with pytest.raises(TracingUnavailable, match=r"pip install 'opentelemetry-api>=.* 'opentelemetry-sdk>="):
        open_tracing("http://127.0.0.1:9/v1/traces", sample_ratio=1, process="0")


def test_tracing_and_metrics_packages_are_not_loaded_before_they_are_used() -> None:
    heavy = ("opentelemetry", "prometheus_client")
    loaded = f"[name for name in {heavy} if name in sys.modules]"
    script = f"import sys, waypost.cli.command_tree; sys.exit(len({loaded}))"

    result = subprocess.run([sys.executable, "-c", script], check=False, timeout=HANGS_AFTER_S)

    assert result.returncode == 0
