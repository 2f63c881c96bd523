"""The page about `params`: each example is read by the readers of the API, and its figure shows where each value goes."""

import json
import re
from typing import Any, Final

import pytest

from tests.docs.repository import ROOT
from waypost.domain.send_rules import template_send_error
from waypost.domain.templates.rendering import TemplateParameters, split_parameters
from waypost.domain.templates.rules import check_draft
from waypost.domain.templates.types import TemplateType
from waypost.wire.forms import Form
from waypost.wire.message_forms import read_template_send
from waypost.wire.templates.drafts import read_draft

PAGE: Final = ROOT / "docs" / "how-to" / "fill-a-template.md"
EXAMPLES: Final = re.findall(
    r"^## (.+?)\n\n```json\n(.*?)```\n\n```text\n(.*?)```\n\n```json\n(.*?)```",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
NUMBERS: Final = "①②③④⑤⑥⑦⑧⑨"
LINE: Final = re.compile(r"│ (.*?) +│ (?=((?:card \d, )?(?:header|body|button \d|thumbnail)))")
"""A line of a figure: its text, and the component."""
REQUIRED: Final = {"elementName": "example", "vertical": "Examples"}


def form_of(text: str) -> Form:
    """Return a form of an object; what is no text becomes JSON text."""
    fields: dict[str, Any] = REQUIRED | json.loads(text)
    return Form([(name, value if isinstance(value, str) else json.dumps(value)) for name, value in fields.items()])


def values_by_component(values: TemplateParameters) -> dict[str, str]:
    """Return the values of each component, by its name in the figures."""
    components: dict[str, tuple[str, ...]] = {"header": values.header, "body": values.body}
    components |= {f"button {index}": (value,) for index, value in values.buttons.items()}
    components["thumbnail"] = () if values.thumbnail is None else (values.thumbnail,)
    for number, card in enumerate(values.cards):
        components[f"card {number}, body"] = card.body
        components |= {f"card {number}, button {index}": (value,) for index, value in card.buttons.items()}
    return {name: "".join(assigned) for name, assigned in components.items() if assigned}


@pytest.mark.parametrize(
    ("template", "figure", "message"), [row[1:] for row in EXAMPLES], ids=[row[0] for row in EXAMPLES]
)
def test_figure_shows_where_each_value_goes(template: str, figure: str, message: str) -> None:
    draft, send = read_draft(form_of(template)), read_template_send(form_of(message))
    numbers_by_line = {label: "".join(re.findall(f"[{NUMBERS}]", text)) for text, label in LINE.findall(figure)}
    shown = {label: numbers for label, numbers in numbers_by_line.items() if numbers}
    texts = [draft.header, draft.content, *(card.body for card in draft.cards or ())]
    count = len(send.params)

    check_draft(draft, strict=True)
    assert template_send_error(send, draft, now_ms=0) is None
    assert values_by_component(split_parameters(draft, NUMBERS[:count])) == shown
    assert all(
        re.search(re.sub(r"\\\{\\\{\d\\\}\\\}", f"[{NUMBERS}]", re.escape(text)), figure) for text in texts if text
    )


def test_page_has_an_example_of_each_type() -> None:
    types = {json.loads(template)["templateType"] for _, template, _, _ in EXAMPLES}
    named = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))

    assert types | {name.upper() for name in named} >= set(TemplateType)
