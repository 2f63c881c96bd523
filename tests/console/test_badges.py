"""Badges: a state has one colour on every page, from the table of states."""

import re
from importlib import resources
from pathlib import Path
from typing import Final

import pytest
from jinja2 import Environment, nodes

from waypost.console.overview.page import OUTCOMES, TILES
from waypost.console.settings.app import RATE_SOURCES
from waypost.console.web.formatting import STATE_KINDS, state_kind
from waypost.domain.message import MessageState
from waypost.domain.templates.template import TemplateStatus

PAGES: Final = Path(str(resources.files("waypost.console") / "pages"))
TEMPLATES: Final = sorted(PAGES.rglob("*.html"))
KNOWN_STATES: Final = {state for states in STATE_KINDS.values() for state in states}
BADGE_CLASS: Final = re.compile(r"badge-(?!\{\{ [^}]*\|state_kind \}\})")
TEMPLATE_IDS: Final = [str(path.relative_to(PAGES)) for path in TEMPLATES]


@pytest.mark.parametrize("template", TEMPLATES, ids=TEMPLATE_IDS)
def test_no_template_chooses_the_colour_of_a_badge(template: Path) -> None:
    text = template.read_text()
    states = {state for call in _badge_calls(text) for state in _named_states(call.args[-1])}

    assert not BADGE_CLASS.search(text), "the class of a badge follows from its state: {{ state|state_kind }}"
    assert not [state for state in states if state.lower() not in KNOWN_STATES], "not in web/formatting.py"


def test_calls_of_badges_are_found() -> None:
    calls = [call for template in TEMPLATES for call in _badge_calls(template.read_text())]

    assert len(calls) > 50
    assert {"active", "armed", "failing"} <= {state for call in calls for state in _named_states(call.args[-1])}


def _badge_calls(text: str) -> list[nodes.Call]:
    """Return the calls of the macro; its last argument is the state."""
    calls = Environment(extensions=["jinja2.ext.do"], autoescape=True).parse(text).find_all(nodes.Call)
    return [call for call in calls if "badge" in (getattr(call.node, "attr", ""), getattr(call.node, "name", ""))]


def _named_states(argument: nodes.Expr) -> list[str]:
    """Return the texts that an argument can be, as far as the template names them."""
    match argument:
        case nodes.Const(value=str(state)):
            return [state]
        case nodes.CondExpr(expr1=one, expr2=other) if other is not None:
            return _named_states(one) + _named_states(other)
        case nodes.Or(left=left, right=right):
            return _named_states(left) + _named_states(right)
        case _:
            return []


def test_a_state_is_in_the_table_once() -> None:
    listed = [state for states in STATE_KINDS.values() for state in states]

    assert sorted(listed) == sorted(KNOWN_STATES)


def test_each_state_of_a_message_and_a_template_has_a_kind() -> None:
    states = {state.value.lower().replace("_", " ") for state in (*MessageState, *TemplateStatus)}

    assert states <= KNOWN_STATES


def test_charts_and_totals_use_states_of_the_table() -> None:
    assert {state for _, _, state in TILES} <= KNOWN_STATES
    assert {name for name, _ in OUTCOMES} <= KNOWN_STATES
    assert {state for _, state in RATE_SOURCES.values()} <= KNOWN_STATES
    assert len({state_kind(name) for name, _ in OUTCOMES}) == len(OUTCOMES)


@pytest.mark.parametrize(
    ("state", "kind"),
    [(200, "good"), (302, "warn"), (404, "bad"), (503, "bad"), ("IN_APPEAL", "info"), ("strange", "quiet")],
)
def test_kind_of_a_state(state: object, kind: str) -> None:
    assert state_kind(state) == kind
