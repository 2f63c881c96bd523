"""The table of rules for drafts; the first broken rule decides the error."""

import re
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final

from waypost.domain.app import Hosting
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.domain.templates.button_rules import (
    each_app,
    each_button,
    each_card,
    each_card_passes,
    groups_quick_replies,
    has_card_count,
    has_different_labels,
    has_kind,
    has_kind_fields,
    has_otp_type,
    has_valid_phone_number,
    has_valid_url,
    has_variable_example,
    is_package_name,
    labels_exclude,
    leads_outside,
    max_buttons,
    max_label_length,
    same_in_all_cards,
    starts_as_offer,
)
from waypost.domain.templates.buttons import ButtonKind, OtpType
from waypost.domain.templates.field_rules import (
    DraftCondition,
    RuleCheck,
    RuleFailure,
    allowed_values,
    applies_unless,
    applies_when,
    example_matches,
    excludes_pattern,
    forbidden,
    has_allowed_validity,
    has_category,
    has_closed_variables,
    has_enough_text,
    has_numbered_variables,
    has_sample,
    has_type,
    has_visible_text,
    is_lto,
    join_names,
    keeps_variables_apart,
    keeps_variables_inside,
    max_length,
    must_meet,
    must_not_be,
    number_range,
    required,
    starts_with_code_sentence,
)
from waypost.domain.templates.fields import DRAFT_ATTRIBUTES, TemplateDraft
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import ADDED_BUTTON_TYPES, LANGUAGES, HeaderFormat, TemplateType, find_types
from waypost.domain.templates.variables import EMOJI, FORMATTING, LINE_BREAKS, variable_names


@dataclass(frozen=True, slots=True)
class TemplateRule:
    """A row of the table of rules."""

    id: str  # its name in pages and tests; never changes
    field: str  # the wire's name of the field
    check: RuleCheck
    requirement: str  # what the field must be; follows its name in the error text
    source: str
    fix_hint: str  # how to fix the violation
    _: KW_ONLY
    error_code: ErrorCode = ErrorCode.FIELD_BROKEN
    # the operator's rule, not the spec's: checked at creation only when the service is strict; otherwise the operator's
    # review rejects the template
    is_operator_rule: bool = False
    hosting: Hosting | None = None  # only for apps on this variant of the channel API; None: for all
    suppressed_by: tuple[str, ...] = ()  # rules whose violation makes this one redundant


_MARKETING, _UTILITY = Category.MARKETING, Category.UTILITY
_REPLY, _URL, _CALL = ButtonKind.QUICK_REPLY, ButtonKind.URL, ButtonKind.PHONE_NUMBER
_CODE, _OTP, _FLOW = ButtonKind.COPY_CODE, ButtonKind.OTP, ButtonKind.FLOW
_MPM, _CLG = ButtonKind.MPM, ButtonKind.CATALOG
_OFFERS = find_types(lambda row: row.may_be_offer)
_WITH_TEXT = find_types(lambda row: row.header is HeaderFormat.TEXT)
_SALES = find_types(lambda row: row.for_sales)
_CLOUD_ONLY = find_types(lambda row: row.cloud_only)
_SAMPLED = find_types(lambda row: row.medium is not None and row.medium.needs_sample)
_MAY_SAMPLE = find_types(lambda row: row.medium is not None and not row.medium.needs_sample)
_ON_CARDS = find_types(lambda row: row.medium is not None and row.medium.in_cards)
_CAROUSEL = find_types(lambda row: row.has_cards)
_IS_GIF = has_type(TemplateType.GIF)
_SECRET = has_category(Category.AUTHENTICATION)
_TAPS = has_otp_type(OtpType.ONE_TAP, OtpType.ZERO_TAP)
_ANY_TYPE = ", ".join(TemplateType)
_ANY_CATEGORY = "AUTHENTICATION, MARKETING or UTILITY"
_URL_REQUIREMENT = (
    "must be an absolute http or https address of at most 2000 characters; one variable, {{1}}, may stand at its end"
)
_OUTSIDE_REQUIREMENT = "must not lead to whatsapp.com or wa.me"
_DECORATED = rf"\{{\{{|\}}\}}|{LINE_BREAKS}|{FORMATTING}|{EMOJI}"
_LINK = r"(?i)https?://|[a-z0-9-]{2}\.[a-z]{2}"
_NUMBERED = (
    "must number its variables {{1}}, {{2}} and so on without a gap, or with parameterFormat NAMED name them "
    "in lower-case letters"
)
_FINISHED = "must finish each of its variables; write {{1}}, {{2}} and so on"
_FITS = "must be the text with each of its variables replaced by a value"
_PACKAGE = "must be at most 224 characters: two or more segments with dots between them, each beginning with a letter"
_VISIBLE = "must have at least one visible character, or be left out"
_IS_REQUIRED = "is required: "
_MUST_SAMPLE = "is required, or mediaId or mediaUrl: a sample of the medium"

