"""Template forms to drafts: every spelling is read, and no form breaks the reader."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import template
from waypost.domain.errors import ApiError
from waypost.domain.templates.buttons import ButtonKind, SupportedApp
from waypost.domain.templates.fields import TEMPLATE_FIELDS, TemplateDraft
from waypost.domain.templates.rules import TEMPLATE_RULES
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import TemplateType
from waypost.operators.cloud.templates import template_body
from waypost.wire.forms import Form
from waypost.wire.templates.drafts import read_buttons, read_cards, read_draft
from waypost.wire.templates.record import template_record


def read(**fields: str) -> Any:
    return read_draft(Form(list(fields.items())))


def one_button(**members: Any) -> Any:
    [button] = read_buttons(json.dumps([members]))
    return button


def test_empty_form_is_an_empty_draft() -> None:
    draft = read()

    assert draft.element_name is None
    assert draft.language_code == "en_US"
    assert draft.buttons == ()
    assert draft.cards is None
    assert draft.has_expiration is None


def test_empty_fields_are_absent() -> None:
    draft = read(header="", footer="", exampleMedia="", limitedOfferText="", hasExpiration="", cards="")

    assert draft.header is None
    assert draft.footer is None
    assert draft.example_media is None
    assert draft.limited_offer_text is None
    assert draft.has_expiration is None
    assert draft.cards is None


@pytest.mark.parametrize("text", ["10", " 10 ", '"10"', "10.0"])
def test_number_is_read_however_it_is_written(text: str) -> None:
    assert read(codeExpirationMinutes=text).code_expiration_minutes == 10


@pytest.mark.parametrize("text", ["ten", "10.5", "1e400", "9" * 40, "nan"])
def test_value_that_is_no_whole_number_is_rejected(text: str) -> None:
    with pytest.raises(ApiError, match="codeExpirationMinutes"):
        read(codeExpirationMinutes=text)


@pytest.mark.parametrize("text", ["", "null", " "])
def test_missing_number_is_none(text: str) -> None:
    assert read(messageValidity=text).message_validity_s is None


def test_flat_application_is_one_of_the_list() -> None:
    flat = one_button(type="OTP", otp_type="one_tap", text="Copy", package_name="com.acme", signature_hash="x")
    listed = one_button(
        type="OTP",
        otp_type="ZERO_TAP",
        supported_apps=[{"package_name": "com.acme", "signature_hash": "x"}],
        zero_tap_terms_accepted="TRUE",
    )

    assert flat.supported_apps == listed.supported_apps == (SupportedApp("com.acme", "x"),)
    assert (flat.is_flat, listed.is_flat) == (True, False)
    assert flat.otp_type == "ONE_TAP"
    assert listed.zero_tap_terms_accepted is True


def test_url_of_a_card_may_come_in_parts() -> None:
    button = {"type": "url", "text": "Buy", "buttonValue": "https://a.test/", "suffix": 7}
    cards = read_cards(json.dumps([{"headerType": "image", "mediaId": 12, "buttons": [button]}]))

    assert cards is not None
    [card] = cards
    assert card.header_type == "IMAGE"
    assert card.media_id == "12"
    assert card.buttons[0].url == "https://a.test/{{1}}"
    assert card.buttons[0].example == ("7",)


def test_complete_url_is_left_unchanged() -> None:
    button = one_button(type="URL", text="Buy", url="https://a.test/all", buttonValue="https://a.test/", suffix="x")

    assert button.url == "https://a.test/all"
    assert button.example == ()


@pytest.mark.parametrize(
    ("example", "read_as"), [("a", ("a",)), (["a", "b"], ("a", "b")), (7, ("7",)), ([7, None], ("7",)), (None, ())]
)
def test_example_is_a_text_or_a_list(example: Any, read_as: tuple[str, ...]) -> None:
    assert one_button(type="URL", example=example).example == read_as


# Any form.
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_MEMBERS = (
    "text", "url", "phone_number", "example", "buttonValue", "suffix", "otp_type", "autofill_text",
    "package_name", "signature_hash", "supported_apps", "zero_tap_terms_accepted", "flow_id", "flow_action",
)  # fmt: skip
_TEXTS = st.sampled_from(["", "{{1}}", "Hi {{1}}, all.", "x", "{{", "\n", "https://a.test/{{1}}", "7"])
_BUTTONS: st.SearchStrategy[Any] = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from([*ButtonKind, "dance"])}, optional=dict.fromkeys(_MEMBERS, _TEXTS | _VALUES)
    ),
    max_size=4,
)
_CARDS: st.SearchStrategy[Any] = st.lists(
    st.fixed_dictionaries(
        {"headerType": st.sampled_from(["IMAGE", "video", 4, None])},
        optional={"mediaId": _TEXTS, "body": _TEXTS, "sampleText": _TEXTS, "buttons": _BUTTONS},
    ),
    max_size=3,
)
_FORMS = st.fixed_dictionaries(
    {"category": st.sampled_from(list(Category)), "templateType": st.sampled_from(list(TemplateType))},
    optional={
        "content": _TEXTS | st.text(max_size=20),
        "example": _TEXTS,
        "header": _TEXTS,
        "exampleHeader": _TEXTS,
        "footer": _TEXTS,
        "buttons": (_BUTTONS | _VALUES).map(json.dumps),
        "cards": (_CARDS | _VALUES).map(json.dumps),
        "isLTO": st.sampled_from(["true", "false"]),
        "hasExpiration": st.sampled_from(["true", "false"]),
        "codeExpirationMinutes": st.integers().map(str) | _TEXTS,
        "messageValidity": st.integers().map(str),
        "parameterFormat": st.sampled_from(["named", "POSITIONAL", "?"]),
        "exampleMedia": _TEXTS,
    },
)


@given(form=_FORMS)
def test_any_form_is_rejected_or_can_be_checked_shown_and_submitted(form: dict[str, str]) -> None:
    try:
        draft = read(**form)
    except ApiError:
        return
    stored = template(of=draft)

    broken = [rule.id for rule in TEMPLATE_RULES if rule.check(draft) is not None]
    record, body = template_record(stored), template_body(stored, {})

    assert len(broken) < len(TEMPLATE_RULES)
    assert json.loads(record["containerMeta"])["enableSample"] is draft.enable_sample
    assert body["components"]


def test_every_attribute_of_a_draft_is_one_field_of_the_form() -> None:
    assert [field.attribute for field in TEMPLATE_FIELDS] == [field.name for field in dataclasses.fields(TemplateDraft)]
    assert len({field.name for field in TEMPLATE_FIELDS}) == len(TEMPLATE_FIELDS)
