"""The document and the pages of the API: whole, true, and with nothing from the network."""

import re
import shlex
import subprocess
from collections.abc import Generator

import pytest
import requests

from tests.fuzz.running import Served, served
from tests.support.waiting import HANGS_AFTER_S
from waypost.api.limits.rate_limits import RATES
from waypost.api.request_fields import REQUEST_FIELDS
from waypost.api.response_schemas import RESPONSE_SCHEMAS
from waypost.api.route import RouteRow
from waypost.api.routes import ROUTES
from waypost.operations import openapi

TRIED = (
    ("POST", "/partner/account/login"),
    ("GET", "/partner/app/{app_id}/token"),
    ("POST", "/partner/app/{app_id}/templates"),
    ("GET", "/partner/app/{app_id}/templates"),
    ("POST", "/wa/api/v1/msg"),
    ("POST", "/wa/api/v1/template/msg"),
    ("POST", "/partner/app/{app_id}/v3/message"),
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("docs")) as service:
        yield service


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_row_names_rows_of_the_other_tables(row: RouteRow) -> None:
    assert set(row.fields) | set(row.query) <= set(REQUEST_FIELDS)
    assert set(openapi.path_parts(row)) <= set(openapi.PATH_PARTS)
    assert row.rate in RATES
    assert row.response_schema in RESPONSE_SCHEMAS or not row.response_schema
    assert row.source


def test_every_row_of_fields_and_shapes_is_used() -> None:
    named = {name for row in ROUTES for name in (*row.fields, *row.query)}

    assert set(REQUEST_FIELDS) == named
    assert {row.response_schema for row in ROUTES if row.response_schema} == set(RESPONSE_SCHEMAS)


def test_document_names_every_route_once(running: Served) -> None:
    document = requests.get(f"{running.running.base_url}/openapi.json", timeout=HANGS_AFTER_S).json()

    operations = [(method.upper(), path) for path, methods in document["paths"].items() for method in methods]
    assert sorted(operations) == sorted((row.method, row.path) for row in ROUTES)
    ids = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_every_route_has_a_page_that_says_what_it_takes(row: RouteRow, running: Served) -> None:
    address = f"{running.running.base_url}/docs/{openapi.operation_id(row)}"

    answer = requests.get(address, timeout=HANGS_AFTER_S)

    assert answer.status_code == 200
    assert row.path in answer.text
    for name in openapi.fields_of((*row.fields, *row.query)):
        assert f"<code>{name}</code>" in answer.text


@pytest.mark.parametrize("path", ["/docs", "/docs/post-wa-api-v1-msg", "/docs/style.css"])
def test_page_takes_nothing_from_elsewhere(path: str, running: Served) -> None:
    answer = requests.get(running.running.base_url + path, timeout=HANGS_AFTER_S)

    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert re.findall(r"""(?:src|href)=["'](?!/|#)[^"']*""", answer.text) == []
    assert "@import" not in answer.text


def test_page_that_is_not_there_says_so(running: Served) -> None:
    answer = requests.get(f"{running.running.base_url}/docs/no-such-route", timeout=HANGS_AFTER_S)

    assert answer.status_code == 404
    assert "No such endpoint" in answer.text


@pytest.mark.parametrize(("method", "path"), TRIED)
def test_shown_command_works(method: str, path: str, running: Served) -> None:
    """The sample at the end of a page, with the credentials of `waypost-dev.env` put in."""
    [row] = [one for one in ROUTES if (one.method, one.path) == (method, path)]
    address = f"{running.running.base_url}/docs/{openapi.operation_id(row)}"
    page = requests.get(address, timeout=HANGS_AFTER_S).text
    shown = page.split("<h2>Try it</h2>")[1].split("<pre>")[1].split("</pre>")[0]
    for sign, char in (("&#39;", "'"), ("&#34;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        shown = shown.replace(sign, char)
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
    words = shlex.split(shown.replace("\\\n", " "))

    told = subprocess.run(
        [*words, "-s", "-o", "/dev/stderr", "-w", "%{http_code}"],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=True,
    )

    assert told.stdout == "200", told.stderr