_HINT_VARIABLES = "Close each variable with two braces, and number them from {{1}} without a gap."
_HINT_NUMBERS = (
    "Number the variables {{1}}, {{2}} and so on; or choose NAMED and use lower-case words such as {{order}}."
)
_HINT_VALUES = "Enter the text with a sample value in place of each variable."
_HINT_ADDRESS = "Enter the complete URL with https://; a variable {{1}} must be at its end."
_HINT_PHONE = "Enter the number with its country code, such as +15550001111."
_HINT_SHORTER = "Shorten it."
_HINT_LABEL = "Write the text in one line of plain words; remove variables, emoji and the characters that format it."
_HINT_OUTSIDE = "Use a page of your own, or a QUICK_REPLY button."
_HINT_VISIBLE = "Enter a text, or leave the field empty."
_HINT_SAMPLE = "Upload a sample, or enter its public URL."
_HINT_BUTTON = "Fill in all fields of the button, or remove it."

_LIMITS: Final = "spec, Limits"


def _required_field(id: str, field: str, accepted: str, fix_hint: str) -> TemplateRule:
    return TemplateRule(
        id,
        field=field,
        check=required(DRAFT_ATTRIBUTES[field]),
        requirement=f"{_IS_REQUIRED}{accepted}",
        source="spec, Create template; facts 3.3",
        fix_hint=fix_hint,
        error_code=ErrorCode.FIELD_MISSING,
    )


def _length_limit(
    id: str, field: str, max_chars: int, source: str = _LIMITS, fix_hint: str = _HINT_SHORTER
) -> TemplateRule:
    check = max_length(DRAFT_ATTRIBUTES[field], max_chars)
    return TemplateRule(id, field, check, f"must be at most {max_chars} characters", source, fix_hint)


def _visible_text(id: str, field: str) -> TemplateRule:
    check = has_visible_text(DRAFT_ATTRIBUTES[field])
    return TemplateRule(id, field, check, _VISIBLE, f"spec, Create template, {field}", _HINT_VISIBLE)


def _must_be(
    id: str,
    field: str,
    values: tuple[Category | TemplateType, ...],
    condition: DraftCondition,
    whom: str,
    source: str,
    fix_hint: str,
    suppressed_by: tuple[str, ...] = (),
) -> TemplateRule:
    check = applies_when(condition, allowed_values(DRAFT_ATTRIBUTES[field], values))
    requirement = f"must be {join_names(values)} for {whom}"
    return TemplateRule(id, field, check, requirement, source, fix_hint, suppressed_by=suppressed_by)


def _only_for(
    id: str, field: str, condition: DraftCondition, fix_hint: str, source: str = "", *, more: str = ""
) -> TemplateRule:
    check = applies_unless(condition, forbidden(DRAFT_ATTRIBUTES[field]))
    requirement = f"is for {condition.drafts} only{more}"
    return TemplateRule(id, field, check, requirement, source or f"spec, Create template, {field}", fix_hint)


def _not_for(
    id: str,
    field: str,
    condition: DraftCondition,
    fix_hint: str,
    source: str = "",
    *,
    more: str = "",
    suppressed_by: tuple[str, ...] = (),
) -> TemplateRule:
    check = applies_when(condition, forbidden(DRAFT_ATTRIBUTES[field]))
    rule = TemplateRule(id, field, check, f"is not for {condition.drafts}{more}", source, fix_hint)
    return replace(rule, source=source or f"spec, Create template, {field}", suppressed_by=suppressed_by)


def _button_only_for(id: str, kind: ButtonKind, condition: DraftCondition, source: str, fix_hint: str) -> TemplateRule:
    check = applies_unless(condition, each_button("type", lambda button: button.kind is not kind))
    return TemplateRule(
        id, "buttons", check, f"must not be {kind}: such a button is for {condition.drafts} only", source, fix_hint
    )


def _button_of_type(id: str, kind: ButtonKind) -> TemplateRule:
    type_ = ADDED_BUTTON_TYPES[kind]
    hint = f"Remove the button, or choose the type {type_}."
    return _button_only_for(id, kind, has_type(type_), "spec, Create template, rule 5", hint)


def _button_count(
    id: str, max_count: int, kind: ButtonKind | None, fix_hint: str, source: str = "operator 2.3"
) -> TemplateRule:
    buttons = f"{kind or ''} button{'s' if max_count > 1 else ''}".strip()
    requirement = f"must hold at most {max_count} {buttons}"
    return TemplateRule(id, "buttons", max_buttons(max_count, kind), requirement, source, fix_hint)


