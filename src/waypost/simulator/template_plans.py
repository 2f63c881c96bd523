"""An approved template made ready for sending: its texts cut at their variables, once."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.simulator.loose import a_text, objects
from waypost.simulator.template import Template
from waypost.simulator.template_texts import TextPlan, plan_text

_EMPTY: Final = TextPlan(("",), ())


@dataclass(frozen=True)
class ButtonPlan:
    """One button: its type, its label, and its URL cut at its variable."""

    type: str
    text: str
    url: TextPlan
    phone_number: str

    @property
    def needs_parameter(self) -> bool:
        """Whether a send must carry something for this button. Source: facts 4.2."""
        return bool(self.url.names) or self.type == "COPY_CODE"


@dataclass(frozen=True)
class TemplatePlan:
    """What a send is held against. `header_format` is empty for a template without a header."""

    template: Template
    header_format: str
    header: TextPlan
    body: TextPlan
    footer: str
    buttons: tuple[ButtonPlan, ...]
    cards: int

    @property
    def is_plain(self) -> bool:
        """Whether a send needs no components at all."""
        return (
            self.header_format in ("", "TEXT", "PRODUCT")
            and not self.header.names
            and not self.body.names
            and not any(button.needs_parameter for button in self.buttons)
            and not self.cards
        )


class TemplatePlans:
    """Plans by template, made when first needed and again when the template has changed."""

    def __init__(self) -> None:
        self._plans: dict[str, TemplatePlan] = {}

    def of(self, template: Template) -> TemplatePlan:
        """The template's plan."""
        plan = self._plans.get(template.template_id)
        if plan is None or plan.template is not template:
            plan = self._plans[template.template_id] = plan_template(template)
        return plan


def plan_template(template: Template) -> TemplatePlan:
    """Cut a template's texts at their variables."""
    parts = {component["type"]: component for component in template.components}
    header: dict[str, Any] = parts.get("HEADER", {})
    return TemplatePlan(
        template=template,
        header_format=str(header.get("format", "TEXT")) if header else "",
        header=plan_text(a_text(header.get("text")) or ""),
        body=plan_text(a_text(parts.get("BODY", {}).get("text")) or ""),
        footer=a_text(parts.get("FOOTER", {}).get("text")) or "",
        buttons=tuple(_button(one) for one in objects(parts.get("BUTTONS", {}).get("buttons"))),
        cards=len(objects(parts.get("CAROUSEL", {}).get("cards"))),
    )


def _button(button: dict[str, Any]) -> ButtonPlan:
    url = a_text(button.get("url"))
    return ButtonPlan(
        type=str(button.get("type", "")),
        text=a_text(button.get("text"))
        or ("Copy offer code" if button["type"] == "COPY_CODE" else ""),
        url=plan_text(url) if url else _EMPTY,
        phone_number=a_text(button.get("phone_number")) or "",
    )
