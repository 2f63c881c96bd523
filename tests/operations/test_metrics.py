"""`/metrics`: true after one message's way, the same as the table, and shown to whoever may read it."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.support.builders import ANN, APP, PARTNER
from tests.support.callback_sink import in_turn
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.waiting import patiently
from waypost.base.telemetry.counters import Histogram
from waypost.operations.metrics import METRICS, MetricKind
from waypost.operations.prometheus import cumulative_buckets

SEND: Final = "POST /wa/api/v1/msg"
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def figures_of(pipeline: PipelineHarness, **headers: str) -> Figures:
    """Every sample by its name and labels, without the label that all have."""
    answer = await pipeline.ask("GET", "/metrics", headers=headers)
    assert answer.status == 200, answer
    return {
        (
            sample.name.removeprefix("waypost_"),
            frozenset((name, value) for name, value in sample.labels.items() if name != "process"),
        ): sample.value
        for family in parse(answer.raw.decode())
        for sample in family.samples
    }


def figure(figures: Figures, name: str, **labels: str) -> float:
    return figures[name, frozenset(labels.items())]


async def at_rest(pipeline: PipelineHarness) -> None:
    """Return when nothing is being worked or written."""

    async def is_at_rest() -> bool:
        queues = await pipeline.queue_depths()
        return not pipeline.waypost.busy and not any(any(queue.values()) for queue in queues.values())

    await patiently(is_at_rest)


async def test_what_the_server_itself_refuses_is_counted(pipeline: PipelineHarness) -> None:
    before = await figures_of(pipeline)
    async with pipeline.http.get(f"{pipeline.service_url}/healthz", headers={"X-Large": "a" * 100_000}) as answer:
        assert answer.status == 431

    after = await figures_of(pipeline)

    assert ("server_errors_total", frozenset({("status", "431")})) not in before
    assert figure(after, "server_errors_total", status="431") == 1
    assert figure(after, "connections") >= 1  # the one that asks


async def test_metrics_follow_a_message_through_every_stage(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    before = await figures_of(pipeline)
    told = len(pipeline.callbacks)
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    await at_rest(pipeline)

    after = await figures_of(pipeline)

    def grown(name: str, **labels: str) -> float:
        key = (name, frozenset(labels.items()))
        return after[key] - before.get(key, 0)

    callbacks = len(pipeline.callbacks) - told
    assert grown("requests_total", route=SEND, status="200") == 1
    assert grown("request_seconds_count", route=SEND) == 1
    assert grown("queue_jobs_total", queue="outbound", event="claimed") == 1
    assert grown("queue_jobs_total", queue="outbound", event="completed") == 1
    assert grown("operator_messages_total", outcome="sent", code="none") == 1
    assert grown("operator_call_seconds_count", outcome="sent") == 1
    assert grown("events_total", event="delivered") == 1
    assert grown("webhook_items_total") >= 2
    assert grown("callback_attempts_total", status="2xx", result="delivered") == callbacks
    assert grown("queue_jobs_total", queue="callbacks", event="completed") == callbacks
    assert grown("commit_items_sum") >= grown("commit_seconds_count") > 0
    assert figure(after, "queue_depth", queue="outbound", state="open") == 0
    assert figure(after, "queue_in_flight", queue="callbacks") == 0
    assert figure(after, "queue_leases", queue="callbacks") == 256
    assert figure(after, "ready", check="store_writes") == 1
    assert after["process_resident_memory_bytes", frozenset()] > 1_000_000


async def test_refusals_and_failed_attempts_are_told_apart(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    pipeline.sink.answers = in_turn(503, 200)

    refused = await pipeline.ask("POST", "/wa/api/v1/msg", {}, {"apikey": "wrong"})
    await pipeline.events_of(await pipeline.send_text(), until="delivered")

    figures = await figures_of(pipeline)
    assert figure(figures, "requests_total", route=SEND, status=str(refused.status)) == 1
    assert figure(figures, "errors_total", route=SEND, code="authentication_failed") == 1
    assert figure(figures, "callback_attempts_total", status="5xx", result="retried") == 1
    assert figure(figures, "queue_jobs_total", queue="callbacks", event="retried_later") == 1


async def test_what_waits_and_since_when_is_told_while_the_operator_is_away(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text()
    await patiently(pipeline.submission_attempts)

    figures = await figures_of(pipeline)

    assert message_id
    assert figure(figures, "operator_messages_total", outcome="unavailable", code="none") >= 1
    assert figure(figures, "queue_jobs_total", queue="outbound", event="retried_later") >= 1
    waiting = [figure(figures, "queue_depth", queue="outbound", state=state) for state in ("open", "in_flight")]
    assert sum(waiting) == 1
    assert figure(figures, "queue_oldest_due_seconds", queue="outbound") < 60


async def test_every_metric_is_in_the_table_with_its_labels_and_names_nobody(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.events_of(await pipeline.send_text(), until="delivered")

    answer = await pipeline.ask("GET", "/metrics")

    text = answer.raw.decode()
    shown = {one.name: one for one in parse(text) if one.name.startswith("waypost_")}
    rows = {f"waypost_{row.name.removesuffix('_total')}": row for row in METRICS}
    assert shown.keys() == rows.keys()
    for name, one in shown.items():
        assert one.type == rows[name].kind.value
        assert one.documentation == rows[name].meaning
        for sample in one.samples:
            assert set(sample.labels) - {"le"} == {"process", *rows[name].labels}
    secrets = (ANN, APP.phone_number, APP.name, APP.id, PARTNER.name, PARTNER.email)
    assert [secret for secret in secrets if secret in text] == []


# fmt: off
READERS: Final[tuple[tuple[dict[str, str], int], ...]] = (  # who asks, and what it is answered. Source: decision 0046
    #  headers                                                    status
    ({},                                                          200),  # this machine, for itself
    ({"Host": "waypost.example"},                                 401),  # a proxy on this machine, for somebody
    ({"X-Forwarded-For": "203.0.113.9"},                          401),
    ({"Forwarded": "for=203.0.113.9"},                            401),
    ({"Authorization": "Bearer read-only-token-of-32-characters-or-more"},                       200),
    ({"Host": "waypost.example", "Authorization": "Bearer read-only-token-of-32-characters-or-more"}, 200),
    ({"Host": "waypost.example", "Authorization": f"Bearer {ADMIN_TOKEN}"}, 200),
    ({"Authorization": "Bearer guessed"},                         401),  # a wrong one is wrong from here too
)
# fmt: on


async def test_metrics_are_for_this_machine_and_for_whoever_has_a_token(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(
        changes={"metrics_token": "read-only-token-of-32-characters-or-more"}
    )

    answers = [(await pipeline.ask("GET", "/metrics", headers=dict(asked))).status for asked, _ in READERS]

    assert answers == [status for _, status in READERS]


async def test_metrics_token_opens_nothing_else(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(
        changes={"metrics_token": "read-only-token-of-32-characters-or-more"}
    )

    answer = await pipeline.ask(
        "GET", "/admin/apps", headers={"Authorization": "Bearer read-only-token-of-32-characters-or-more"}
    )

    assert answer.status == 401


async def test_metrics_are_given_as_openmetrics_where_that_is_asked_for(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    accept = "application/openmetrics-text; version=1.0.0"

    answer = await pipeline.ask("GET", "/metrics", headers={"Accept": accept})

    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.raw.endswith(b"# EOF\n")


@pytest.mark.parametrize(("value", "at"), [(0.5, "1.0"), (1, "1.0"), (1.5, "2.0"), (9, "+Inf")])
def test_a_value_counts_in_its_bucket_and_in_all_above(value: float, at: str) -> None:
    spread = Histogram((1, 2))

    spread.add(value)

    counted: Mapping[str, float] = dict(cumulative_buckets(spread))
    names = list(counted)
    assert [counted[name] for name in names] == [float(names.index(name) >= names.index(at)) for name in names]
    assert spread.total == value


def test_names_of_metrics_carry_their_unit_and_kind() -> None:
    counters = {row.name for row in METRICS if row.kind is MetricKind.COUNTER}

    assert counters == {row.name for row in METRICS if row.name.endswith("_total")}
    assert len({row.name for row in METRICS}) == len(METRICS)
