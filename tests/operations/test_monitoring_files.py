"""The dashboard and the alerts: every selector in them finds samples of a running service."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.docs.repository import ROOT
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.api.routes import ROUTES
from waypost.operations.metrics import METRICS, MetricKind

DASHBOARD: Final = json.loads((ROOT / "deploy" / "grafana" / "waypost.json").read_text(encoding="utf-8"))
ALERTS: Final[list[dict[str, Any]]] = yaml.safe_load(
    (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
)["groups"][0]["rules"]
PAGE: Final = (ROOT / "docs" / "how-to" / "respond-to-alerts.md").read_text(encoding="utf-8")

OF_PROMETHEUS: Final = {"job", "instance"}
"""Labels that Prometheus adds to each sample."""
SELECTOR: Final = re.compile(r"\b((?:waypost|process)_[a-z_]+|up)\b(?:\{([^}]*)\})?")
MATCHER: Final = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
GROUPING: Final = re.compile(r"\bby \(([\w, ]+)\)")

Samples = dict[str, list[dict[str, str]]]


def dashboard_expressions() -> Iterator[str]:
    """Yield the expression of every panel."""
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


EXPRESSIONS: Final = [*dashboard_expressions(), *(rule["expr"] for rule in ALERTS)]


def matches(labels: dict[str, str], matchers: list[tuple[str, str, str]]) -> bool:
    """True if the labels of a sample fulfil every matcher, as Prometheus reads it."""
    for name, operator, value in matchers:
        is_equal = labels.get(name, "") == value
        fits = bool(re.fullmatch(value, labels.get(name, ""))) if "~" in operator else is_equal
        if fits is operator.startswith("!"):
            return False
    return True


@pytest.fixture
async def samples(make_pipeline: Any) -> Samples:
    """Return the labels of every sample of a service that has sent messages, by metric."""
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.events_of(await pipeline.send_text(), until="delivered")
    async with pipeline.http.get(f"{pipeline.service_url}/healthz", headers={"X-Large": "a" * 100_000}) as response:
        assert response.status == 431
    await pipeline.send_request("POST", "/wa/api/v1/msg", {}, {"apikey": "wrong"})
    await pipeline.close_operator()
    await pipeline.send_text()
    await poll_until(pipeline.submission_attempts)
    text = (await pipeline.send_request("GET", "/metrics")).raw.decode()
    found: Samples = {"up": [{}]}
    for family in parse(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(dict(sample.labels))
    return found


async def test_every_selector_finds_samples_of_a_running_service(samples: Samples) -> None:
    empty: list[str] = []
    for expression in EXPRESSIONS:
        for metric, inside in SELECTOR.findall(expression):
            matchers = [found for found in MATCHER.findall(inside) if found[0] not in OF_PROMETHEUS]
            # 429, open circuits and waits need more traffic than this; their labels are held by the test below.
            rare = metric == "waypost_queue_waiting_groups" or (
                metric != "waypost_queue_depth" and any(found[2] in {"429", "open"} for found in matchers)
            )
            if not rare and not any(matches(labels, matchers) for labels in samples.get(metric, ())):
                empty.append(f"{metric}{{{inside}}}")

    assert empty == []
    assert len(EXPRESSIONS) > 40


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_and_label_is_in_the_table(expression: str) -> None:
    rows = {
        f"waypost_{row.name}{end}": {"process", *row.labels, *({"le"} if end == "_bucket" else ())}
        for row in METRICS
        for end in (("_bucket", "_sum", "_count") if row.kind is MetricKind.HISTOGRAM else ("",))
    }
    selectors = SELECTOR.findall(expression)
    labels = {metric: rows.get(metric, {"process"}) | OF_PROMETHEUS for metric, _ in selectors}

    assert selectors
    assert {metric for metric, _ in selectors if metric.startswith("waypost_")} <= rows.keys()
    assert [
        name for metric, inside in selectors for name, *_ in MATCHER.findall(inside) if name not in labels[metric]
    ] == []
    grouped = {name.strip() for names in GROUPING.findall(expression) for name in names.split(",")}
    assert grouped <= {name for names in labels.values() for name in names}


def test_routes_that_accept_messages_are_those_of_the_expressions() -> None:
    [pattern] = {found for expression in EXPRESSIONS for found in re.findall(r'route=~"([^"]+)"', expression)}

    counted = {row.name for row in ROUTES if re.fullmatch(pattern, row.name)}

    assert counted == {row.name for row in ROUTES if row.method == "POST" and row.endpoint.__name__.startswith("send_")}


def test_panels_have_ids_places_and_variables_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]

    assert len({panel["id"] for panel in panels}) == len(set(places)) == len(panels)
    assert {panel["datasource"]["uid"] for panel in panels if panel["type"] != "row"} == {"${datasource}"}
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource", "job", "instance"]


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_alert_says_what_happens_and_links_to_what_to_do(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")

    assert page == "docs/how-to/respond-to-alerts.md"
    assert anchor == rule["alert"].lower()
    assert f"\n## {rule['alert']}\n" in PAGE
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")