SPEC_RULES: Final = (  # Source: spec, "Create template", "Errors" and "Limits"; facts 3.1 to 3.3
    _required_field("name-given", "elementName", "at most 180 characters", "Enter a name such as order_update."),
    _required_field(
        "category-given",
        "category",
        _ANY_CATEGORY,
        "Choose UTILITY for something the recipient expects, MARKETING for an offer, "
        "AUTHENTICATION for one-time codes.",
    ),
    _required_field("type-given", "templateType", f"one of {_ANY_TYPE}", "Choose a type; TEXT is the simplest."),
    _required_field(
        "vertical-given", "vertical", "at most 180 characters", "Enter its subject in one or two words, such as Orders."
    ),
    _required_field("content-given", "content", "at most 1024 characters", "Enter the text of the body."),
    _required_field("example-given", "example", "the body with each variable replaced by a value", _HINT_VALUES),
    _length_limit("name-length", "elementName", 180),
    TemplateRule(
        "name-characters",
        field="elementName",
        check=must_meet(lambda draft: bool(re.fullmatch(r"[a-z0-9_]+", draft.element_name or "", re.ASCII))),
        requirement="must consist of lower-case letters, digits and underscores, such as order_update_2",
        source="facts 3.3; operator 2.3",
        fix_hint="Use a to z, 0 to 9 and underscores only, such as order_update_2.",
        error_code=ErrorCode.INVALID_ELEMENT_NAME,
    ),
    TemplateRule(
        "category-known",
        field="category",
        check=allowed_values("category", tuple(Category)),
        requirement=f"must be {_ANY_CATEGORY}",
        source="spec, Errors, rule 1",
        fix_hint="Choose one of the three, in capitals.",
        error_code=ErrorCode.INVALID_CATEGORY,
    ),
    TemplateRule(
        "type-known",
        field="templateType",
        check=allowed_values("template_type", tuple(TemplateType)),
        requirement=f"must be one of {_ANY_TYPE}",
        source="spec, Create template",
        fix_hint="Choose one of the types, in capitals.",
    ),
    _must_be(
        "category-of-type",
        "category",
        (_MARKETING, _UTILITY),
        has_type(*_SALES),
        join_names(_SALES, "and"),
        "spec, Create template, rule 1",
        "Choose MARKETING, or another type.",
    ),
    _only_for(
        "lto-type",
        "isLTO",
        has_type(*_OFFERS),
        "Choose TEXT, or turn off the limited-time offer.",
        "spec, Create template, templateType",
    ),
    TemplateRule(
        "lto-category",
        field="isLTO",
        check=applies_when(_SECRET, must_not_be(is_lto)),
        requirement="is for MARKETING and UTILITY only",
        source="facts 3.1, category on LTO",
        fix_hint="Choose MARKETING, or turn off the limited-time offer.",
    ),
    TemplateRule(
        "hosted-type",
        field="templateType",
        check=must_not_be(has_type(*_CLOUD_ONLY)),
        requirement=f"must not be {join_names(_CLOUD_ONLY)} on an app of the on-premises variant",
        source="spec, Create template, rule 2",
        fix_hint="Choose another type, or send through an app on the Cloud API.",
        hosting=Hosting.ON_PREMISES,
    ),
    TemplateRule(
        "hosted-lto",
        field="isLTO",
        check=must_not_be(is_lto),
        requirement="must be false on an app of the on-premises variant",
        source="spec, Create template, rule 2",
        fix_hint="Turn off the limited-time offer, or send through an app on the Cloud API.",
        hosting=Hosting.ON_PREMISES,
    ),
    _length_limit("vertical-length", "vertical", 180),
    _length_limit(
        "content-length",
        "content",
        1024,
        "spec, Limits; decision 0004",
        "Shorten the body, or move part of it into a document or behind a link.",
    ),
    TemplateRule(
        "content-of-codes",
        field="content",
        check=applies_when(_SECRET, starts_with_code_sentence),
        requirement="must begin with the line `{{1}} is your verification code.` and hold no other variable",
        source="spec, Create template, content; decision 0016",
        fix_hint="The first line must be: {{1}} is your verification code. The operator adds the rest.",
    ),
    _length_limit("header-length", "header", 60),
    _only_for(
        "header-type",
        "header",
        has_type(*_WITH_TEXT),
        "Remove the header text, or choose TEXT; other types show their medium there.",
        "spec, Create template, header; decision 0017",
    ),
    _not_for("header-category", "header", _SECRET, "Remove the header.", suppressed_by=("header-type",)),
    _visible_text("header-blank", "header"),
    _visible_text("header-example-blank", "exampleHeader"),
    _not_for("header-example", "exampleHeader", has_type(TemplateType.CATALOG), "Remove the header's sample."),
    _length_limit("footer-length", "footer", 60),
    _not_for(
        "footer-category",
        "footer",
        _SECRET,
        "Remove the footer, and set codeExpirationMinutes to how long the code is valid.",
        more=", whose footer is made from codeExpirationMinutes",
    ),
    _visible_text("footer-blank", "footer"),
    TemplateRule(
        "gif-media-id",
        field="mediaId",
        check=applies_when(_IS_GIF, required("media_id")),
        requirement="is required for GIF: the handle id or media id of its video",
        source="ledger C12",
        fix_hint="Upload the video, and enter its id.",
    ),
    TemplateRule(
        "gif-media-url",
        field="mediaUrl",
        check=applies_when(_IS_GIF, required("media_url")),
        requirement="is required for GIF: the public URL of its video",
        source="ledger C12",
        fix_hint="Enter the public URL of the video.",
    ),
    TemplateRule(
        "sample-document",
        field="exampleMedia",
        check=applies_when(has_type(*_SAMPLED), must_meet(has_sample)),
        requirement=f"{_MUST_SAMPLE}, always for {join_names(_SAMPLED)}",
        source="spec, Create template, exampleMedia; facts 3.1",
        fix_hint=_HINT_SAMPLE,
    ),
    TemplateRule(
        "sample-enabled",
        field="exampleMedia",
        check=applies_when(lambda draft: draft.enable_sample and has_type(*_MAY_SAMPLE)(draft), must_meet(has_sample)),
        requirement=f"{_MUST_SAMPLE}, when enableSample is true for {join_names(_MAY_SAMPLE)}",
        source="spec, Create template, enableSample; facts 3.1",
        fix_hint=_HINT_SAMPLE,
    ),
    TemplateRule(
        "button-fields",
        field="buttons",
        check=has_kind_fields,
        requirement="is required for this type of button",
        source="spec, Button shapes; facts 3.1",
        fix_hint=_HINT_BUTTON,
    ),
    TemplateRule(
        "url-example",
        field="buttons",
        check=each_button("example", has_variable_example),
        requirement="is required because the url has a variable: an array with one text",
        source="spec, Button shapes",
        fix_hint="Enter the URL with a value in place of the variable.",
    ),
    _button_only_for(
        "otp-category", _OTP, _SECRET, "spec, Button shapes", "Remove the button, or choose AUTHENTICATION."
    ),
    TemplateRule(
        "otp-type",
        field="buttons",
        check=each_button("otp_type", lambda button: button.otp_type in tuple(OtpType), among=has_kind(_OTP)),
        requirement="must be COPY_CODE, ONE_TAP or ZERO_TAP",
        source="spec, Button shapes; facts 3.1",
        fix_hint="Choose how the code gets into the app: COPY_CODE, ONE_TAP or ZERO_TAP.",
    ),
    TemplateRule(
        "otp-package",
        field="buttons",
        check=each_button(
            "package_name",
            lambda button: (
                all(app.package_name.strip() for app in button.supported_apps) and bool(button.supported_apps)
            ),
            among=_TAPS,
        ),
        requirement="is required for ONE_TAP and ZERO_TAP, here or in supported_apps",
        source="spec, Button shapes; facts 3.1",
        fix_hint="Enter the package name of your Android app, or choose COPY_CODE.",
    ),
    TemplateRule(
        "otp-signature",
        field="buttons",
        check=each_button(
            "signature_hash",
            lambda button: all(app.signature_hash.strip() for app in button.supported_apps),
            among=_TAPS,
        ),
        requirement="is required for ONE_TAP and ZERO_TAP, here or in supported_apps",
        source="spec, Button shapes; facts 3.1",
        fix_hint="Enter the 11 characters of the hash of your app's signing key, or choose COPY_CODE.",
    ),
    TemplateRule(
        "otp-autofill",
        field="buttons",
        check=each_button(
            "autofill_text", lambda button: bool(button.autofill_text.strip()), among=has_otp_type(OtpType.ONE_TAP)
        ),
        requirement="is required for ONE_TAP",
        source="spec, Button shapes",
        fix_hint="Enter the label of the button that fills in the code, such as Autofill.",
    ),
    TemplateRule(
        "otp-terms",
        field="buttons",
        check=each_button(
            "zero_tap_terms_accepted",
            lambda button: button.zero_tap_terms_accepted is True,
            among=has_otp_type(OtpType.ZERO_TAP),
        ),
        requirement="must be true for ZERO_TAP",
        source="facts 3.1, OTP zero tap",
        fix_hint="Accept the terms of zero-tap codes, or choose COPY_CODE or ONE_TAP.",
    ),
    _button_only_for(
        "flow-category",
        _FLOW,
        has_category(_MARKETING),
        "spec, Flow passthrough message",
        "Choose MARKETING, or another type of button.",
    ),
    _button_of_type("mpm-type", _MPM),
    _button_of_type("catalog-type", _CLG),
    _only_for(
        "cards-type",
        "cards",
        has_type(*_CAROUSEL),
        "Remove the cards, or choose the type CAROUSEL.",
        "spec, Create template, rule 3",
    ),
    TemplateRule(
        "cards-count",
        field="cards",
        check=applies_when(has_type(*_CAROUSEL), has_card_count(1, 10)),
        requirement="must hold 1 to 10 cards",
        source="facts 3.3; decision 0015",
        fix_hint="Add or remove cards until there are 1 to 10.",
    ),
    TemplateRule(
        "card-header",
        field="cards",
        check=each_card("headerType", lambda card: card.header_type in _ON_CARDS),
        requirement=f"must be {join_names(_ON_CARDS)}",
        source="spec, Card object; spec, Send template message",
        fix_hint="Choose IMAGE or VIDEO for the card.",
    ),
    TemplateRule(
        "card-sample",
        field="cards",
        check=each_card("exampleMedia", has_sample),
        requirement="is required, or mediaUrl or mediaId",
        source="spec, Card object",
        fix_hint="Upload the card's sample, or enter its public URL.",
    ),
    TemplateRule(
        "card-button-fields",
        field="cards",
        check=each_card_passes("buttons", has_kind_fields),
        requirement="is required for this type of button",
        source="spec, Button shapes",
        fix_hint=_HINT_BUTTON,
    ),
    TemplateRule(
        "card-url-example",
        field="cards",
        check=each_card_passes("buttons", each_button("example", has_variable_example)),
        requirement="is required because the url has a variable: an array with one text",
        source="spec, Button shapes",
        fix_hint="Enter the URL with a value in place of the variable.",
    ),
    TemplateRule(
        "card-body-blank",
        field="cards",
        check=each_card_passes("body", has_visible_text("content")),
        requirement=_VISIBLE,
        source="spec, Card object",
        fix_hint=_HINT_VISIBLE,
    ),
    TemplateRule(
        "card-sample-blank",
        field="cards",
        check=each_card_passes("sampleText", has_visible_text("example")),
        requirement=_VISIBLE,
        source="spec, Card object",
        fix_hint=_HINT_VISIBLE,
    ),
    TemplateRule(
        "card-otp",
        field="cards",
        check=each_card_passes("buttons", each_button("type", lambda button: button.kind is not _OTP)),
        requirement="must not be OTP: such a button is for AUTHENTICATION only",
        source="spec, Button shapes",
        fix_hint="Choose QUICK_REPLY, URL or PHONE_NUMBER.",
    ),
    TemplateRule(
        "card-button-kinds",
        field="cards",
        check=each_card_passes("buttons", each_button("type", has_kind(_REPLY, _URL, _CALL))),
        requirement="must be QUICK_REPLY, URL or PHONE_NUMBER",
        source="spec, Create template, rule 5; operator 2.3",
        fix_hint="Use only QUICK_REPLY, URL and PHONE_NUMBER buttons.",
        suppressed_by=("card-otp",),
    ),
    _only_for(
        "offer-text-of-lto",
        "limitedOfferText",
        is_lto,
        "Remove the offer text, or make the template a limited-time offer.",
        "spec, Create template, rule 4",
        more=": isLTO must be true",
    ),
    _only_for(
        "expiry-of-lto",
        "hasExpiration",
        is_lto,
        "Remove the expiry, or make the template a limited-time offer.",
        "spec, Create template, rule 4",
        more=": isLTO must be true",
    ),
    TemplateRule(
        "offer-text-given",
        field="limitedOfferText",
        check=applies_when(is_lto, required("limited_offer_text")),
        requirement="is required for an LTO template: at most 16 characters",
        source="spec, Create template, limitedOfferText",
        fix_hint="Enter the text of the offer, such as Ends soon.",
    ),
    _length_limit("offer-text-length", "limitedOfferText", 16),
    TemplateRule(
        "expiry-given",
        field="hasExpiration",
        check=applies_when(is_lto, required("has_expiration")),
        requirement="is required for an LTO template: true or false",
        source="spec, Create template, hasExpiration",
        fix_hint="Choose true if the offer expires, or false.",
    ),
    TemplateRule(
        "expiry-copy-code",
        field="buttons",
        check=applies_when(
            lambda draft: draft.is_lto and draft.has_expiration is True,
            must_meet(lambda draft: any(button.kind is _CODE for button in draft.buttons)),
        ),
        requirement="must hold a COPY_CODE button because hasExpiration is true",
        source="spec, Create template, hasExpiration",
        fix_hint="Add a COPY_CODE button, or choose an offer that does not expire.",
    ),
    _only_for(
        "security-category", "addSecurityRecommendation", _SECRET, "Turn off the warning, or choose AUTHENTICATION."
    ),
    _only_for("minutes-category", "codeExpirationMinutes", _SECRET, "Remove the minutes, or choose AUTHENTICATION."),
    TemplateRule(
        "minutes-range",
        field="codeExpirationMinutes",
        check=number_range("code_expiration_minutes", 1, 90),
        requirement="must be 1 to 90",
        source="spec, Limits",
        fix_hint="Choose between 1 and 90 minutes.",
    ),
    TemplateRule(
        "validity-range",
        field="messageValidity",
        check=has_allowed_validity,
        requirement="must be seconds within the range of its category",
        source="facts 3.1, 15",
        fix_hint="Choose a number of seconds within the range, or leave the field empty.",
    ),
    TemplateRule(
        "format-known",
        field="parameterFormat",
        check=allowed_values("parameter_format", (None, "POSITIONAL", "NAMED")),
        requirement="must be POSITIONAL or NAMED",
        source="facts 3.1",
        fix_hint="Choose POSITIONAL or NAMED, or leave the field empty.",
    ),
)

