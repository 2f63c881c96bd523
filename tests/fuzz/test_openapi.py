"""Whatever the OpenAPI document allows is answered as the document says: no 5xx, no status or shape it does not name."""

import json
import os
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

from tests.fuzz.running import Served, served
from tests.fuzz.strategies import json_texts
from tests.support.media_samples import sample
from tests.support.waiting import HANGS_AFTER_S
from waypost.api.auth.credentials import Credential
from waypost.api.request_fields import FieldType
from waypost.api.route import RouteRow
from waypost.api.routes import ROUTES
from waypost.assembly.dev import demo
from waypost.domain.errors import ErrorCode
from waypost.domain.session_messages import SESSION_KINDS
from waypost.operations import openapi

EXAMPLES = int(os.environ.get("WAYPOST_FUZZ_EXAMPLES", "5"))
IS_LONG = EXAMPLES > 10
SCHEMA = openapi.make_document("http://127.0.0.1:1")
KNOWN: dict[str, tuple[Any, ...]] = {
    "id": (demo.TEMPLATE_ID, "1000000000000017"),
    "type": (*(one for kind in SESSION_KINDS for one in kind.wire_types), "QUICK_REPLY", "URL", "carousel", "template"),
    "link": ("https://media.example/a.png",),
    "url": ("https://shop.example/a",),
    "name": ("order_ready", "Ann"),
    "code": ("en_US",),
    "text": ("Hello", "Yes"),
}  # fmt: skip
NOWHERE = "http://127.0.0.1:9/a.png"  # nothing may go to an address beyond this machine
USUAL = {
    "source": demo.SOURCE,
    "src": demo.SOURCE,
    "src.name": demo.APP_NAME,
    "destination": demo.DESTINATION,
    **dict.fromkeys(("url", "file", "mediaUrl", "callbackUrl"), NOWHERE),
}
ALWAYS = {"source", "src.name", "destination"}  # what a sensible message has, required or not
SPARE = {
    "category": "UTILITY", "templateType": "TEXT", "vertical": "v", "content": "Hello", "example": "Hello",
}  # fmt: skip
FRESH = {"elementName", "tag", "name"}  # must be new each time
for _name, _strategy in json_texts(KNOWN).items():
    schemathesis.openapi.format(_name, _strategy)

CHECKS: Any = checks
UNDECODED = (ErrorCode.UNREADABLE, ErrorCode.AUTHENTICATION_FAILED)
EXCLUDED: list[Any] = [
    CHECKS.positive_data_acceptance,  # 400 is this API's word for many true things
    CHECKS.negative_data_rejection,  # fields are read leniently: numbers as texts, booleans in any spelling
]


@dataclass
class World:
    service: Served
    http: requests.Session
    partner_token: str
    media_id: str = ""
    made: list[str] = field(default_factory=list[str])

    def upload(self) -> str:
        """A picture; gives its media id."""
        answer = self.http.post(
            f"{self.service.running.base_url}/partner/app/{demo.APP_ID}/media",
            files={"file": ("a.png", sample("png"), "image/png")},
            headers={"Authorization": self.service.running.variables["APP_TOKEN"]},
            timeout=HANGS_AFTER_S,
        )
        return str(answer.json()["mediaId"])

    def name_again(self) -> None:
        """Give the app its name back."""
        answer = self.http.put(
            f"{self.service.running.base_url}/partner/app/{demo.APP_ID}",
            data={"name": demo.APP_NAME},
            headers={"Authorization": self.partner_token},
            timeout=HANGS_AFTER_S,
        )
        assert answer.ok, answer.text

    def paths(self, row: RouteRow) -> dict[str, str]:
        """What stands in a route's path: things that are there, made for each route anew."""
        found = {
            "app_id": demo.APP_ID,
            "template_id": demo.TEMPLATE_ID,
            "element_name": "order_ready",
            "media_id": self.media_id,
            "app_name": demo.APP_NAME,
            "message_id": demo.TEMPLATE_ID,
            "key_id": demo.TEMPLATE_ID,
        }
        if row.method in ("PUT", "DELETE") and "/template" in row.path:
            name = f"spare_{len(self.made)}"
            self.made.append(name)
            spare = self._make("templates", SPARE | {"elementName": name})["template"]
            found |= {"template_id": spare["id"], "element_name": name}
        if row.method == "DELETE" and "{media_id}" in row.path:
            found["media_id"] = self.upload()
        if "{subscription_id}" in row.path:
            found["subscription_id"] = self._make(
                "subscription", {"modes": "READ", "tag": row.name, "url": "http://127.0.0.1:9/", "doCheck": "false"}
            )["subscription"]["id"]
        if "{flow_id}" in row.path:
            found["flow_id"] = self._make("flows", json={"name": row.name, "categories": ["OTHER"]})["id"]
        return {name: found[name] for name in openapi.path_parts(row)}

    def _make(self, what: str, form: Any = None, json: Any = None) -> Any:
        answer = self.http.post(
            f"{self.service.running.base_url}/partner/app/{demo.APP_ID}/{what}",
            data=form,
            json=json,
            headers={"Authorization": self.service.running.variables["APP_TOKEN"]},
            timeout=HANGS_AFTER_S,
        )
        assert answer.ok, answer.text
        return answer.json()

    def headers(self, row: RouteRow) -> dict[str, str]:
        """The demonstration's credential for a route."""
        variables = self.service.running.variables
        match row.credential:
            case Credential.NONE:
                return {}
            case Credential.PARTNER_TOKEN:
                return {"Authorization": self.partner_token}
            case Credential.APP_TOKEN:
                return {"Authorization": variables["APP_TOKEN"]}
            case Credential.API_KEY:
                return {"apikey": variables["API_KEY"]}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    with served(tmp_path_factory.mktemp("fuzz")) as service, requests.Session() as http:
        answer = http.post(
            f"{service.running.base_url}/partner/account/login",
            data={"email": demo.EMAIL, "password": demo.PASSWORD},
            timeout=HANGS_AFTER_S,
        )
        world = World(service, http, answer.json()["token"])
        world.media_id = world.upload()
        yield world


