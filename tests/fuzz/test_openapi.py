"""Requests that the OpenAPI document allows get the responses it documents: no 5xx, and no other status or schema."""

import json
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import checks as core_checks
from schemathesis.specs.openapi import checks

from tests.fuzz.running import RunningService, run_service
from tests.fuzz.strategies import declared_texts, json_texts
from tests.support.library_texts import LIBRARY_TEXTS
from tests.support.media_samples import sample
from tests.support.polling import HANGS_AFTER_S
from waypost.api.authorisation import Credential
from waypost.api.fields import FieldType, RequestField
from waypost.api.route import RouteRow
from waypost.api.routes import ROUTES
from waypost.assembly.dev import demo
from waypost.base.clock import DAY_MS, SystemClock
from waypost.domain.errors import ErrorCode
from waypost.domain.session_messages import SESSION_KINDS
from waypost.operations import openapi
from waypost.wire.errors import ERRORS

EXAMPLES = int(os.environ.get("WAYPOST_FUZZ_EXAMPLES", "5"))
IS_LONG = EXAMPLES > 10
SCHEMA = openapi.make_document("http://127.0.0.1:1")
KNOWN_VALUES: dict[str, tuple[Any, ...]] = {
    "id": (demo.TEMPLATE_ID, "1000000000000017"),
    "type": (*(wire_type for kind in SESSION_KINDS for wire_type in kind.wire_types), "QUICK_REPLY", "URL", "carousel", "template"),
    "link": ("https://media.example/a.png",),
    "url": ("https://shop.example/a",),
    "name": ("order_ready", "Ann"),
    "code": ("en_US",),
    "text": ("Hello", "Yes"),
}  # fmt: skip
UNREACHABLE_URL = "http://127.0.0.1:9/a.png"  # no request may leave this machine
DEFAULT_VALUES = {
    "source": demo.SOURCE,
    "src": demo.SOURCE,
    "src.name": demo.APP_NAME,
    "destination": demo.DESTINATION,
    **dict.fromkeys(("url", "file", "mediaUrl", "callbackUrl"), UNREACHABLE_URL),
}
ALWAYS_PRESENT = {"source", "src.name", "destination"}  # fields of a usual message, required or not
SPARE_TEMPLATE = {
    "category": "UTILITY", "templateType": "TEXT", "vertical": "v", "content": "Hello", "example": "Hello",
}  # fmt: skip
DELETES_APP = "DELETE /partner/app/{app_id}"
DECODED = {FieldType.JSON, FieldType.OBJECT, FieldType.FILE}  # the format of the document draws their values
UNIQUE_VALUES = {"elementName", "tag", "name"}  # must be unique
for _name, _strategy in json_texts(KNOWN_VALUES).items():
    schemathesis.openapi.format(_name, _strategy)

CHECKS: Any = checks
CORE_CHECKS: Any = core_checks
UNDECODED = (ErrorCode.UNREADABLE, ErrorCode.AUTHENTICATION_FAILED)
LIMITED_BY_OPERATOR = ("POST /partner/app/{app_id}/onboarding/register",)
"""Operations that the operator rejects as too many after ten calls (133016), whatever is sent."""

EXCLUDED: list[Any] = [
    CHECKS.positive_data_acceptance,  # this API sends 400 for many valid states
    CHECKS.negative_data_rejection,  # fields are read leniently: numbers as texts, booleans in any spelling
]


