"""Requests for operations by name, as the commands, the tools and the client make them."""

import re
from typing import Any, Final

import pytest

from tests.docs.repository import ROOT
from waypost.client.operations import OperationRequest, find_operation, operation_request

REQUESTS: Final[tuple[tuple[str, dict[str, Any], OperationRequest], ...]] = (
    ("GET /admin/partners", {}, OperationRequest("GET", "/admin/partners", None)),
    (
        "GET /admin/requests/{request_id}",
        {"request_id": "a/b ?"},
        OperationRequest("GET", "/admin/requests/a%2Fb%20%3F", None),
    ),
    (
        "DELETE /admin/partners/{partner_id}/client-secrets/{secret_id}",
        {"partner_id": 1, "secret_id": "s", "keep_tokens": True},
        OperationRequest("DELETE", "/admin/partners/1/client-secrets/s?keep_tokens=true", None),
    ),
    ("GET /admin/audit", {"actor": None, "limit": 5}, OperationRequest("GET", "/admin/audit?limit=5", None)),
    (
        "PUT /admin/partners/{partner_id}/quotas",
        {"partner_id": 1, "message_quota": None},
        OperationRequest("PUT", "/admin/partners/1/quotas", {"message_quota": None}),
    ),
    (
        "POST /control/faults",  # its body is read as a whole, so any field is sent
        {"on": "call", "what": {"fail": 1}},
        OperationRequest("POST", "/control/faults", {"on": "call", "what": {"fail": 1}}),
    ),
)
NAMED: Final = re.compile(r'"((?:GET|POST|PUT|DELETE) /(?:admin|control)/[^"]*)"')
MIN_NAMED: Final = 40


@pytest.mark.parametrize(("name", "values", "request_"), REQUESTS, ids=[row[0] for row in REQUESTS])
def test_values_are_in_path_query_and_body(name: str, values: dict[str, Any], request_: OperationRequest) -> None:
    assert operation_request(name, values) == request_


def test_name_that_the_declaration_does_not_have_is_an_error() -> None:
    with pytest.raises(TypeError, match="has no field most"):
        operation_request("GET /admin/audit", {"most": 5})
    with pytest.raises(LookupError):
        operation_request("GET /admin/partners/{partner_id}/quotas", {})


def test_every_operation_that_a_command_or_a_tool_names_is_declared() -> None:
    """A command that is seldom run would fail only then."""
    files = [*(ROOT / "src/waypost/cli").rglob("*.py"), *(ROOT / "src/waypost/client").rglob("*.py")]
    names = {name for file in files for name in NAMED.findall(file.read_text(encoding="utf-8"))}

    for name in names:
        find_operation(name)
    assert len(names) > MIN_NAMED
