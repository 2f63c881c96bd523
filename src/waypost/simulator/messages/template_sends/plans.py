"""An approved template made ready for sending: its texts cut at their variables, once."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.templates.template import Template
from waypost.simulator.templates.texts import TextPlan, plan_text

_EMPTY: Final = TextPlan(("",), ())


@dataclass(frozen=True)
class ButtonPlan:
    """One button: its type, its label, its URL cut at its variable, and all that was submitted.

    A one-time code button is of the type `OTP`, though it is read back as a URL.
    """

    type: str
    text: str
    url: TextPlan
    submitted: dict[str, Any]

    def given(self, name: str) -> str:
        """A text of the submission; empty when there is none."""
        return text_or_none(self.submitted.get(name)) or ""


@dataclass(frozen=True)
class FacePlan:
    """What is seen at one place: a message or a card of it. `header_format` may be empty: none."""

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
    """What a send is held against."""

    template: Template
    face: FacePlan
    footer: str
    offer: OfferPlan | None
    cards: tuple[FacePlan, ...]

    @property
    def is_named(self) -> bool:
        """Whether parameters go by their names."""
        return self.template.parameter_format == "NAMED"

    @property
    def is_authentication(self) -> bool:
        """Whether it carries a one-time code."""
        return self.template.category == "AUTHENTICATION"


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
    offer = object_or_none(parts.get("LIMITED_TIME_OFFER", {}).get("limited_time_offer"))
    return TemplatePlan(
        template=template,
        face=_face(template.components),
        footer=text_or_none(parts.get("FOOTER", {}).get("text")) or "",
        offer=None
        if offer is None
        else OfferPlan(text_or_none(offer.get("text")) or "", bool(offer.get("has_expiration"))),
        cards=tuple(
            _face(objects_in(card.get("components"))) for card in objects_in(parts.get("CAROUSEL", {}).get("cards"))
        ),
    )


def _face(components: list[dict[str, Any]]) -> FacePlan:
    parts = {component["type"]: component for component in components}
    header: dict[str, Any] = parts.get("HEADER", {})
    return FacePlan(
        header_format=str(header.get("format", "TEXT")) if header else "",
        header=plan_text(text_or_none(header.get("text")) or ""),
        body=plan_text(text_or_none(parts.get("BODY", {}).get("text")) or ""),
        buttons=tuple(_button(one) for one in objects_in(parts.get("BUTTONS", {}).get("buttons"))),
    )


def _button(button: dict[str, Any]) -> ButtonPlan:
    url = text_or_none(button.get("url"))
    is_otp = "otp_type" in button
    return ButtonPlan(
        type="OTP" if is_otp else str(button.get("type", "")),
        text=text_or_none(button.get("text")) or ("Copy offer code" if button["type"] == "COPY_CODE" else ""),
        url=plan_text(url) if url and not is_otp else _EMPTY,
        submitted=button,
    )
