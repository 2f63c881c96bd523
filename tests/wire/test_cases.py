"""Responses of the APIs, case by case; each file under `cases` cites the source of its statements."""

import functools
import re
from typing import TYPE_CHECKING, Final

import jsonschema_rs
import pytest

from tests.support.wire_cases import (
    Case,
    differences,
    filled,
    form_pairs,
    read_cases,
    text_differences,
    uses_another_partner,
    value_at,
)
from tests.support.wire_partners import UPLOADS
from waypost.api.route import RouteRow, error_codes_of
from waypost.api.routes import ROUTES
from waypost.domain.app import Hosting
from waypost.domain.errors import ErrorCode
from waypost.domain.templates.rules import TEMPLATE_RULES, TemplateRule, find_broken_rule
from waypost.wire.errors import ERRORS
from waypost.wire.forms import Form
from waypost.wire.templates.drafts import read_draft

if TYPE_CHECKING:
    from tests.wire.conftest import WireService, WireServices

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES: Final = read_cases()
CREATE_PATHS: Final = {
    "/partner/app/{app_id}/templates": Hosting.CLOUD,
    "/partner/app/{other_second_app_id}/templates": Hosting.ON_PREMISES,
}
"""The paths to which cases post drafts, and the channel API variant of the app."""


@pytest.mark.parametrize("name", CASES)
async def test_response_is_the_one_that_the_case_expects(name: str, services: "WireServices") -> None:
    case = CASES[name]
    async with services.service_for(case) as service:
        await check(case, service)


async def check(case: Case, service: "WireService") -> None:
    values = await service.values(with_other=uses_another_partner(case))
    for step in case.before:
        if step.hangs_up_at is not None:
            await service.hang_up(step, values, at=step.hangs_up_at)
            continue
        body: object = None
        for _ in range(step.times):
            response = await service.send_request(step, values)
            assert response.status == step.status, response.raw
            body = response.body
        values |= {name: str(value_at(body, path)) for name, path in step.keep.items()}

    response = await service.send_request(case.request, values)

    expected = case.response
    assert response.status == expected.status, response.raw
    problems: list[str] = []
    if expected.text is not None:
        assert response.raw.decode() == filled(expected.text, values)
    if expected.body is not None:
        problems += differences(filled(expected.body, values), response.body, whole=True)
    if expected.body_has is not None:
        problems += differences(filled(expected.body_has, values), response.body, whole=False)
    problems += text_differences(filled(expected.json_texts, values), response.body)
    for header, value in filled(expected.headers, values).items():
        problems += differences(value, response.headers.get(header, "(absent)"), whole=True, at=header)
    problems += [f"{header} is present" for header in expected.absent_headers if header in response.headers]
    assert not problems, response.raw
    assert_matches_error_row(case, response.body)
    assert_is_documented(case, response.body)


@pytest.mark.parametrize("error_code", ErrorCode)
async def test_every_row_of_the_error_table_has_a_case(error_code: ErrorCode) -> None:
    assert any(case.error_code == error_code.name for case in CASES.values())


@pytest.mark.parametrize("rule", TEMPLATE_RULES, ids=lambda rule: rule.id)
async def test_every_row_of_the_rule_table_has_a_case_that_breaks_it_first(rule: TemplateRule) -> None:
    """Two cases for an operator rule: the strict service rejects the draft, and the other accepts it."""
    breaking = breaking_first().get(rule.id, [])

    assert any(case.error_code == rule.error_code.name for case in breaking)
    if rule.is_operator_rule:
        assert {case.strict for case in breaking} == {True, False}


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.path}")
async def test_every_route_has_a_case_of_each_status_it_may_return(row: RouteRow) -> None:
    covered = {case.response.status for case in CASES.values() if is_route_of(row, case)}

    assert covered >= set(row.statuses)
    assert covered & {401, 403, ERRORS[row.wrong_credential].status}


def assert_matches_error_row(case: Case, body: object) -> None:
    """Assert that a case with an error code expects the status and text of its row."""
    if case.error_code is None:
        return
    row = ERRORS[ErrorCode[case.error_code]]
    assert case.response.status == row.status
    if row.text is not None:
        assert body == {"status": "error", "message": {"message": row.text} if row.nested else row.text}


def assert_is_documented(case: Case, body: object) -> None:
    """Assert that the response has the schema of its route, and that the error code is one of the route's."""
    row = route_of(case)
    if row is None:
        return
    if case.response.status < 300 and body is not None:
        assert row.response_schema is not None
        assert list(jsonschema_rs.iter_errors(row.response_schema, body)) == []
    if case.error_code is not None:
        assert ErrorCode[case.error_code] in error_codes_of(row)


def route_of(case: Case) -> RouteRow | None:
    """Return the route of a case's request: the matching one with the fewest parameters."""
    matching = [row for row in ROUTES if is_route_of(row, case)]
    return min(matching, key=lambda row: row.path.count("{"), default=None)


def is_route_of(row: RouteRow, case: Case) -> bool:
    """True if a case's request matches a route."""
    path = case.request.path.partition("?")[0]
    return case.request.method == row.method and pattern_of(row.path).fullmatch(path) is not None


@functools.cache
def pattern_of(path: str) -> re.Pattern[str]:
    """Return the pattern that a route's paths match."""
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))


UPLOAD_IDS = {f"{kind}_id": "1" for kind in UPLOADS}


@functools.cache
def breaking_first() -> dict[str, list[Case]]:
    """Return, by rule, the cases that break it before any other."""
    found: dict[str, list[Case]] = {}
    for case in CASES.values():
        rule = broken_by(case)
        if rule is not None:
            found.setdefault(rule.id, []).append(case)
    return found


def broken_by(case: Case) -> TemplateRule | None:
    """Return the first rule that the draft of a case breaks; None if it breaks none or creates no template."""
    hosting = CREATE_PATHS.get(case.request.path)
    if hosting is None or not case.request.form:
        return None
    if case.response.status not in (200, 400) or case.error_code == "UNREADABLE":
        return None
    try:
        draft = read_draft(Form(form_pairs(filled(case.request.form, UPLOAD_IDS))))
    except Exception:  # noqa: BLE001  unreadable, or needs placeholders
        return None
    broken = find_broken_rule(draft, strict=True, hosting=hosting)
    return None if broken is None else broken[0]