_MESSAGE_RULES: Final = (
    TemplateRule(
        "language-known",
        field="languageCode",
        check=allowed_values("language_code", LANGUAGES),
        requirement="must be a language code such as en_US",
        source="operator 2.5; facts 3.9",
        fix_hint="Choose one of the operator's languages.",
    ),
    TemplateRule(
        "content-finished", "content", has_closed_variables("content"), _FINISHED, "operator 2.4", _HINT_VARIABLES
    ),
    TemplateRule(
        "content-numbered",
        field="content",
        check=has_numbered_variables("content"),
        requirement=_NUMBERED,
        source="operator 2.3, 2.4",
        fix_hint=_HINT_NUMBERS,
        suppressed_by=("content-finished",),
    ),
    TemplateRule(
        "header-finished", "header", has_closed_variables("header"), _FINISHED, "operator 2.4", _HINT_VARIABLES
    ),
    TemplateRule(
        "header-numbered",
        field="header",
        check=has_numbered_variables("header"),
        requirement=_NUMBERED,
        source="operator 2.3, 2.4",
        fix_hint=_HINT_NUMBERS,
        suppressed_by=("header-finished",),
    ),
    TemplateRule(
        "header-variable",
        field="header",
        check=must_not_be(lambda draft: len(variable_names(draft.header)) > 1),
        requirement="must hold at most one variable, {{1}}",
        source="operator 2.3; facts 3.3",
        fix_hint="Keep one variable in the header, and move the others into the body.",
        suppressed_by=("header-numbered",),
    ),
    TemplateRule(
        "header-plain",
        field="header",
        check=excludes_pattern("header", rf"\*|{LINE_BREAKS}|{FORMATTING}|{EMOJI}"),
        requirement="must be plain: no line breaks, no emoji, no formatting",
        source="operator 2.4",
        fix_hint="Remove line breaks, emoji and asterisks; headers are always bold.",
    ),
    TemplateRule(
        "footer-plain",
        field="footer",
        check=excludes_pattern("footer", rf"{LINE_BREAKS}|\{{\{{|\}}\}}|{EMOJI}"),
        requirement="must be plain: no variables, no line breaks, no emoji",
        source="operator 2.3",
        fix_hint="Remove variables, line breaks and emoji from the footer.",
    ),
    TemplateRule(
        "content-inside",
        field="content",
        check=applies_unless(_SECRET, keeps_variables_inside("content")),
        requirement="must neither begin nor end with a variable",
        source="operator 2.4; facts 3.3",
        fix_hint="Put a word before the first variable, and a word or a full stop after the last one.",
        suppressed_by=("content-finished",),
    ),
    TemplateRule(
        "content-apart",
        field="content",
        check=keeps_variables_apart("content"),
        requirement="must have text between its variables",
        source="operator 2.4",
        fix_hint="Put a word between the two variables.",
        suppressed_by=("content-finished",),
    ),
    TemplateRule(
        "content-words",
        field="content",
        check=applies_unless(_SECRET, has_enough_text),
        requirement="must have more words for its variables: two for each, and one",
        source="operator 2.4",
        fix_hint="Add words around the variables, or use fewer variables.",
        suppressed_by=("content-finished",),
    ),
    TemplateRule(
        "example-fits",
        field="example",
        check=applies_unless(_SECRET, example_matches("content", "example")),
        requirement=_FITS,
        source="operator 2.4; facts 3.1",
        fix_hint=_HINT_VALUES,
        suppressed_by=("content-finished", "content-of-codes"),
    ),
    TemplateRule(
        "header-example-fits",
        field="exampleHeader",
        check=example_matches("header", "example_header"),
        requirement=_FITS,
        source="operator 2.4; facts 3.1",
        fix_hint=_HINT_VALUES,
        suppressed_by=("header-finished", "header-variable"),
    ),
    TemplateRule(
        "sample-media",
        field="exampleMedia",
        check=applies_when(has_type(*_MAY_SAMPLE), must_meet(has_sample)),
        requirement=f"{_MUST_SAMPLE}, for the review",
        source="operator 2.2",
        fix_hint=_HINT_SAMPLE,
        suppressed_by=("sample-enabled",),
    ),
    _must_be(
        "sales-category",
        "category",
        (_MARKETING,),
        has_type(*_SALES),
        join_names(_SALES, "and"),
        "operator 2.2, 2.3",
        "Choose MARKETING.",
        ("category-of-type",),
    ),
    _must_be(
        "gif-category",
        "category",
        (_MARKETING,),
        _IS_GIF,
        "GIF",
        "operator 2.2",
        "Choose MARKETING, or the type VIDEO.",
        ("category-known", "category-given"),
    ),
    _must_be(
        "code-type",
        "templateType",
        (TemplateType.TEXT,),
        _SECRET,
        "AUTHENTICATION",
        "operator 2.2",
        "Choose the type TEXT.",
    ),
    TemplateRule(
        "code-button",
        field="buttons",
        check=applies_when(_SECRET, must_meet(lambda draft: [button.kind for button in draft.buttons] == [_OTP])),
        requirement="must hold one OTP button and no other for AUTHENTICATION",
        source="operator 2.2",
        fix_hint="Keep one OTP button, and remove all others.",
        suppressed_by=("otp-type",),
    ),
    _button_count("button-count", 10, None, "Remove buttons until there are at most 10.", "operator 2.3; facts 3.3"),
    _button_count("url-count", 2, _URL, "Keep at most two buttons that open a URL.", "operator 2.3; facts 3.3"),
    _button_count("phone-count", 1, _CALL, "Keep at most one button that calls.", "operator 2.3; facts 3.3"),
    _button_count("copy-code-count", 1, _CODE, "Keep at most one button that copies a code."),
    _button_count("flow-count", 1, _FLOW, "Keep at most one button that opens a flow."),
    TemplateRule(
        "sales-button",
        field="buttons",
        check=must_not_be(
            lambda draft: len(draft.buttons) > 1 and any(button.kind in (_MPM, _CLG) for button in draft.buttons)
        ),
        requirement="must hold nothing beside the button of PRODUCT or CATALOG",
        source="operator 2.3",
        fix_hint="Remove the other buttons, or choose another type.",
    ),
    TemplateRule(
        "replies-together",
        field="buttons",
        check=groups_quick_replies,
        requirement="must keep all QUICK_REPLY buttons together, before or after the others",
        source="operator 2.3",
        fix_hint="Move the quick replies together, before or after all other buttons.",
    ),
    TemplateRule(
        "label-length", "buttons", max_label_length(25), "must be at most 25 characters", "operator 2.3", _HINT_SHORTER
    ),
    TemplateRule(
        "label-plain",
        field="buttons",
        check=labels_exclude(_DECORATED),
        requirement="must be plain: no variables, no line breaks or tabs, no emoji, no formatting",
        source="operator 2.4",
        fix_hint=_HINT_LABEL,
    ),
    TemplateRule(
        "label-different",
        field="buttons",
        check=has_different_labels,
        requirement="must be different from the texts of the other buttons",
        source="operator 2.4",
        fix_hint="Give each button a text of its own.",
    ),
    TemplateRule(
        "otp-label-link",
        field="buttons",
        check=applies_when(_SECRET, labels_exclude(_LINK)),
        requirement="must not have a link",
        source="operator 2.4",
        fix_hint="Remove the link from the text of the button.",
    ),
    TemplateRule(
        "url-usable",
        field="buttons",
        check=each_button("url", has_valid_url, among=has_kind(_URL)),
        requirement=_URL_REQUIREMENT,
        source="operator 2.3",
        fix_hint=_HINT_ADDRESS,
    ),
    TemplateRule(
        "url-outside",
        field="buttons",
        check=each_button("url", leads_outside, among=has_kind(_URL)),
        requirement=_OUTSIDE_REQUIREMENT,
        source="operator 2.4",
        fix_hint=_HINT_OUTSIDE,
    ),
    TemplateRule(
        "phone-usable",
        field="buttons",
        check=each_button("phone_number", has_valid_phone_number, among=has_kind(_CALL)),
        requirement="must be a phone number of at most 20 characters",
        source="operator 2.3",
        fix_hint=_HINT_PHONE,
    ),
    TemplateRule(
        "copy-code-length",
        field="buttons",
        check=each_button(
            "example", lambda button: all(len(code) <= 15 for code in button.example), among=has_kind(_CODE)
        ),
        requirement="must be at most 15 characters",
        source="operator 2.3",
        fix_hint=_HINT_SHORTER,
    ),
    TemplateRule(
        "flow-action",
        field="buttons",
        check=each_button("flow_action", lambda button: button.flow_action in ("", "NAVIGATE", "DATA_EXCHANGE")),
        requirement="must be NAVIGATE or DATA_EXCHANGE",
        source="facts 3.1; operator 2.2",
        fix_hint="Choose NAVIGATE or DATA_EXCHANGE, or leave the field empty.",
    ),
    TemplateRule(
        "otp-app-count",
        field="buttons",
        check=each_button("supported_apps", lambda button: len(button.supported_apps) <= 5),
        requirement="must hold at most 5 apps",
        source="operator 2.2",
        fix_hint="List at most five apps.",
    ),
    TemplateRule(
        "otp-app-different",
        field="buttons",
        check=each_button(
            "supported_apps", lambda button: len(set(button.supported_apps)) == len(button.supported_apps)
        ),
        requirement="must not hold an app twice",
        source="operator 2.4",
        fix_hint="Remove the second of two apps with the same package name and hash.",
    ),
    TemplateRule(
        "otp-package-form",
        field="buttons",
        check=each_app("package_name", is_package_name),
        requirement=_PACKAGE,
        source="operator 2.3",
        fix_hint="Enter the package name from your app's manifest, such as com.example.shop.",
    ),
    TemplateRule(
        "otp-signature-form",
        field="buttons",
        check=each_app(
            "signature_hash", lambda app: bool(re.fullmatch(r"[A-Za-z0-9+/=]{11}", app.signature_hash, re.ASCII))
        ),
        requirement="must be exactly 11 characters: letters, digits, +, / and =",
        source="operator 2.3",
        fix_hint="Copy the hash that your build prints: 11 characters.",
    ),
    TemplateRule(
        "offer-text-plain",
        field="limitedOfferText",
        check=excludes_pattern("limited_offer_text", r"\{\{|\}\}"),
        requirement="must have no variables",
        source="operator 4.2",
        fix_hint="Write the offer in words; a message can only give the time when it ends.",
    ),
    _must_be(
        "lto-marketing",
        "category",
        (_MARKETING,),
        is_lto,
        "an LTO template",
        "operator 2.2",
        "Choose MARKETING, or turn off the limited-time offer.",
        ("lto-category", "category-known", "category-given"),
    ),
    TemplateRule(
        "lto-content",
        field="content",
        check=applies_when(is_lto, max_length("content", 600)),
        requirement="must be at most 600 characters in an LTO template",
        source="operator 2.3",
        fix_hint="Shorten the body to 600 characters.",
        suppressed_by=("content-length",),
    ),
    _not_for(
        "lto-header",
        "header",
        is_lto,
        "Remove the header.",
        "operator 2.2",
        suppressed_by=("header-type", "header-category"),
    ),
    _not_for("lto-footer", "footer", is_lto, "Remove the footer.", "operator 2.2", suppressed_by=("footer-category",)),
    TemplateRule(
        "lto-buttons",
        field="buttons",
        check=applies_when(is_lto, starts_as_offer),
        requirement="must begin with the COPY_CODE button, if there is one, and then a URL button",
        source="operator 2.3; facts 3.3",
        fix_hint="Put the COPY_CODE button first, and a URL button after it.",
        suppressed_by=("expiry-copy-code",),
    ),
    TemplateRule(
        "carousel-count",
        field="cards",
        check=applies_when(has_type(*_CAROUSEL), has_card_count(2, 10)),
        requirement="must hold 2 to 10 cards",
        source="operator 2.3; decision 0015",
        fix_hint="Add or remove cards until there are 2 to 10.",
        suppressed_by=("cards-count",),
    ),
    _not_for(
        "carousel-footer",
        "footer",
        has_type(*_CAROUSEL),
        "Remove the footer.",
        "operator 2.2",
        suppressed_by=("footer-category",),
    ),
    _not_for(
        "carousel-buttons",
        "buttons",
        has_type(*_CAROUSEL),
        "Remove these buttons; each card has its own.",
        "operator 2.2",
        more=", whose buttons are in its cards",
    ),
    TemplateRule(
        "card-alike-header",
        field="cards",
        check=same_in_all_cards("headerType", lambda card: card.header_type),
        requirement="must be the same in all cards",
        source="operator 2.3; facts 3.3",
        fix_hint="Choose the same type of medium for all cards.",
    ),
    TemplateRule(
        "card-alike-body",
        field="cards",
        check=same_in_all_cards("body", lambda card: bool(card.body)),
        requirement="must be given in all cards or in none",
        source="operator 2.3",
        fix_hint="Add a text to every card, or to none.",
    ),
    TemplateRule(
        "card-alike-buttons",
        field="cards",
        check=same_in_all_cards("buttons", lambda card: [button.kind for button in card.buttons]),
        requirement="must be of the same kinds in the same order in all cards",
        source="operator 2.3; facts 3.3",
        fix_hint="Use the same types of buttons in the same order on all cards.",
    ),
    TemplateRule(
        "card-button-count",
        field="cards",
        check=each_card("buttons", lambda card: 1 <= len(card.buttons) <= 2),
        requirement="must hold 1 or 2 buttons",
        source="operator 2.3; facts 3.3",
        fix_hint="Add one or two buttons to the card.",
    ),
)


