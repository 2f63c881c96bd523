"""Approved templates prepared for sending: their texts are split at the variables once."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.templates.template import SimulatedTemplate
from waypost.simulator.templates.text_variables import TextPlan, plan_text

_EMPTY: Final = TextPlan(("",), ())


@dataclass(frozen=True)
class ButtonPlan:
    """One button: its type, its label, its URL split at the variable, and its submitted members.

    A one-time code button has the type `OTP`, although it is read back as a URL.
    """

    type: str
    text: str
    url: TextPlan
    submitted: dict[str, Any]

    def submitted_text(self, name: str) -> str:
        """Return a text of the submission; empty if there is none."""
        return text_or_none(self.submitted.get(name)) or ""


@dataclass(frozen=True)
class ContentPlan:
    """Header, body and buttons of a message or a card. An empty `header_format` means no header."""

    header_format: str
    header: TextPlan
    body: TextPlan
    buttons: tuple[ButtonPlan, ...]


@dataclass(frozen=True)
class OfferPlan:
    """A limited-time offer."""

    text: str
    has_expiration: bool


@dataclass(frozen=True)
class TemplatePlan:
    """A template prepared for checking and rendering messages."""

    template: SimulatedTemplate
    content: ContentPlan
    footer: str
    offer: OfferPlan | None
    cards: tuple[ContentPlan, ...]

    @property
    def is_named(self) -> bool:
        """True if parameters have names."""
        return self.template.parameter_format == "NAMED"

    @property
    def is_authentication(self) -> bool:
        """True if it contains a one-time code."""
        return self.template.category == "AUTHENTICATION"


class TemplatePlans:
    """Plans by template, created when first needed and again when the template has changed."""

    def __init__(self) -> None:
        self._plans: dict[str, TemplatePlan] = {}

    def find_plan(self, template: SimulatedTemplate) -> TemplatePlan:
        """Return the template's plan."""
        plan = self._plans.get(template.template_id)
        if plan is None or plan.template is not template:
            plan = self._plans[template.template_id] = plan_template(template)
        return plan


def plan_template(template: SimulatedTemplate) -> TemplatePlan:
    """Return the plan of a template, with its texts split at the variables."""
    by_type = {component["type"]: component for component in template.components}
    offer = object_or_none(by_type.get("LIMITED_TIME_OFFER", {}).get("limited_time_offer"))
    return TemplatePlan(
        template=template,
        content=_plan_content(template.components),
        footer=text_or_none(by_type.get("FOOTER", {}).get("text")) or "",
        offer=None
        if offer is None
        else OfferPlan(text_or_none(offer.get("text")) or "", bool(offer.get("has_expiration"))),
        cards=tuple(
            _plan_content(objects_in(card.get("components")))
            for card in objects_in(by_type.get("CAROUSEL", {}).get("cards"))
        ),
    )


def _plan_content(components: list[dict[str, Any]]) -> ContentPlan:
    by_type = {component["type"]: component for component in components}
    header: dict[str, Any] = by_type.get("HEADER", {})
    return ContentPlan(
        header_format=str(header.get("format", "TEXT")) if header else "",
        header=plan_text(text_or_none(header.get("text")) or ""),
        body=plan_text(text_or_none(by_type.get("BODY", {}).get("text")) or ""),
        buttons=tuple(_plan_button(button) for button in objects_in(by_type.get("BUTTONS", {}).get("buttons"))),
    )


def _plan_button(button: dict[str, Any]) -> ButtonPlan:
    url = text_or_none(button.get("url"))
    is_otp = "otp_type" in button
    return ButtonPlan(
        type="OTP" if is_otp else str(button.get("type", "")),
        text=text_or_none(button.get("text")) or ("Copy offer code" if button["type"] == "COPY_CODE" else ""),
        url=plan_text(url) if url and not is_otp else _EMPTY,
        submitted=button,
    )
