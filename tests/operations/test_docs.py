"""The OpenAPI document and the pages of the API: complete, correct, and without network resources."""

import re
import shlex
import subprocess
from collections.abc import Generator

import pytest
import requests

from tests.fuzz.running import RunningService, run_service
from tests.support.polling import HANGS_AFTER_S
from waypost.api.limits.rate_limits import RATES
from waypost.api.request_fields import REQUEST_FIELDS
from waypost.api.response_schemas import RESPONSE_SCHEMAS
from waypost.api.route import RouteRow
from waypost.api.routes import ROUTES
from waypost.operations import openapi

ROUTES_WITH_SAMPLES = (
    ("POST", "/partner/account/login"),
    ("GET", "/partner/app/{app_id}/token"),
    ("POST", "/partner/app/{app_id}/templates"),
    ("GET", "/partner/app/{app_id}/templates"),
    ("POST", "/wa/api/v1/msg"),
    ("POST", "/wa/api/v1/template/msg"),
    ("POST", "/partner/app/{app_id}/v3/message"),
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningService]:
    with run_service(tmp_path_factory.mktemp("docs")) as service:
        yield service


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_route_refers_to_rows_of_the_other_tables(row: RouteRow) -> None:
    assert set(row.fields) | set(row.query) <= set(REQUEST_FIELDS)
    assert set(openapi.path_parts(row)) <= set(openapi.PATH_PARTS)
    assert row.rate in RATES
    assert row.response_schema in RESPONSE_SCHEMAS or not row.response_schema
    assert row.source


def test_every_field_and_response_schema_is_used() -> None:
    named = {name for row in ROUTES for name in (*row.fields, *row.query)}

    assert set(REQUEST_FIELDS) == named
    assert {row.response_schema for row in ROUTES if row.response_schema} == set(RESPONSE_SCHEMAS)


def test_document_names_every_route_once(running: RunningService) -> None:
    document = requests.get(f"{running.running.base_url}/openapi.json", timeout=HANGS_AFTER_S).json()

    operations = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]
    assert sorted(operations) == sorted((row.method, row.path) for row in ROUTES)
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


def test_document_says_that_a_service_limits_no_requests() -> None:
    document = openapi.make_document("http://127.0.0.1:1", rates_on=False)

    limit = "This service limits no requests; documented: 1 request in 3600 s per app."
    assert document["paths"]["/partner/app/{app_id}/template/sync"]["get"]["description"].endswith(limit)


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_every_route_has_a_page_with_its_fields(row: RouteRow, running: RunningService) -> None:
    page_url = f"{running.running.base_url}/docs/{openapi.operation_id(row)}"

    response = requests.get(page_url, timeout=HANGS_AFTER_S)

    assert response.status_code == 200
    assert row.path in response.text
    for name in openapi.fields_of((*row.fields, *row.query)):
        assert f"<code>{name}</code>" in response.text


@pytest.mark.parametrize("path", ["/docs", "/docs/post-wa-api-v1-msg", "/docs/style.css"])
def test_page_loads_no_external_resource(path: str, running: RunningService) -> None:
    response = requests.get(running.running.base_url + path, timeout=HANGS_AFTER_S)

    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert re.findall(r"""(?:src|href)=["'](?!/|#)[^"']*""", response.text) == []
    assert "@import" not in response.text


def test_unknown_page_is_404(running: RunningService) -> None:
    response = requests.get(f"{running.running.base_url}/docs/no-such-route", timeout=HANGS_AFTER_S)

    assert response.status_code == 404
    assert "No such endpoint" in response.text


@pytest.mark.parametrize(("method", "path"), ROUTES_WITH_SAMPLES)
def test_shown_command_works(method: str, path: str, running: RunningService) -> None:
    """Run the sample at the end of a page with the credentials of `waypost-dev.env`."""
    [row] = [route for route in ROUTES if (route.method, route.path) == (method, path)]
    page_url = f"{running.running.base_url}/docs/{openapi.operation_id(row)}"
    page = requests.get(page_url, timeout=HANGS_AFTER_S).text
    shown = page.split("<h2>Try it</h2>")[1].split("<pre>")[1].split("</pre>")[0]
    for entity, char in (("&#39;", "'"), ("&#34;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        shown = shown.replace(entity, char)
    variables = running.running.variables
    login = requests.post(
        f"{running.running.base_url}/partner/account/login",
        data={"email": variables["EMAIL"], "password": variables["PASSWORD"]},
        timeout=HANGS_AFTER_S,
    )
    for name, value in (
        ("<partner token>", login.json()["token"]),
        ("<app token>", variables["APP_TOKEN"]),
        ("<API key>", variables["API_KEY"]),
    ):
        shown = shown.replace(name, value)
    arguments = shlex.split(shown.replace("\\\n", " "))

    result = subprocess.run(
        [*arguments, "-s", "-o", "/dev/stderr", "-w", "%{http_code}"],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=True,
    )

    assert result.stdout == "200", result.stderr