def _card_rule(id: str, member: str, rule_id: str, suppressed_by: tuple[str, ...] = ()) -> TemplateRule:
    """Return a rule for the body or the buttons of a message as one for those of a card."""
    rule = next(rule for rule in _MESSAGE_RULES if rule.id == rule_id)
    check = each_card_passes(member, rule.check)
    return replace(rule, id=id, field="cards", check=check, suppressed_by=suppressed_by)


_CARD_RULES: Final = (
    TemplateRule(
        "card-body-length",
        field="cards",
        check=each_card_passes("body", max_length("content", 160)),
        requirement="must be at most 160 characters",
        source="operator 2.3",
        fix_hint="Shorten the card's text to 160 characters.",
    ),
    _card_rule("card-body-finished", "body", "content-finished"),
    _card_rule("card-body-numbered", "body", "content-numbered", ("card-body-finished",)),
    _card_rule("card-body-apart", "body", "content-apart", ("card-body-finished",)),
    _card_rule("card-sample-fits", "sampleText", "example-fits", ("card-body-finished",)),
    _card_rule("card-label-length", "buttons", "label-length"),
    _card_rule("card-label-plain", "buttons", "label-plain"),
    TemplateRule(
        "card-label-different",
        field="cards",
        check=each_card_passes("buttons", has_different_labels),
        requirement="must be different from the texts of the card's other buttons",
        source="operator 2.4",
        fix_hint="Give each button of a card a text of its own.",
    ),
    _card_rule("card-url-usable", "buttons", "url-usable"),
    _card_rule("card-url-outside", "buttons", "url-outside"),
    _card_rule("card-phone-usable", "buttons", "phone-usable"),
)
OPERATOR_RULES: Final = tuple(  # Source: operator's facts 2.2 to 2.5; facts 3.3
    replace(rule, is_operator_rule=True) for rule in (*_MESSAGE_RULES, *_CARD_RULES)
)