@dataclass
class FuzzTarget:
    service: RunningService
    http: requests.Session
    partner_token: str
    universal_token: str
    media_id: str = ""
    created: list[str] = field(default_factory=list[str])

    def upload(self) -> str:
        """Upload a picture, and return its media id."""
        response = self.http.post(
            f"{self.service.running.base_url}/partner/app/{demo.APP_ID}/media",
            files={"file": ("a.png", sample("png"), "image/png")},
            headers={"Authorization": self.service.running.variables["APP_TOKEN"]},
            timeout=HANGS_AFTER_S,
        )
        return str(response.json()["mediaId"])

    def restore_app_name(self) -> None:
        """Restore the app's name."""
        response = self.http.put(
            f"{self.service.running.base_url}/partner/app/{demo.APP_ID}",
            data={"name": demo.APP_NAME},
            headers={"Authorization": self.partner_token},
            timeout=HANGS_AFTER_S,
        )
        assert response.ok, response.text

    def paths(self, row: RouteRow) -> dict[str, str]:
        """Return values for a route's path: ids of existing objects, newly created where the route changes them."""
        values = {
            "app_id": demo.APP_ID,
            "template_id": demo.TEMPLATE_ID,
            "element_name": "order_ready",
            "media_id": self.media_id,
            "app_name": demo.APP_NAME,
            "message_id": demo.TEMPLATE_ID,
            "key_id": demo.TEMPLATE_ID,
            "phone": demo.DESTINATION,
            "partner_id": str(demo.PARTNER.id),
            "business_id": "1",
            "user_id": "1",
        }
        if row.name == DELETES_APP:  # every other route needs the demonstration's
            response = self.http.post(
                f"{self.service.running.base_url}/partner/app",
                data={"name": "SpareShop"},
                headers={"Authorization": self.partner_token},
                timeout=HANGS_AFTER_S,
            )
            values["app_id"] = response.json()["appId"]
        if row.method in ("PUT", "DELETE") and "/template" in row.path:
            name = f"spare_{len(self.created)}"
            self.created.append(name)
            spare = self._create("templates", SPARE_TEMPLATE | {"elementName": name})["template"]
            values |= {"template_id": spare["id"], "element_name": name}
        if row.method == "DELETE" and "{media_id}" in row.path:
            values["media_id"] = self.upload()
        if "{subscription_id}" in row.path:
            self._delete("subscription")  # requests before may have created as many as an app may have
            values["subscription_id"] = self._create(
                "subscription", {"modes": "READ", "tag": row.name, "url": "http://127.0.0.1:9/", "doCheck": "false"}
            )["subscription"]["id"]
        if "{flow_id}" in row.path:
            values["flow_id"] = self._create("flows", json={"name": row.name, "categories": ["OTHER"]})["id"]
        if "{configuration_name}" in row.path or "{payment_configuration}" in row.path:
            name = f"configuration_{len(self.created)}"
            self.created.append(name)
            self._create("payment/configuration", json={"configuration_name": name, "provider_name": "razorpay"})
            values |= {"configuration_name": name, "payment_configuration": name, "reference_id": "order-7"}
        if "{group_id}" in row.path:
            self._create("group", json={"messaging_product": "whatsapp", "subject": row.name[:128]})
            values["group_id"] = self._list("group?limit=100")["data"][-1]["id"]
        return {name: values[name] for name in openapi.path_parts(row)}

    def _list(self, path: str) -> Any:
        response = self.http.get(
            f"{self.service.running.base_url}/partner/app/{demo.APP_ID}/{path}",
            headers={"Authorization": self.service.running.variables["APP_TOKEN"]},
            timeout=HANGS_AFTER_S,
        )
        assert response.ok, response.text
        return response.json()

    def _delete(self, path: str) -> None:
        response = self.http.delete(
            f"{self.service.running.base_url}/partner/app/{demo.APP_ID}/{path}",
            headers={"Authorization": self.service.running.variables["APP_TOKEN"]},
            timeout=HANGS_AFTER_S,
        )
        assert response.ok, response.text

    def _create(self, path: str, form: Any = None, json: Any = None) -> Any:
        response = self.http.post(
            f"{self.service.running.base_url}/partner/app/{demo.APP_ID}/{path}",
            data=form,
            json=json,
            headers={"Authorization": self.service.running.variables["APP_TOKEN"]},
            timeout=HANGS_AFTER_S,
        )
        assert response.ok, response.text
        return response.json()

    def headers(self, row: RouteRow) -> dict[str, str]:
        """Return the demonstration's credential for a route."""
        variables = self.service.running.variables
        if row.name == DELETES_APP:
            return {"Authorization": self.partner_token}
        match row.credential:
            case Credential.NONE:
                return {}
            case Credential.PARTNER_TOKEN:
                return {"Authorization": self.partner_token}
            case Credential.UNIVERSAL_TOKEN:
                return {"Authorization": self.universal_token}
            case Credential.APP_TOKEN:
                return {"Authorization": variables["APP_TOKEN"]}
            case Credential.API_KEY:
                return {"apikey": variables["API_KEY"]}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Generator[FuzzTarget]:
    with run_service(tmp_path_factory.mktemp("fuzz")) as service, requests.Session() as http:
        response = http.post(
            f"{service.running.base_url}/partner/account/login",
            data={"email": demo.EMAIL, "password": demo.PASSWORD},
            timeout=HANGS_AFTER_S,
        )
        universal = http.post(
            f"{service.running.base_url}/admin/partners/{demo.PARTNER.id}/universal-tokens",
            json={"expires_on_ms": SystemClock().now_ms() + 30 * DAY_MS},
            headers={"Authorization": f"Bearer {service.running.variables['ADMIN_TOKEN']}"},
            timeout=HANGS_AFTER_S,
        )
        target = FuzzTarget(service, http, response.json()["token"], universal.json()["universal_token"])
        target.media_id = target.upload()
        yield target


