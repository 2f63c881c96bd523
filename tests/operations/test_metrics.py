"""`/metrics`: correct after one message, equal to the table, and readable only with permission."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.support.builders import ANN, APP, PARTNER
from tests.support.callback_sink import respond_in_turn
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.polling import poll_until
from waypost.base.telemetry.counters import Histogram
from waypost.operations.metrics import METRICS, MetricKind
from waypost.operations.prometheus import cumulative_buckets

SEND: Final = "POST /wa/api/v1/msg"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def read_samples(pipeline: PipelineHarness, **headers: str) -> Samples:
    """Return every sample by its name and labels, without the label that all have."""
    response = await pipeline.send_request("GET", "/metrics", headers=headers)
    assert response.status == 200, response
    return {
        (
            sample.name.removeprefix("waypost_"),
            frozenset((name, value) for name, value in sample.labels.items() if name != "process"),
        ): sample.value
        for family in parse(response.raw.decode())
        for sample in family.samples
    }


def sample_value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


async def wait_until_idle(pipeline: PipelineHarness) -> None:
    """Wait until no job is worked and no write is pending."""

    async def is_idle() -> bool:
        queues = await pipeline.queue_depths()
        return not pipeline.waypost.busy and not any(any(queue.values()) for queue in queues.values())

    await poll_until(is_idle)


async def test_requests_rejected_by_the_server_are_counted(pipeline: PipelineHarness) -> None:
    before = await read_samples(pipeline)
    async with pipeline.http.get(f"{pipeline.service_url}/healthz", headers={"X-Large": "a" * 100_000}) as response:
        assert response.status == 431

    after = await read_samples(pipeline)

    assert ("server_errors_total", frozenset({("status", "431")})) not in before
    assert sample_value(after, "server_errors_total", status="431") == 1
    assert sample_value(after, "connections") >= 1  # the connection of this request


async def test_metrics_follow_a_message_through_every_stage(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    before = await read_samples(pipeline)
    callbacks_before = len(pipeline.callbacks)
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    await wait_until_idle(pipeline)

    after = await read_samples(pipeline)

    def grown(name: str, **labels: str) -> float:
        key = (name, frozenset(labels.items()))
        return after[key] - before.get(key, 0)

    callbacks = len(pipeline.callbacks) - callbacks_before
    assert grown("requests_total", route=SEND, status="200") == 1
    assert grown("request_seconds_count", route=SEND) == 1
    assert grown("queue_jobs_total", queue="outbound", event="claimed") == 1
    assert grown("queue_jobs_total", queue="outbound", event="completed") == 1
    assert grown("operator_messages_total", outcome="accepted", code="none") == 1
    assert grown("operator_call_seconds_count", outcome="accepted") == 1
    assert grown("events_total", event="delivered") == 1
    assert grown("webhook_items_total") >= 2
    assert grown("callback_attempts_total", status="2xx", result="delivered") == callbacks
    assert grown("queue_jobs_total", queue="callbacks", event="completed") == callbacks
    assert grown("commit_items_sum") >= grown("commit_seconds_count") > 0
    assert sample_value(after, "queue_depth", queue="outbound", state="open") == 0
    assert sample_value(after, "queue_in_flight", queue="callbacks") == 0
    assert sample_value(after, "queue_leases", queue="callbacks") == 256
    assert sample_value(after, "ready", check="store_writes") == 1
    assert after["process_resident_memory_bytes", frozenset()] > 1_000_000


async def test_error_responses_and_failed_attempts_have_their_own_counters(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    pipeline.sink.choose_status = respond_in_turn(503, 200)

    failed = await pipeline.send_request("POST", "/wa/api/v1/msg", {}, {"apikey": "wrong"})
    await pipeline.events_of(await pipeline.send_text(), until="delivered")

    samples = await read_samples(pipeline)
    assert sample_value(samples, "requests_total", route=SEND, status=str(failed.status)) == 1
    assert sample_value(samples, "errors_total", route=SEND, code="authentication_failed") == 1
    assert sample_value(samples, "callback_attempts_total", status="5xx", result="retried") == 1
    assert sample_value(samples, "queue_jobs_total", queue="callbacks", event="retried_later") == 1


async def test_waiting_jobs_and_their_age_are_shown_while_the_operator_is_unreachable(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await poll_until(pipeline.submission_attempts)

    samples = await read_samples(pipeline)

    assert message_id
    assert sample_value(samples, "operator_messages_total", outcome="unavailable", code="none") >= 1
    assert sample_value(samples, "queue_jobs_total", queue="outbound", event="retried_later") >= 1
    waiting = [sample_value(samples, "queue_depth", queue="outbound", state=state) for state in ("open", "in_flight")]
    assert sum(waiting) == 1
    assert sample_value(samples, "queue_oldest_due_seconds", queue="outbound") < 60


async def test_every_metric_is_in_the_table_with_its_labels_and_has_no_personal_data(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.events_of(await pipeline.send_text(), until="delivered")

    response = await pipeline.send_request("GET", "/metrics")

    text = response.raw.decode()
    shown = {family.name: family for family in parse(text) if family.name.startswith("waypost_")}
    rows = {f"waypost_{row.name.removesuffix('_total')}": row for row in METRICS}
    assert shown.keys() == rows.keys()
    for name, family in shown.items():
        assert family.type == rows[name].kind.value
        assert family.documentation == rows[name].meaning
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == {"process", *rows[name].labels}
    secrets = (ANN, APP.phone_number, APP.name, APP.id, PARTNER.name, PARTNER.email)
    assert [secret for secret in secrets if secret in text] == []


# fmt: off
READERS: Final[tuple[tuple[dict[str, str], int], ...]] = (  # headers, and status of the response. Source: decision 0046
    #  headers                                                    status
    ({},                                                          200),  # this machine, directly
    ({"Host": "waypost.example"},                                 401),  # a proxy on this machine
    ({"X-Forwarded-For": "203.0.113.9"},                          401),
    ({"Forwarded": "for=203.0.113.9"},                            401),
    ({"Authorization": "Bearer read-only-token-of-32-characters-or-more"},                       200),
    ({"Host": "waypost.example", "Authorization": "Bearer read-only-token-of-32-characters-or-more"}, 200),
    ({"Host": "waypost.example", "Authorization": f"Bearer {ADMIN_TOKEN}"}, 200),
    ({"Authorization": "Bearer guessed"},                         401),  # a wrong token is an error from this machine too
)
# fmt: on


async def test_metrics_are_readable_from_this_machine_or_with_a_token(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(
        changes={"metrics_token": "read-only-token-of-32-characters-or-more"}
    )

    statuses = [
        (await pipeline.send_request("GET", "/metrics", headers=dict(headers))).status for headers, _ in READERS
    ]

    assert statuses == [status for _, status in READERS]


async def test_metrics_token_gives_access_to_metrics_only(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(
        changes={"metrics_token": "read-only-token-of-32-characters-or-more"}
    )

    response = await pipeline.send_request(
        "GET", "/admin/apps", headers={"Authorization": "Bearer read-only-token-of-32-characters-or-more"}
    )

    assert response.status == 401


async def test_metrics_are_sent_as_openmetrics_if_requested(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    accept = "application/openmetrics-text; version=1.0.0"

    response = await pipeline.send_request("GET", "/metrics", headers={"Accept": accept})

    assert response.headers["Content-Type"].startswith("application/openmetrics-text")
    assert response.raw.endswith(b"# EOF\n")


@pytest.mark.parametrize(("value", "at"), [(0.5, "1.0"), (1, "1.0"), (1.5, "2.0"), (9, "+Inf")])
def test_a_value_counts_in_its_bucket_and_in_all_above_it(value: float, at: str) -> None:
    histogram = Histogram((1, 2))

    histogram.add(value)

    buckets: Mapping[str, float] = dict(cumulative_buckets(histogram))
    names = list(buckets)
    assert [buckets[name] for name in names] == [float(names.index(name) >= names.index(at)) for name in names]
    assert histogram.total == value


def test_names_of_counters_are_unique_and_end_with_total() -> None:
    counters = {row.name for row in METRICS if row.kind is MetricKind.COUNTER}

    assert counters == {row.name for row in METRICS if row.name.endswith("_total")}
    assert len({row.name for row in METRICS}) == len(METRICS)