@pytest.fixture(scope="module", autouse=True)
def told(world: World) -> Generator[None]:
    """Prints, per route, how many requests got past decoding and how many were accepted."""
    yield
    answered = world.service.answered
    print(f"\n{'route':70} {'asked':>6} {'decoded':>8} {'accepted':>9}")
    for row in ROUTES:
        asked, decoded, accepted = counts(answered, row)
        print(f"{row.name:70} {asked:6} {decoded:8} {accepted:9}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_what_the_document_allows_is_answered_as_it_says(row: RouteRow, world: World) -> None:
    schema: Any = schemathesis.openapi.from_dict(SCHEMA)
    excluded = list(EXCLUDED)
    operation = schema[row.path][row.method]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(case=operation.as_strategy(path_parameters=world.paths(row)), data=st.data())
    def answers(case: Any, data: st.DataObject) -> None:
        body: Any = case.body
        if isinstance(body, dict):
            sensible(cast("dict[str, Any]", body), row, data)
        answer = case.call_and_validate(
            base_url=world.service.running.base_url,
            session=world.http,
            headers=world.headers(row),
            excluded_checks=excluded,
            timeout=HANGS_AFTER_S,
        )
        if answer.status_code < 300 and not IS_LONG:  # a credential that was asked for once is asked for always
            excluded.append(CHECKS.ignored_auth)

    answers()
    if row.name == "PUT /partner/app/{app_id}":
        world.name_again()  # messages name the app

    asked, decoded, _ = counts(world.service.answered, row)
    assert decoded * 10 >= asked


def sensible(body: dict[str, Any], row: RouteRow, data: st.DataObject) -> None:
    """Put sensible values in the place of some, so that requests get as far as the store, too."""
    fields = openapi.fields_of(row.fields)
    if data.draw(st.integers(0, 3)) == 0:
        return
    whole = data.draw(st.booleans())
    for name, one in fields.items():
        if name not in body and not (whole and (one.required or name in ALWAYS)):
            continue
        usual = USUAL.get(name, one.example).replace("https://shop.example/a.png", NOWHERE)
        if name in FRESH:
            usual = data.draw(st.from_regex(r"[a-z][a-z_]{6,20}", fullmatch=True))
        if usual and (whole or data.draw(st.booleans())):
            body[name] = json.loads(usual) if one.type is FieldType.OBJECT else usual
        elif whole and not one.required:
            del body[name]


def counts(answered: Any, row: RouteRow) -> tuple[int, int, int]:
    """Of a route: how many requests it was asked, got past decoding, and accepted."""
    mine = {outcome: count for (name, outcome), count in answered.items() if name == row.name}
    asked = sum(mine.values())
    undecoded = sum(mine.get(reason.value, 0) for reason in UNDECODED)
    return asked, asked - undecoded, mine.get("accepted", 0)