@pytest.fixture(scope="module", autouse=True)
def summary(target: FuzzTarget) -> Generator[None]:
    """Print, per route, how many requests were decoded and how many were accepted."""
    yield
    outcomes = target.service.outcomes
    print(f"\n{'route':70} {'sent':>6} {'decoded':>8} {'accepted':>9}")
    for row in ROUTES:
        sent, decoded, accepted = count_requests(outcomes, row)
        print(f"{row.name:70} {sent:6} {decoded:8} {accepted:9}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", ROUTES, ids=lambda row: row.name)
def test_allowed_request_gets_a_documented_response(row: RouteRow, target: FuzzTarget) -> None:
    schema: Any = schemathesis.openapi.from_dict(SCHEMA)
    excluded = list(EXCLUDED)
    if row.credential is not Credential.NONE and ERRORS[row.wrong_credential].status == 400:  # documented so
        excluded.append(CHECKS.ignored_auth)
    if row.name in LIMITED_BY_OPERATOR:
        excluded.append(CORE_CHECKS.not_a_server_error)  # 503 is documented, and what it then is
    operation = schema[row.path][row.method]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(case=operation.as_strategy(path_parameters=target.paths(row)), data=st.data())
    def check(case: Any, data: st.DataObject) -> None:
        for sent, fields in ((case.body, row.fields), (case.query, row.query)):
            if isinstance(sent, dict):
                insert_valid_values(cast("dict[str, Any]", sent), fields, data)
        response = case.call_and_validate(
            base_url=target.service.running.base_url,
            session=target.http,
            headers=target.headers(row),
            excluded_checks=excluded,
            timeout=HANGS_AFTER_S,
        )
        assert not LIBRARY_TEXTS.search(f"{response.content.decode(errors='replace')}\n{response.headers}")
        if response.status_code < 300 and not IS_LONG:  # a credential that was required once is always required
            excluded.append(CHECKS.ignored_auth)

    check()
    if row.name == "PUT /partner/app/{app_id}":
        target.restore_app_name()  # messages name the app

    sent, decoded, _ = count_requests(target.service.outcomes, row)
    assert decoded * 10 >= sent


def insert_valid_values(body: dict[str, Any], declared_fields: Sequence[RequestField], data: st.DataObject) -> None:
    """Replace some values by those that their declaration names, so that requests reach the store, too."""
    fields = {field.name: field for field in declared_fields}
    if data.draw(st.integers(0, 3)) == 0:
        return
    whole = data.draw(st.booleans())
    for name, spec in fields.items():
        if name not in body and not (whole and (spec.required or name in ALWAYS_PRESENT)):
            continue
        declared = declared_texts(spec) if name not in DEFAULT_VALUES and spec.type not in DECODED else ()
        usual = data.draw(st.sampled_from(declared)) if declared else DEFAULT_VALUES.get(name, spec.example)
        usual = usual.replace("https://shop.example/a.png", UNREACHABLE_URL)
        if name in UNIQUE_VALUES:
            usual = data.draw(st.from_regex(r"[a-z][a-z_]{6,20}", fullmatch=True))
        if usual and (whole or data.draw(st.booleans())):
            body[name] = json.loads(usual) if spec.type is FieldType.OBJECT else usual
        elif whole and not spec.required:
            del body[name]


def count_requests(outcomes: Any, row: RouteRow) -> tuple[int, int, int]:
    """Return the numbers of a route's requests: sent, decoded and accepted."""
    own = {outcome: count for (name, outcome), count in outcomes.items() if name == row.name}
    sent = sum(own.values())
    undecoded = sum(own.get(error_code.value, 0) for error_code in UNDECODED)
    return sent, sent - undecoded, own.get("accepted", 0)
