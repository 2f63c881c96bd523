"""Checks of a draft's buttons and of a carousel's cards, for the rows of the rule table."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from waypost.domain.templates.buttons import BUTTON_KINDS, ButtonKind, Card, OtpType, SupportedApp, TemplateButton
from waypost.domain.templates.field_rules import MAX_SEARCHED_CHARS, RuleCheck, RuleFailure, has_text
from waypost.domain.templates.fields import TemplateDraft

ButtonCondition = Callable[[TemplateButton], bool]
MAX_BUTTON_URL_CHARS: Final = 2000  # Source: operator's facts 2.3


def has_kind(*kinds: ButtonKind) -> ButtonCondition:
    """Return a condition for buttons of these kinds."""
    return lambda button: button.kind in kinds


def has_otp_type(*types: OtpType) -> ButtonCondition:
    """Return a condition for OTP buttons of these types."""
    return lambda button: button.kind is ButtonKind.OTP and button.otp_type in types


def fails_at(find_places: Callable[[TemplateDraft], Iterator[str]]) -> RuleCheck:
    """Return a check that fails at the first of some places."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        place = next(find_places(draft), None)
        return None if place is None else RuleFailure(place)

    return check


def each_button(member: str, is_valid: ButtonCondition, *, among: ButtonCondition | None = None) -> RuleCheck:
    """Return a check that a condition holds for each button, or for each among some; `member` names the place."""
    return fails_at(
        lambda draft: (
            f"[{index}].{member}"
            for index, button in enumerate(draft.buttons)
            if (among is None or among(button)) and not is_valid(button)
        )
    )


def each_app(member: str, is_valid: Callable[[SupportedApp], bool]) -> RuleCheck:
    """Return a check that a condition holds for each application of each button."""
    return fails_at(
        lambda draft: (
            f"[{index}].{member}" if button.is_flat else f"[{index}].supported_apps[{app_index}].{member}"
            for index, button in enumerate(draft.buttons)
            for app_index, app in enumerate(button.supported_apps)
            if not is_valid(app)
        )
    )


def has_kind_fields(draft: TemplateDraft) -> RuleFailure | None:
    """Check that every button has the fields of its kind."""
    for index, button in enumerate(draft.buttons):
        for field in BUTTON_KINDS[button.kind].required:
            value = getattr(button, field)
            if not value or not has_text(value):
                needed = " and ".join(BUTTON_KINDS[button.kind].required)
                return RuleFailure(f"[{index}].{field}", f"{button.kind} needs {needed}")
    return None


def _labels(button: TemplateButton) -> Iterator[tuple[str, str]]:
    """Yield the member and the text of each label that the operator gets: it labels COPY_CODE itself."""
    if button.kind is not ButtonKind.COPY_CODE:
        yield "text", button.text
        yield "autofill_text", button.autofill_text


def each_label(is_valid: Callable[[str], bool]) -> RuleCheck:
    """Return a check that a condition holds for each label, the autofill label included."""
    return fails_at(
        lambda draft: (
            f"[{index}].{member}"
            for index, button in enumerate(draft.buttons)
            for member, label in _labels(button)
            if not is_valid(label)
        )
    )


def max_label_length(max_chars: int) -> RuleCheck:
    """Return a check of the maximum length of labels."""
    return each_label(lambda label: len(label) <= max_chars)


def labels_exclude(pattern: str) -> RuleCheck:
    """Return a check that nothing in the labels matches a pattern."""
    regex = re.compile(pattern)
    return each_label(lambda label: not regex.search(label, 0, MAX_SEARCHED_CHARS))


def has_different_labels(draft: TemplateDraft) -> RuleFailure | None:
    """Check that no two buttons have the same label."""
    known: set[str] = set()
    for index, button in enumerate(draft.buttons):
        label = dict(_labels(button)).get("text", "").strip()
        if label in known:
            return RuleFailure(f"[{index}].text")
        known |= {label} if label else set()
    return None


def has_variable_example(button: TemplateButton) -> bool:
    """True if the URL has no variable, or has an example of its own: a placeholder is none."""
    return not button.has_variable or any(example and "{{" not in example for example in button.example)


