"""Whatever a draft says: it is refused exactly where the check of drafts says so, and in the same words."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import draft
from waypost.domain.app import Hosting
from waypost.domain.templates.buttons import ButtonKind, OtpType, SupportedApp, TemplateButton
from waypost.domain.templates.cards import Card
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


def changed(changes: dict[str, Any]) -> TemplateDraft:
    """A draft of which so much is otherwise than in one that breaks nothing."""
    return draft(**changes)


@given(CHANGES.map(changed), st.booleans(), st.sampled_from(Hosting))
def test_first_that_a_check_says_of_the_api_is_what_a_creation_is_refused_with(
    of: TemplateDraft, strict: bool, hosting: Hosting
) -> None:
    broken = find_broken_rule(of, strict=strict, hosting=hosting)

    found = find_violations(of, strict=strict, hosting=hosting)

    refused = [(one.rule, one.says) for one in found if one.refused_by is RejectedBy.API]
    first = None if broken is None else (broken[0].id, explain_failure(*broken))
    assert (refused[0] if refused else None) == first


@given(CHANGES.map(changed), st.sampled_from(Hosting))
def test_draft_that_a_check_says_nothing_of_is_taken_by_a_strict_service(of: TemplateDraft, hosting: Hosting) -> None:
    found = find_violations(of, hosting=hosting)

    assert (found == []) is (find_broken_rule(of, strict=True, hosting=hosting) is None)
