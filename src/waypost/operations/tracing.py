"""OpenTelemetry: a span for each step of a message, all in one trace, whichever process runs the step.

The trace's id is the message's id, which has its 128 bits, and the first span's id is made from it too. So
processes do not have to share which trace a message belongs to, nothing of it is stored, and the message's
id is enough to find its trace. `base/telemetry/tracing.py` decides which messages are traced.

Source: W3C Trace Context, level 2, "trace-id" and "random-trace-id"; decision 0046.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from waypost import __version__
from waypost.base.extras import install_command
from waypost.base.ids import is_uuid
from waypost.base.telemetry.tracing import TraceRecord, TraceStep, is_sampled, tracer

if TYPE_CHECKING:  # the extra `otel` may not be installed, and takes a tenth of a second to load
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

ROOT_STEP: Final = TraceStep.ACCEPTED
"""The step whose span is the parent of all others."""

_FACTS_NOT_IN_SPANS: Final = frozenset({"traceparent"})


class TracingUnavailable(Exception):
    """Spans are configured and cannot be made; the text contains the fix."""


class SpanTracing:
    """Makes spans of steps until it is closed.

    Args:
        sample_ratio: of the messages whose sender has not decided, 0 to 1.
    """

    def __init__(self, processor: SpanProcessor, *, sample_ratio: float = 1, process: str = "0") -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON

        class SpanIds(RandomIdGenerator):
            """Returns the ids of a root span, where one is about to be made."""

            first: tuple[int, int] | None = None

            def generate_trace_id(self) -> int:
                return super().generate_trace_id() if self.first is None else self.first[0]

            def generate_span_id(self) -> int:
                return super().generate_span_id() if self.first is None else self.first[1]

        self._ids = SpanIds()
        self._sample_ratio = sample_ratio
        self._provider: TracerProvider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource(
                {"service.name": "waypost", "service.version": __version__, "service.instance.id": process}
            ),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("waypost", __version__)
        self._stop_tracing = tracer.trace_to(self._record_span)

    def close(self) -> None:
        """Stop receiving steps, and pass on the spans that have been made."""
        self._stop_tracing()
        self._provider.shutdown()

    def _record_span(self, record: TraceRecord) -> None:
        if not is_uuid(record.message_id) or not is_sampled(record.message_id, self._sample_ratio):
            return
        from opentelemetry.context import Context
        from opentelemetry.trace import (
            NonRecordingSpan,
            SpanContext,
            Status,
            StatusCode,
            TraceFlags,
            set_span_in_context,
        )

        trace_id, first_id = trace_and_span_ids(record.message_id)
        step = record.step.value
        options: dict[str, Any] = {"start_time": record.ended_ns - record.took_ns, "attributes": _attributes(record)}
        if record.step is ROOT_STEP:
            self._ids.first = (trace_id, first_id)
            try:
                span = self._tracer.start_span(
                    f"{step.part}: {step.text}", Context(), links=_links(record.facts.get("traceparent")), **options
                )
            finally:
                self._ids.first = None
        else:
            first = SpanContext(trace_id, first_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
            parent = set_span_in_context(NonRecordingSpan(first), Context())
            span = self._tracer.start_span(f"{step.part}: {step.text}", parent, **options)
        if record.failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(record.ended_ns)


def open_tracing(endpoint: str, *, sample_ratio: float, process: str) -> SpanTracing:
    """Send spans to an endpoint, in batches and off the event loop.

    The settings that the exporter itself reads from `OTEL_EXPORTER_OTLP_…` (headers, certificates) apply too.

    Raises:
        TracingUnavailable: the extra is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise TracingUnavailable(
            f"otel_endpoint is set and OpenTelemetry is not installed: {install_command('otel')}, "
            "or unset WAYPOST_OTEL_ENDPOINT"
        ) from error
    exporter: SpanExporter = OTLPSpanExporter(endpoint=endpoint)
    return SpanTracing(BatchSpanProcessor(exporter), sample_ratio=sample_ratio, process=process)


def trace_and_span_ids(message_id: str) -> tuple[int, int]:
    """Return a message's trace id and the id of its first span."""
    trace_id = UUID(message_id).int
    return trace_id, (trace_id ^ (trace_id >> 64)) & 0xFFFF_FFFF_FFFF_FFFF or 1


def _attributes(record: TraceRecord) -> dict[str, Any]:
    facts = {
        f"waypost.{name}": value
        for name, value in record.facts.items()
        if value is not None and name not in _FACTS_NOT_IN_SPANS
    }
    return {"waypost.message_id": record.message_id, **facts}


def _links(traceparent: str | None) -> list[Any]:
    """Return a link to the sender's span: no parent, because this trace's id is the message's."""
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if not traceparent:
        return []
    extract: Callable[..., Any] = TraceContextTextMapPropagator().extract
    sender = get_current_span(extract({"traceparent": traceparent}, Context())).get_span_context()
    return [Link(sender)] if sender.is_valid else []