TEMPLATE_RULES: Final = (*SPEC_RULES, *OPERATOR_RULES)
"""Every rule in the order of checking."""


def find_broken_rule(
    draft: TemplateDraft, *, strict: bool = False, hosting: Hosting = Hosting.CLOUD
) -> tuple[TemplateRule, RuleFailure] | None:
    """Return the first rule that a draft breaks, and the failure; None when it breaks none.

    Args:
        strict: check the operator's rules too, instead of waiting for its review.
        hosting: the variant of the channel API of its app.
    """
    for rule in TEMPLATE_RULES if strict else SPEC_RULES:
        if rule.hosting not in (None, hosting):
            continue
        failure = rule.check(draft)
        if failure is not None:
            return rule, failure
    return None


def check_draft(draft: TemplateDraft, *, strict: bool = False, hosting: Hosting = Hosting.CLOUD) -> None:
    """Raise the error of the first rule that a draft breaks.

    Args:
        strict: check the operator's rules too, instead of waiting for its review.
        hosting: the variant of the channel API of its app.

    Raises:
        ApiError: with field, rule and what would be accepted.
    """
    broken = find_broken_rule(draft, strict=strict, hosting=hosting)
    if broken is not None:
        rule, failure = broken
        if rule.error_code is ErrorCode.FIELD_MISSING:
            raise missing_parameter(rule.field, _accepted(rule))
        raise ApiError(rule.error_code, explain_failure(rule, failure))


def _accepted(rule: TemplateRule) -> str:
    """Return what a required field accepts."""
    return rule.requirement.removeprefix(_IS_REQUIRED)


def explain_failure(rule: TemplateRule, failure: RuleFailure) -> str:
    """Return the error text in our own words."""
    if rule.error_code is ErrorCode.FIELD_MISSING:
        return f"{rule.field} is required: {_accepted(rule)}."
    detail = f"; {failure.detail}" if failure.detail else ""
    return f"{rule.field}{failure.place} {rule.requirement}{detail}."
