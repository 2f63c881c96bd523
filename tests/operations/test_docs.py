"""The OpenAPI document and the pages of the API: complete, correct, and without network resources."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import requests

from tests.fuzz.running import RunningService, run_service
from tests.support.media_samples import sample
from tests.support.polling import HANGS_AFTER_S
from waypost.api.limits import RATES
from waypost.api.route import RouteRow
from waypost.api.routes import ROUTES
from waypost.operations import openapi
from waypost.operations.samples import LANGUAGES
from waypost.operations.try_form import make_try_form

COMMANDS = {  # each reads the sample from its standard input
    "curl": ("bash", "-e"),
    "Python": (sys.executable, "-W", "error", "-"),
    "Node": ("node", "--input-type=module", "-"),
    "PHP": ("php",),
}
ROUTES_WITH_SAMPLES = (
    ("POST", "/partner/account/login"),
    ("GET", "/partner/app/{app_id}/token"),
    ("POST", "/partner/app/{app_id}/templates"),
    ("GET", "/partner/app/{app_id}/templates"),
    ("POST", "/wa/api/v1/msg"),
    ("POST", "/wa/api/v1/template/msg"),
    ("POST", "/partner/app/{app_id}/v3/message"),
    ("POST", "/partner/app/{app_id}/media"),
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningService]:
    with run_service(tmp_path_factory.mktemp("docs")) as service:
        yield service


@pytest.fixture(scope="module")
def picture_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Serve a picture on this machine, and return its URL."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "a.png").write_bytes(sample("png"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/a.png"
        server.shutdown()


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_route_refers_to_rows_of_the_other_tables(row: RouteRow) -> None:
    assert set(openapi.path_parts(row)) <= set(openapi.PATH_PARTS)
    assert row.rate in RATES
    assert row.source


def test_fields_of_one_key_are_one_field() -> None:
    fields = {field for row in ROUTES for field in (*row.fields, *row.query)}

    assert len({field.key for field in fields}) == len(fields)


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


def test_document_cites_no_source_of_ours() -> None:
    """Citations of facts, ledger and decisions are for those who work on the service."""
    text = json.dumps(openapi.make_document("http://127.0.0.1:1"))

    assert re.findall(r".{0,40}(?:Source:|\(decision \d|\bfacts \d|\bledger \d).{0,40}", text) == []


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_every_route_has_a_page_with_its_fields(row: RouteRow, running: RunningService) -> None:
    page_url = f"{running.running.base_url}/docs/{openapi.operation_id(row)}"

    response = requests.get(page_url, timeout=HANGS_AFTER_S)

    assert response.status_code == 200
    assert row.path in response.text
    for field in (*row.fields, *row.query):
        assert f"<code>{field.name}</code>" in response.text


@pytest.mark.parametrize(
    "path", ["/docs", "/docs/post-wa-api-v1-msg", "/docs/style.css", "/docs/try.js", "/docs/find.js"]
)
def test_page_loads_no_external_resource(path: str, running: RunningService) -> None:
    response = requests.get(running.running.base_url + path, timeout=HANGS_AFTER_S)

    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert re.findall(r"""(?:src|href)=["'](?!/|#)[^"']*""", response.text) == []
    assert "@import" not in response.text


def test_unknown_page_is_404(running: RunningService) -> None:
    response = requests.get(f"{running.running.base_url}/docs/no-such-route", timeout=HANGS_AFTER_S)

    assert response.status_code == 404
    assert "No such operation" in response.text


def test_unknown_operation_names_similar_ones(running: RunningService) -> None:
    response = requests.get(f"{running.running.base_url}/docs/post-wa-api-v1-msgs", timeout=HANGS_AFTER_S)

    assert response.status_code == 404
    assert '<a href="/docs/post-wa-api-v1-msg">' in response.text
    assert "All operations" in response.text


def test_page_links_to_its_requests_in_the_console(running: RunningService) -> None:
    page = requests.get(f"{running.running.base_url}/docs/post-wa-api-v1-msg", timeout=HANGS_AFTER_S).text

    assert 'href="/requests?route=POST%20/wa/api/v1/msg"' in page


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_form_has_an_input_for_every_part_of_the_request(row: RouteRow) -> None:
    form = make_try_form(row)

    names = [(item.part, item.name) for item in form.inputs]
    assert len(names) == len(set(names))
    assert {name for part, name in names if part == "body"} == {field.name for field in row.fields}
    assert {name for part, name in names if part == "query"} == {field.name for field in row.query}
    assert {name for part, name in names if part == "path"} == set(openapi.path_parts(row))


@pytest.mark.parametrize("language", [language for language, _ in LANGUAGES])
@pytest.mark.parametrize(("method", "path"), ROUTES_WITH_SAMPLES)
def test_shown_sample_works(method: str, path: str, language: str, running: RunningService, picture_url: str) -> None:
    """Run the sample of a page, in its language, with the credentials of `waypost-dev.env`.

    Only the name of a new template differs, and the host of a picture.
    """
    command = COMMANDS[language]
    if shutil.which(command[0]) is None and not os.environ.get("CI"):
        pytest.skip(f"{command[0]} is not installed")
    [row] = [route for route in ROUTES if (route.method, route.path) == (method, path)]
    page_url = f"{running.running.base_url}/docs/{openapi.operation_id(row)}"
    page = requests.get(page_url, timeout=HANGS_AFTER_S).text
    [shown] = re.findall(rf"<summary>{language}</summary><pre>(.*?)</pre>", page, re.DOTALL)

    result = subprocess.run(
        command,
        input=html.unescape(shown)
        .replace("order_packed", f"order_packed_{language.lower()}")
        .replace("https://shop.example/a.png", picture_url),
        env=environment(running),
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert re.search(r"\b20[02]\b", result.stdout.splitlines()[0] if language != "curl" else "200"), result.stdout
    assert '"status":"error"' not in result.stdout
    assert result.stdout.strip()


def environment(running: RunningService) -> dict[str, str]:
    """Return the environment of a sample: each credential in its variable."""
    variables = running.running.variables
    login = requests.post(
        f"{running.running.base_url}/partner/account/login",
        data={"email": variables["EMAIL"], "password": variables["PASSWORD"]},
        timeout=HANGS_AFTER_S,
    )
    credentials = {"PARTNER_TOKEN": login.json()["token"], "APP_TOKEN": variables["APP_TOKEN"]}
    return {"PATH": os.environ["PATH"], "API_KEY": variables["API_KEY"], **credentials}
