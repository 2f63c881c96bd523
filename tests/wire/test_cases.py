"""What the doors answer, case by case; each file under `cases` cites the statement it holds."""

import functools
import re
from typing import TYPE_CHECKING, Final

import jsonschema_rs
import pytest

from tests.support.wire_cases import (
    Case,
    at_place,
    differences,
    differing_texts,
    filled,
    form_pairs,
    names_another,
    read_cases,
)
from waypost.api.response_schemas import RESPONSE_SCHEMAS
from waypost.api.route import RouteRow, error_codes_of
from waypost.api.routes import ROUTES
from waypost.domain.app import Hosting
from waypost.domain.errors import ErrorCode
from waypost.domain.templates.rules import TEMPLATE_RULES, TemplateRule, find_broken_rule
from waypost.wire.errors import ERRORS
from waypost.wire.forms import Form
from waypost.wire.templates.drafts import read_draft

if TYPE_CHECKING:
    from tests.wire.conftest import World, Worlds

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES: Final = read_cases()
CREATES: Final = {
    "/partner/app/{app_id}/templates": Hosting.CLOUD,
    "/partner/app/{other_second_app_id}/templates": Hosting.ON_PREMISES,
}
"""Where the drafts of cases go, and which variant of the channel API the app there is on."""


@pytest.mark.parametrize("name", CASES)
async def test_door_answers_as_the_case_says(name: str, worlds: "Worlds") -> None:
    case = CASES[name]
    async with worlds.of(case) as world:
        await check(case, world)


async def check(case: Case, world: "World") -> None:
    values = await world.values(with_other=names_another(case))
    for step in case.before:
        if step.hangs_up_at is not None:
            await world.hang_up(step, values, at=step.hangs_up_at)
            continue
        body: object = None
        for _ in range(step.times):
            answer = await world.ask(step, values)
            assert answer.status == step.status, answer.raw
            body = answer.body
        values |= {name: str(at_place(body, place)) for name, place in step.keep.items()}

    answer = await world.ask(case.request, values)

    expected = case.response
    assert answer.status == expected.status, answer.raw
    told: list[str] = []
    if expected.text is not None:
        assert answer.raw.decode() == filled(expected.text, values)
    if expected.body is not None:
        told += differences(filled(expected.body, values), answer.body, whole=True)
    if expected.body_has is not None:
        told += differences(filled(expected.body_has, values), answer.body, whole=False)
    told += differing_texts(filled(expected.json_texts, values), answer.body)
    for header, value in filled(expected.headers, values).items():
        told += differences(value, answer.headers.get(header, "(absent)"), whole=True, at=header)
    told += [f"{header} is there" for header in expected.absent_headers if header in answer.headers]
    assert not told, answer.raw
    assert_is_its_row(case, answer.body)
    assert_is_as_documented(case, answer.body)


@pytest.mark.parametrize("reason", ErrorCode)
async def test_every_row_of_the_error_table_has_a_case(reason: ErrorCode) -> None:
    assert any(case.reason == reason.name for case in CASES.values())


@pytest.mark.parametrize("rule", TEMPLATE_RULES, ids=lambda rule: rule.id)
async def test_every_row_of_the_rule_table_has_a_case_that_breaks_it_first(rule: TemplateRule) -> None:
    """Of both kinds where it is the operator's: strict refuses it, and otherwise it is taken."""
    breaking = breaking_first().get(rule.id, [])

    assert any(case.reason == rule.error_code.name for case in breaking)
    if rule.is_operator_rule:
        assert {case.strict for case in breaking} == {True, False}


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.path}")
async def test_every_route_has_a_case_of_each_answer_it_may_give(row: RouteRow) -> None:
    given = {case.response.status for case in CASES.values() if is_route_of(row, case)}

    assert given >= set(row.statuses)
    assert 401 in given


def assert_is_its_row(case: Case, body: object) -> None:
    """A case that names a reason is answered with that row's status and text."""
    if case.reason is None:
        return
    row = ERRORS[ErrorCode[case.reason]]
    assert case.response.status == row.status
    if row.text is not None:
        assert body == {"status": "error", "message": {"message": row.text} if row.nested else row.text}


def assert_is_as_documented(case: Case, body: object) -> None:
    """The answer has the shape that its route's row names; a refusal's reason is among the row's."""
    row = route_of(case)
    if row is None:
        return
    if case.response.status < 300 and body is not None:
        assert list(jsonschema_rs.iter_errors(RESPONSE_SCHEMAS[row.response_schema], body)) == []
    if case.reason is not None:
        assert ErrorCode[case.reason] in error_codes_of(row)


def route_of(case: Case) -> RouteRow | None:
    """The route that a case's request goes to: the one with the fewest parts that vary."""
    fitting = [row for row in ROUTES if is_route_of(row, case)]
    return min(fitting, key=lambda row: row.path.count("{"), default=None)


def is_route_of(row: RouteRow, case: Case) -> bool:
    """Whether a case's request goes to a route."""
    path = case.request.path.partition("?")[0]
    return case.request.method == row.method and pattern_of(row.path).fullmatch(path) is not None


@functools.cache
def pattern_of(path: str) -> re.Pattern[str]:
    """What fits a route's path."""
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))


@functools.cache
def breaking_first() -> dict[str, list[Case]]:
    """The cases that break each rule before any other."""
    found: dict[str, list[Case]] = {}
    for case in CASES.values():
        rule = broken_by(case)
        if rule is not None:
            found.setdefault(rule.id, []).append(case)
    return found


def broken_by(case: Case) -> TemplateRule | None:
    """Of a case that creates a template, the first row of the table that its draft breaks."""
    hosting = CREATES.get(case.request.path)
    if hosting is None or not case.request.form:
        return None
    if case.response.status not in (200, 400) or case.reason == "UNREADABLE":
        return None
    try:
        draft = read_draft(Form(form_pairs(filled(case.request.form, {}))))
    except Exception:  # noqa: BLE001  it cannot be read at all, or needs placeholders
        return None
    broken = find_broken_rule(draft, strict=True, hosting=hosting)
    return None if broken is None else broken[0]