def has_valid_url(button: TemplateButton) -> bool:
    """True if the URL is absolute, not too long, and has at most one variable, at its end."""
    plain = button.url.removesuffix("{{1}}")
    if len(button.url) > MAX_BUTTON_URL_CHARS or re.search(r"\s|\{\{|\}\}", plain):
        return False
    try:
        parts = urlsplit(plain)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"[{}]", parts.netloc)


def leads_outside(button: TemplateButton) -> bool:
    """True unless the URL leads to the operator's own service, except to a payment. Source: operator's facts 2.4."""
    inside = re.match(
        r"(?i)https?://(?:[^/?#]*[.@])?(?:whatsapp\.com|wa\.me)(?::[0-9]*)?(?=[/?#]|$)(.*)", button.url, re.DOTALL
    )
    return inside is None or re.match(r"/(?:pay|in/bill/reminder)(?:[/?#]|$)", inside[1]) is not None


def has_valid_phone_number(button: TemplateButton) -> bool:
    """True if the number has at most 20 characters: an optional plus, digits and punctuation."""
    return bool(re.fullmatch(r"\+?[0-9 ()-]{5,20}", button.phone_number, re.ASCII)) and (len(button.phone_number) <= 20)


def max_buttons(max_count: int, kind: ButtonKind | None = None) -> RuleCheck:
    """Return a check of the maximum number of buttons, of one kind or in all."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        count = sum(kind is None or button.kind is kind for button in draft.buttons)
        return None if count <= max_count else RuleFailure(detail=f"there are {count}")

    return check


def starts_as_offer(draft: TemplateDraft) -> RuleFailure | None:
    """Check that the copy code button, if any, comes first, and a URL button next."""
    order = [button.kind for button in draft.buttons]
    if ButtonKind.COPY_CODE in order:
        return None if order[:2] == [ButtonKind.COPY_CODE, ButtonKind.URL] else RuleFailure()
    return None if order[:1] == [ButtonKind.URL] else RuleFailure()


def groups_quick_replies(draft: TemplateDraft) -> RuleFailure | None:
    """Check that quick replies are adjacent, before or after all other buttons."""
    quick = [button.kind is ButtonKind.QUICK_REPLY for button in draft.buttons]
    changes = sum(left != right for left, right in itertools.pairwise(quick))
    return RuleFailure() if changes > 1 else None


def is_package_name(app: SupportedApp) -> bool:
    """True if the package name has two or more segments, each of which begins with a letter."""
    name = app.package_name
    return len(name) <= 224 and bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+", name, re.ASCII))


def has_card_count(low: int, high: int) -> RuleCheck:
    """Return a check of the number of cards."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        count = len(draft.cards or ())
        return None if low <= count <= high else RuleFailure(detail=f"there {'is' if count == 1 else 'are'} {count}")

    return check


def each_card(member: str, is_valid: Callable[[Card], bool]) -> RuleCheck:
    """Return a check that a condition holds for each card; `member` names the place."""
    return fails_at(
        lambda draft: (f"[{index}].{member}" for index, card in enumerate(draft.cards or ()) if not is_valid(card))
    )


def each_card_passes(member: str, draft_check: RuleCheck) -> RuleCheck:
    """Return a check that applies a check of body or buttons to each card."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        for index, card in enumerate(draft.cards or ()):
            failure = draft_check(
                TemplateDraft(
                    content=card.body,
                    example=card.sample_text,
                    buttons=card.buttons,
                    parameter_format=draft.parameter_format,
                )
            )
            if failure is not None:
                return RuleFailure(f"[{index}].{member}{failure.place}", failure.detail)
        return None

    return check


def same_in_all_cards(member: str, value_of: Callable[[Card], Any]) -> RuleCheck:
    """Return a check that a value is the same in all cards."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        values = [value_of(card) for card in draft.cards or ()]
        different = next((index for index, value in enumerate(values) if value != values[0]), None)
        return None if different is None else RuleFailure(f"[{different}].{member}")

    return check
