"""Any draft: its creation fails exactly if the draft check finds a violation, and with the same text."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import draft
from waypost.domain.app import Hosting
from waypost.domain.templates.buttons import ButtonKind, Card, OtpType, SupportedApp, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rules import explain_failure, find_broken_rule
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import TemplateType
from waypost.domain.templates.violations import RejectedBy, find_violations

TEXTS = st.sampled_from(
    ["", "Hi", "Hi {{1}}, your order is ready.", "Hi {{2}}", "{{1}} {{2}}", "{{1", "{{name}} is here",
     "{{1}} is your verification code.", "*Bold*\nline", "\U0001f600", "x" * 61, "x" * 700, "x" * 1100]
)  # fmt: skip
URLS = st.sampled_from(["", "https://shop.example/a", "https://shop.example/{{1}}", "nowhere"])
APPS = st.builds(
    SupportedApp,
    package_name=st.sampled_from(["", "com.example.app", "odd"]),
    signature_hash=st.sampled_from(["", "K8a/AINcGX7", "short"]),
)
BUTTONS = st.builds(
    TemplateButton,
    kind=st.sampled_from(ButtonKind),
    text=TEXTS,
    url=URLS,
    phone_number=st.sampled_from(["", "+15550001111", "odd", "+1" + "5" * 30]),
    example=st.sampled_from([(), ("",), ("https://shop.example/a",), ("SAVE10",), ("x" * 20,)]),
    otp_type=st.sampled_from(["", "ODD", *OtpType]),
    autofill_text=st.sampled_from(["", "Autofill"]),
    supported_apps=st.lists(APPS, max_size=6).map(tuple),
    zero_tap_terms_accepted=st.sampled_from([None, False, True]),
    flow_id=st.sampled_from(["", "1000000000000017"]),
    flow_action=st.sampled_from(["", "NAVIGATE", "ODD"]),
)
SOME_BUTTONS = st.lists(BUTTONS, max_size=4).map(tuple)
SAMPLES = st.sampled_from([None, "4::aW1hZ2UvcG5n"])
CARDS = st.builds(
    Card,
    header_type=st.sampled_from(["", "IMAGE", "VIDEO", "TEXT"]),
    example_media=SAMPLES,
    body=TEXTS,
    sample_text=TEXTS,
    buttons=SOME_BUTTONS,
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "element_name": st.sampled_from([None, "", "Up", "order_ready", "x" * 181]),
        "language_code": st.sampled_from(["en_US", "de", "xx_odd"]),
        "category": st.sampled_from([None, "ODD", *Category]),
        "template_type": st.sampled_from([None, "ODD", *TemplateType]),
        "vertical": st.sampled_from([None, "Orders", "x" * 181]),
        **dict.fromkeys(("content", "example", "header", "example_header", "footer"), TEXTS),
        "buttons": SOME_BUTTONS,
        "enable_sample": st.booleans(),
        "example_media": SAMPLES,
        "is_lto": st.booleans(),
        "limited_offer_text": st.sampled_from([None, "Soon", "x" * 17]),
        "has_expiration": st.sampled_from([None, False, True]),
        "cards": st.none() | st.lists(CARDS, max_size=3).map(tuple),
        "add_security_recommendation": st.booleans(),
        "code_expiration_minutes": st.sampled_from([None, 0, 5, 91]),
        "message_validity_s": st.sampled_from([None, 0, 60, 10**6]),
        "parameter_format": st.sampled_from([None, "NAMED", "POSITIONAL", "ODD"]),
    },
)


def changed_draft(changes: dict[str, Any]) -> TemplateDraft:
    """Return a valid draft with these changes."""
    return draft(**changes)


@given(CHANGES.map(changed_draft), st.booleans(), st.sampled_from(Hosting))
def test_first_api_violation_that_a_check_finds_is_the_error_of_a_creation(
    given_draft: TemplateDraft, strict: bool, hosting: Hosting
) -> None:
    broken = find_broken_rule(given_draft, strict=strict, hosting=hosting)

    violations = find_violations(given_draft, strict=strict, hosting=hosting)

    rejected = [(violation.rule, violation.says) for violation in violations if violation.refused_by is RejectedBy.API]
    first = None if broken is None else (broken[0].id, explain_failure(*broken))
    assert (rejected[0] if rejected else None) == first


@given(CHANGES.map(changed_draft), st.sampled_from(Hosting))
def test_draft_without_violations_is_accepted_by_a_strict_service(given_draft: TemplateDraft, hosting: Hosting) -> None:
    violations = find_violations(given_draft, hosting=hosting)

    assert (violations == []) is (find_broken_rule(given_draft, strict=True, hosting=hosting) is None)
