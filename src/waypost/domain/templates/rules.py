"""The table of rules for drafts; the first broken rule decides the error."""

from dataclasses import KW_ONLY, dataclass
from typing import Final

from waypost.domain.app import Hosting
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.button_rules import (
    be_a_package,
    be_a_signature,
    be_just_one,
    begin_as_an_offer,
    each,
    each_app,
    group_quick_replies,
    have_a,
    have_a_short_code,
    have_a_usable_number,
    have_a_usable_url,
    have_an_example_for_its_variable,
    have_at_most,
    have_short_labels,
    have_their_fields,
    name_apps_at_most,
    of_kind,
    of_otp_type,
    stand_alone,
)
from waypost.domain.templates.buttons import ButtonKind, OtpType
from waypost.domain.templates.card_rules import be_alike, each_card, have_a_card_sample, have_cards, in_cards, make_up
from waypost.domain.templates.field_rules import (
    Must,
    Wrong,
    be_a_language,
    be_a_name,
    be_absent,
    be_at_most,
    be_false,
    be_free_of,
    be_given,
    be_one_of,
    be_visible,
    be_within,
    begin_with_the_code,
    finish_variables,
    fit,
    have_a_sample,
    have_words_enough,
    hold_at_most_one_variable,
    is_lto,
    keep_variables_apart,
    keep_variables_inside,
    live_as_long_as_its_category_may,
    number_variables,
    of_category,
    of_type,
    unless,
    when,
)
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import ADDED_BY, HeaderFormat, TemplateType, types_where


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table of rules.

    Attributes:
        id: its name in pages and tests; never changes.
        field: the wire's name of the field.
        requirement: what the field must be; follows its name in the error text.
        is_operator_rule: the operator's rule, not the spec's: checked at creation only when the
            service is strict; otherwise the operator's review rejects the template.
        hosting: only for apps on this variant of the channel API; None: for all.
        fix_hint: how to fix the violation.
        suppressed_by: rules whose violation makes this one redundant.
    """

    id: str
    field: str
    must: Must
    says: str
    source: str
    reason: ErrorCode = ErrorCode.FIELD_BROKEN
    operators: bool = False
    hosting: Hosting | None = None
    _: KW_ONLY
    hint: str
    suppressed_by: tuple[str, ...] = ()


def _listed(types: tuple[TemplateType, ...], last: str = "or") -> str:
    """Return names as an enumeration for a sentence: A, B or C."""
    *others, end = types
    return f"{', '.join(others)} {last} {end}" if others else end


_MARKETING, _UTILITY = Category.MARKETING, Category.UTILITY
_REPLY, _URL, _CALL = ButtonKind.QUICK_REPLY, ButtonKind.URL, ButtonKind.PHONE_NUMBER
_CODE, _OTP, _FLOW = ButtonKind.COPY_CODE, ButtonKind.OTP, ButtonKind.FLOW
_MPM, _CLG = ButtonKind.MPM, ButtonKind.CATALOG
_OFFERS = types_where(lambda row: row.may_be_offer)
_WITH_TEXT = types_where(lambda row: row.header is HeaderFormat.TEXT)
_SALES = types_where(lambda row: row.for_sales)
_CLOUD_ONLY = types_where(lambda row: row.cloud_only)
_SAMPLED = types_where(lambda row: row.medium is not None and row.medium.needs_sample)
_MAY_SAMPLE = types_where(lambda row: row.medium is not None and not row.medium.needs_sample)
_ON_CARDS = types_where(lambda row: row.medium is not None and row.medium.in_cards)
_CAROUSEL = types_where(lambda row: row.has_cards)
_SECRET = of_category(Category.AUTHENTICATION)
_TAPS = of_otp_type(OtpType.ONE_TAP, OtpType.ZERO_TAP)
_ANY_TYPE = ", ".join(TemplateType)
_ANY_CATEGORY = "AUTHENTICATION, MARKETING or UTILITY"
_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff]"
_URL_SAYS = (
    "must be an absolute http or https address of at most 2000 characters; one variable, {{1}}, may stand at its end"
)
_NUMBERED = "must number its variables {{1}}, {{2}} and so on without a gap, or with parameterFormat NAMED name them in lower-case letters"
_FINISHED = "must finish each of its variables; write {{1}}, {{2}} and so on"
_FITS = "must be the text with each of its variables replaced by a value"
_PACKAGE = "must be at most 224 characters: two or more segments with dots between them, each beginning with a letter"
_VISIBLE = "must have at least one visible character, or be left out"
_IS_REQUIRED = "is required: "
_MUST_SAMPLE = "is required, or mediaId or mediaUrl: a sample of the medium"

_HINT_VARIABLES = "Close each variable with two braces, and count from {{1}} without leaving a number out."
_HINT_NUMBERS = (
    "Number the variables {{1}}, {{2}} and so on; or choose NAMED and use lower-case words such as {{order}}."
)
_HINT_VALUES = "Give a sample value for each variable; the sample is the text with those values in place."
_HINT_ADDRESS = "Write the whole address with https://; put {{1}}, if you need one, at its very end."
_HINT_PHONE = "Write the number with its country code, such as +15550001111."
_HINT_SHORTER = "Shorten it."
_HINT_VISIBLE = "Write a text, or leave the field empty."
_HINT_SAMPLE = "Upload a sample, or give its public address."
_HINT_BUTTON = "Give the button all the fields of its kind, or remove it."

# fmt: off
SPEC_RULES: Final = (  # Source: spec, "Create template", "Errors" and "Limits"; facts 3.1 to 3.3
    #    id                       field                         check                                                                     requirement                                                                source                                  code, or operator's
    Rule("name-given",            "elementName",                be_given("element_name"),                                                 f"{_IS_REQUIRED}at most 180 characters",                                   "spec, Create template; facts 3.3",     ErrorCode.FIELD_MISSING,
         hint="Give it a name such as order_update."),
    Rule("category-given",        "category",                   be_given("category"),                                                     f"{_IS_REQUIRED}{_ANY_CATEGORY}",                                          "spec, Create template; facts 3.3",     ErrorCode.FIELD_MISSING,
         hint="Choose UTILITY for what somebody waits for, MARKETING for what you offer, AUTHENTICATION for one-time codes."),
    Rule("type-given",            "templateType",               be_given("template_type"),                                                f"{_IS_REQUIRED}one of {_ANY_TYPE}",                                       "spec, Create template; facts 3.3",     ErrorCode.FIELD_MISSING,
         hint="Choose a type; TEXT is the simplest."),
    Rule("vertical-given",        "vertical",                   be_given("vertical"),                                                     f"{_IS_REQUIRED}at most 180 characters",                                   "spec, Create template; facts 3.3",     ErrorCode.FIELD_MISSING,
         hint="Say in a word or two what it is about, such as Orders."),
    Rule("content-given",         "content",                    be_given("content"),                                                      f"{_IS_REQUIRED}at most 1024 characters",                                  "spec, Create template; facts 3.3",     ErrorCode.FIELD_MISSING,
         hint="Write the body."),
    Rule("example-given",         "example",                    be_given("example"),                                                      f"{_IS_REQUIRED}the body with each variable replaced by a value",          "spec, Create template; facts 3.3",     ErrorCode.FIELD_MISSING,
         hint=_HINT_VALUES),
    Rule("name-length",           "elementName",                be_at_most("element_name", 180),                                          "must be at most 180 characters",                                          "spec, Limits",
         hint=_HINT_SHORTER),
    Rule("name-characters",       "elementName",                be_a_name,                                                                "must consist of lower-case letters, digits and underscores, such as order_update_2", "facts 3.3; operator 2.3", ErrorCode.INVALID_ELEMENT_NAME,
         hint="Use a to z, 0 to 9 and underscores only, such as order_update_2."),
    Rule("category-known",        "category",                   be_one_of("category", tuple(Category)),                                   f"must be {_ANY_CATEGORY}",                                                "spec, Errors, rule 1",                 ErrorCode.INVALID_CATEGORY,
         hint="Choose one of the three, in capitals."),
    Rule("type-known",            "templateType",               be_one_of("template_type", tuple(TemplateType)),                          f"must be one of {_ANY_TYPE}",                                             "spec, Create template",
         hint="Choose one of the types, in capitals."),
    Rule("category-of-type",      "category",                   when(of_type(*_SALES), be_one_of("category", (_MARKETING, _UTILITY))),    f"must be MARKETING or UTILITY for {_listed(_SALES, 'and')}",             "spec, Create template, rule 1",
         hint="Choose MARKETING, or another type."),
    Rule("lto-type",              "isLTO",                      unless(of_type(*_OFFERS), be_false(is_lto)),                              f"is for templateType {_listed(_OFFERS)} only",                                        "spec, Create template, templateType",
         hint="Choose TEXT, or switch the limited-time offer off."),
    Rule("lto-category",          "isLTO",                      when(_SECRET, be_false(is_lto)),                                          "is for MARKETING and UTILITY only",                                       "facts 3.1, category on LTO",
         hint="Choose MARKETING, or switch the limited-time offer off."),
    Rule("hosted-type",           "templateType",               be_false(of_type(*_CLOUD_ONLY)),                                          f"must not be {_listed(_CLOUD_ONLY)} on an app of the on-premises variant",    "spec, Create template, rule 2",        hosting=Hosting.ON_PREMISES,
         hint="Choose another type, or send through an app on the Cloud API."),
    Rule("hosted-lto",            "isLTO",                      be_false(is_lto),                                                         "must be false on an app of the on-premises variant",                      "spec, Create template, rule 2",        hosting=Hosting.ON_PREMISES,
         hint="Switch the limited-time offer off, or send through an app on the Cloud API."),
    Rule("vertical-length",       "vertical",                   be_at_most("vertical", 180),                                              "must be at most 180 characters",                                          "spec, Limits",
         hint=_HINT_SHORTER),
    Rule("content-length",        "content",                    be_at_most("content", 1024),                                              "must be at most 1024 characters",                                         "spec, Limits; decision 0004",
         hint="Shorten the body, or move part of it into a document or behind a link."),  # the spec has 1028 in one statement
    Rule("content-of-codes",      "content",                    when(_SECRET, begin_with_the_code),                                       "must begin with the line `{{1}} is your verification code.` and hold no other variable",               "spec, Create template, content; decision 0016",
         hint="Write {{1}} is your verification code. as the first line; the operator writes the rest."),
    Rule("header-length",         "header",                     be_at_most("header", 60),                                                 "must be at most 60 characters",                                           "spec, Limits",
         hint=_HINT_SHORTER),
    Rule("header-type",           "header",                     unless(of_type(*_WITH_TEXT), be_absent("header")),                        f"is for templateType {_listed(_WITH_TEXT)} only",                                        "spec, Create template, header; decision 0017",
         hint="Remove the header text, or choose TEXT; other types show their medium there."),
    Rule("header-category",       "header",                     when(_SECRET, be_absent("header")),                                       "is not for AUTHENTICATION",                                               "spec, Create template, header",
         hint="Remove the header.", suppressed_by=("header-type",)),
    Rule("header-blank",          "header",                     be_visible("header"),                                                     _VISIBLE,                                                                  "spec, Create template, header",
         hint=_HINT_VISIBLE),
    Rule("header-example-blank",  "exampleHeader",              be_visible("example_header"),                                             _VISIBLE,                                                                  "spec, Create template, exampleHeader",
         hint=_HINT_VISIBLE),
    Rule("header-example",        "exampleHeader",              when(of_type(TemplateType.CATALOG), be_absent("example_header")),                     "is not for templateType CATALOG",                                         "spec, Create template, exampleHeader",
         hint="Remove the header's sample."),
    Rule("footer-length",         "footer",                     be_at_most("footer", 60),                                                 "must be at most 60 characters",                                           "spec, Limits",
         hint=_HINT_SHORTER),
    Rule("footer-category",       "footer",                     when(_SECRET, be_absent("footer")),                                       "is not for AUTHENTICATION, whose footer is made from codeExpirationMinutes", "spec, Create template, footer",
         hint="Remove the footer, and say in codeExpirationMinutes how long the code lives."),
    Rule("footer-blank",          "footer",                     be_visible("footer"),                                                     _VISIBLE,                                                                  "spec, Create template, footer",
         hint=_HINT_VISIBLE),
    Rule("sample-document",       "exampleMedia",               when(of_type(*_SAMPLED), have_a_sample),                                  f"{_MUST_SAMPLE}, always for {_listed(_SAMPLED)}",                                    "spec, Create template, exampleMedia; facts 3.1",
         hint=_HINT_SAMPLE),
    Rule("sample-enabled",        "exampleMedia",               when(lambda draft: draft.enable_sample and of_type(*_MAY_SAMPLE)(draft), have_a_sample), f"{_MUST_SAMPLE}, when enableSample is true for {_listed(_MAY_SAMPLE)}", "spec, Create template, enableSample; facts 3.1",
         hint=_HINT_SAMPLE),
    Rule("button-fields",         "buttons",                    have_their_fields,                                                        "is required for a button of its kind",                                    "spec, Button shapes; facts 3.1",
         hint=_HINT_BUTTON),
    Rule("url-example",           "buttons",                    each("example", have_an_example_for_its_variable),                        "is required because the url has a variable: an array with one text",      "spec, Button shapes",
         hint="Give an address as it looks with the variable filled in."),
    Rule("otp-category",          "buttons",                    unless(_SECRET, each("type", lambda button: button.kind is not _OTP)),          "must not be OTP: such a button is for AUTHENTICATION only",               "spec, Button shapes",
         hint="Remove the button, or choose AUTHENTICATION."),
    Rule("otp-type",              "buttons",                    each("otp_type", lambda button: button.otp_type in tuple(OtpType), among=of_kind(_OTP)), "must be COPY_CODE, ONE_TAP or ZERO_TAP",                        "spec, Button shapes; facts 3.1",
         hint="Choose how the code gets into the app: COPY_CODE, ONE_TAP or ZERO_TAP."),
    Rule("otp-package",           "buttons",                    each("package_name", lambda button: all(app.package_name.strip() for app in button.supported_apps) and bool(button.supported_apps), among=_TAPS), "is required for ONE_TAP and ZERO_TAP, here or in supported_apps", "spec, Button shapes; facts 3.1",
         hint="Name the package of your Android app, or choose COPY_CODE."),
    Rule("otp-signature",         "buttons",                    each("signature_hash", lambda button: all(app.signature_hash.strip() for app in button.supported_apps), among=_TAPS), "is required for ONE_TAP and ZERO_TAP, here or in supported_apps", "spec, Button shapes; facts 3.1",
         hint="Give the 11 characters of the hash of your app's signing key, or choose COPY_CODE."),
    Rule("otp-autofill",          "buttons",                    each("autofill_text", lambda button: bool(button.autofill_text.strip()), among=of_otp_type(OtpType.ONE_TAP)), "is required for ONE_TAP",                         "spec, Button shapes",
         hint="Give the label of the button that fills the code in, such as Autofill."),
    Rule("otp-terms",             "buttons",                    each("zero_tap_terms_accepted", lambda button: button.zero_tap_terms_accepted is True, among=of_otp_type(OtpType.ZERO_TAP)), "must be true for ZERO_TAP", "facts 3.1, OTP zero tap",
         hint="Accept the terms of zero-tap codes, or choose another kind."),
    Rule("flow-category",         "buttons",                    unless(of_category(_MARKETING), each("type", lambda button: button.kind is not _FLOW)), "must not be FLOW: such a button is for MARKETING only",          "spec, Flow passthrough message",
         hint="Choose MARKETING, or another kind of button."),
    Rule("mpm-type",              "buttons",                    unless(of_type(ADDED_BY[_MPM]), each("type", lambda button: button.kind is not _MPM)), f"must not be MPM: such a button is for templateType {ADDED_BY[_MPM]} only",        "spec, Create template, rule 5",
         hint="Remove the button, or choose the type PRODUCT."),
    Rule("catalog-type",          "buttons",                    unless(of_type(ADDED_BY[_CLG]), each("type", lambda button: button.kind is not _CLG)), f"must not be CATALOG: such a button is for templateType {ADDED_BY[_CLG]} only",    "spec, Create template, rule 5",
         hint="Remove the button, or choose the type CATALOG."),
    Rule("cards-type",            "cards",                      unless(of_type(*_CAROUSEL), be_absent("cards")),                           "is for templateType CAROUSEL only",                                       "spec, Create template, rule 3",
         hint="Remove the cards, or choose the type CAROUSEL."),
    Rule("cards-count",           "cards",                      when(of_type(*_CAROUSEL), have_cards(1, 10)),                              "must hold 1 to 10 cards",                                                 "facts 3.3; decision 0015",
         hint="Add or remove cards until there are 1 to 10."),
    Rule("card-header",           "cards",                      each_card("headerType", lambda card: card.header_type in _ON_CARDS), f"must be {_listed(_ON_CARDS)}",                                                "spec, Card object; spec, Send template message",
         hint="Choose IMAGE or VIDEO for the card."),
    Rule("card-sample",           "cards",                      each_card("exampleMedia", have_a_card_sample),                            "is required, or mediaUrl or mediaId",                                     "spec, Card object",
         hint="Upload the card's sample, or give its public address."),
    Rule("card-button-fields",    "cards",                      in_cards("buttons", have_their_fields),                                   "is required for a button of its kind",                                    "spec, Button shapes",
         hint=_HINT_BUTTON),
    Rule("card-url-example",      "cards",                      in_cards("buttons", each("example", have_an_example_for_its_variable)),   "is required because the url has a variable: an array with one text",      "spec, Button shapes",
         hint="Give an address as it looks with the variable filled in."),
    Rule("card-body-blank",       "cards",                      in_cards("body", be_visible("content")),                                  _VISIBLE,                                                                  "spec, Card object",
         hint=_HINT_VISIBLE),
    Rule("card-sample-blank",     "cards",                      in_cards("sampleText", be_visible("example")),                            _VISIBLE,                                                                  "spec, Card object",
         hint=_HINT_VISIBLE),
    Rule("card-otp",              "cards",                      in_cards("buttons", each("type", lambda button: button.kind is not _OTP)),      "must not be OTP: such a button is for AUTHENTICATION only",               "spec, Button shapes",
         hint="Choose QUICK_REPLY, URL or PHONE_NUMBER."),
    Rule("offer-text-of-lto",     "limitedOfferText",           unless(is_lto, be_absent("limited_offer_text")),                          "is for LTO templates only: isLTO must be true",                           "spec, Create template, rule 4",
         hint="Remove the offer's text, or make it a limited-time offer."),
    Rule("expiry-of-lto",         "hasExpiration",              unless(is_lto, be_absent("has_expiration")),                              "is for LTO templates only: isLTO must be true",                           "spec, Create template, rule 4",
         hint="Leave the expiry out, or make it a limited-time offer."),
    Rule("offer-text-given",      "limitedOfferText",           when(is_lto, be_given("limited_offer_text")),                             "is required for an LTO template: at most 16 characters",                  "spec, Create template, limitedOfferText",
         hint="Say what the offer is, such as Ends soon."),
    Rule("offer-text-length",     "limitedOfferText",           be_at_most("limited_offer_text", 16),                                     "must be at most 16 characters",                                           "spec, Limits",
         hint=_HINT_SHORTER),
    Rule("expiry-given",          "hasExpiration",              when(is_lto, be_given("has_expiration")),                                 "is required for an LTO template: true or false",                          "spec, Create template, hasExpiration",
         hint="Say whether the offer expires."),
    Rule("expiry-copy-code",      "buttons",                    when(lambda draft: draft.is_lto and draft.has_expiration is True, have_a(_CODE)), "must hold a COPY_CODE button because hasExpiration is true",     "spec, Create template, hasExpiration",
         hint="Add a button that copies the offer's code, or let the offer not expire."),
    Rule("security-category",     "addSecurityRecommendation",  unless(_SECRET, be_absent("add_security_recommendation")),                "is for AUTHENTICATION only",                                              "spec, Create template, addSecurityRecommendation",
         hint="Switch the warning off, or choose AUTHENTICATION."),
    Rule("minutes-category",      "codeExpirationMinutes",      unless(_SECRET, be_absent("code_expiration_minutes")),                    "is for AUTHENTICATION only",                                              "spec, Create template, codeExpirationMinutes",
         hint="Leave the minutes out, or choose AUTHENTICATION."),
    Rule("minutes-range",         "codeExpirationMinutes",      be_within("code_expiration_minutes", 1, 90),                              "must be 1 to 90",                                                         "spec, Limits",
         hint="Choose between 1 and 90 minutes."),
    Rule("validity-range",        "messageValidity",            live_as_long_as_its_category_may,                                         "must be seconds within the range of its category",                        "facts 3.1, 15",
         hint="Choose a number of seconds inside the range, or leave it out."),
    Rule("format-known",          "parameterFormat",            be_one_of("parameter_format", (None, "POSITIONAL", "NAMED")),             "must be POSITIONAL or NAMED",                                             "facts 3.1",
         hint="Choose one of the two, or leave it out."),
)

OPERATORS_RULES: Final = (  # Source: operator's facts 2.2 to 2.5; facts 3.3
    #    id                       field            check                                                            requirement                                                                 source
    Rule("language-known",        "languageCode",  be_a_language,                                                   "must be a language code such as en_US",                                    "operator 2.5; facts 3.9",  operators=True,
         hint="Choose one of the operator's languages."),
    Rule("content-finished",      "content",       finish_variables("content"),                                     _FINISHED,                                                                  "operator 2.4",             operators=True,
         hint=_HINT_VARIABLES),
    Rule("content-numbered",      "content",       number_variables("content"),                                     _NUMBERED,                                                                  "operator 2.3, 2.4",        operators=True,
         hint=_HINT_NUMBERS, suppressed_by=("content-finished",)),
    Rule("header-finished",       "header",        finish_variables("header"),                                      _FINISHED,                                                                  "operator 2.4",             operators=True,
         hint=_HINT_VARIABLES),
    Rule("header-numbered",       "header",        number_variables("header"),                                      _NUMBERED,                                                                  "operator 2.3, 2.4",        operators=True,
         hint=_HINT_NUMBERS, suppressed_by=("header-finished",)),
    Rule("header-variable",       "header",        hold_at_most_one_variable,                                       "must hold at most one variable, {{1}}",                                    "operator 2.3; facts 3.3",  operators=True,
         hint="Keep one variable in the header, and move the others into the body.", suppressed_by=("header-numbered",)),
    Rule("header-plain",          "header",        be_free_of("header", r"[\n*]|```"),                              "must be plain: no line breaks, no formatting",                             "operator 2.2",             operators=True,
         hint="Remove line breaks and asterisks; headers are bold anyway."),
    Rule("footer-plain",          "footer",        be_free_of("footer", rf"\n|\{{\{{|{_EMOJI}"),                    "must be plain: no variables, no line breaks, no emoji",                    "operator 2.3",             operators=True,
         hint="Remove variables, line breaks and emoji from the footer."),
    Rule("content-inside",        "content",       unless(_SECRET, keep_variables_inside("content")),               "must neither begin nor end with a variable",                               "operator 2.4; facts 3.3",  operators=True,
         hint="Put a word before the first variable, and a word or a full stop behind the last one.", suppressed_by=("content-finished",)),
    Rule("content-apart",         "content",       keep_variables_apart("content"),                                 "must have text between its variables",                                     "operator 2.4",             operators=True,
         hint="Put a word between the two variables.", suppressed_by=("content-finished",)),
    Rule("content-words",         "content",       unless(_SECRET, have_words_enough),                              "must have more words for its variables: two for each, and one",            "operator 2.4",             operators=True,
         hint="Say more around the variables, or use fewer of them.", suppressed_by=("content-finished",)),
    Rule("example-fits",          "example",       unless(_SECRET, fit("content", "example")),                      _FITS,                                                                      "operator 2.4; facts 3.1",  operators=True,
         hint=_HINT_VALUES, suppressed_by=("content-finished", "content-of-codes")),
    Rule("header-example-fits",   "exampleHeader", fit("header", "example_header"),                                 _FITS,                                                                      "operator 2.4; facts 3.1",  operators=True,
         hint=_HINT_VALUES, suppressed_by=("header-finished", "header-variable")),
    Rule("sample-media",          "exampleMedia",  when(of_type(*_MAY_SAMPLE), have_a_sample),                    f"{_MUST_SAMPLE}, for the review",                                          "operator 2.2",             operators=True,
         hint=_HINT_SAMPLE, suppressed_by=("sample-enabled",)),
    Rule("sales-category",        "category",      when(of_type(*_SALES), be_one_of("category", (_MARKETING,))),    f"must be MARKETING for {_listed(_SALES, 'and')}",                      "operator 2.2, 2.3",        operators=True,
         hint="Choose MARKETING.", suppressed_by=("category-of-type",)),
    Rule("code-type",             "templateType",  when(_SECRET, be_one_of("template_type", (TemplateType.TEXT,))), "must be TEXT for AUTHENTICATION",                                          "operator 2.2",             operators=True,
         hint="Choose the type TEXT."),
    Rule("code-button",           "buttons",       when(_SECRET, be_just_one(_OTP)),                                "must hold one OTP button and no other for AUTHENTICATION",                 "operator 2.2",             operators=True,
         hint="Keep one OTP button, and remove all others.", suppressed_by=("otp-type",)),
    Rule("button-count",          "buttons",       have_at_most(10),                                                "must hold at most 10 buttons",                                             "operator 2.3; facts 3.3",  operators=True,
         hint="Remove buttons until there are at most 10."),
    Rule("url-count",             "buttons",       have_at_most(2, _URL),                                           "must hold at most 2 URL buttons",                                          "operator 2.3; facts 3.3",  operators=True,
         hint="Keep at most two buttons that open an address."),
    Rule("phone-count",           "buttons",       have_at_most(1, _CALL),                                          "must hold at most 1 PHONE_NUMBER button",                                  "operator 2.3; facts 3.3",  operators=True,
         hint="Keep at most one button that calls."),
    Rule("copy-code-count",       "buttons",       have_at_most(1, _CODE),                                          "must hold at most 1 COPY_CODE button",                                     "operator 2.3",             operators=True,
         hint="Keep at most one button that copies a code."),
    Rule("flow-count",            "buttons",       have_at_most(1, _FLOW),                                          "must hold at most 1 FLOW button",                                          "operator 2.3",             operators=True,
         hint="Keep at most one button that opens a flow."),
    Rule("sales-button",          "buttons",       stand_alone(_MPM, _CLG),                                         "must hold nothing beside the button of PRODUCT or CATALOG",                "operator 2.3",             operators=True,
         hint="Remove the other buttons, or choose another type."),
    Rule("replies-together",      "buttons",       group_quick_replies,                                             "must keep all QUICK_REPLY buttons together, before or after the others",   "operator 2.3",             operators=True,
         hint="Move the quick replies together, before or behind all other buttons."),
    Rule("label-length",          "buttons",       have_short_labels(25),                                           "must be at most 25 characters",                                            "operator 2.3",             operators=True,
         hint=_HINT_SHORTER),
    Rule("url-usable",            "buttons",       each("url", have_a_usable_url, among=of_kind(_URL)),             _URL_SAYS,                                                                  "operator 2.3",             operators=True,
         hint=_HINT_ADDRESS),
    Rule("phone-usable",          "buttons",       each("phone_number", have_a_usable_number, among=of_kind(_CALL)), "must be a phone number of at most 20 characters",                         "operator 2.3",             operators=True,
         hint=_HINT_PHONE),
    Rule("copy-code-length",      "buttons",       each("example", have_a_short_code(15), among=of_kind(_CODE)),    "must be at most 15 characters",                                            "operator 2.3",             operators=True,
         hint=_HINT_SHORTER),
    Rule("flow-action",           "buttons",       each("flow_action", lambda button: button.flow_action in ("", "NAVIGATE", "DATA_EXCHANGE")), "must be NAVIGATE or DATA_EXCHANGE",                  "facts 3.1; operator 2.2",  operators=True,
         hint="Choose NAVIGATE or DATA_EXCHANGE, or leave it out."),
    Rule("otp-app-count",         "buttons",       each("supported_apps", name_apps_at_most(5)),                    "must hold at most 5 apps",                                                 "operator 2.2",             operators=True,
         hint="Name at most five apps."),
    Rule("otp-package-form",      "buttons",       each_app("package_name", be_a_package),                          _PACKAGE,                                                                   "operator 2.3",             operators=True,
         hint="Write the package as in your app's manifest, such as com.example.shop."),
    Rule("otp-signature-form",    "buttons",       each_app("signature_hash", be_a_signature),                      "must be exactly 11 characters: letters, digits, +, / and =",               "operator 2.3",             operators=True,
         hint="Copy the hash as your build prints it: 11 characters."),
    Rule("lto-marketing",         "category",      when(is_lto, be_one_of("category", (_MARKETING,))),              "must be MARKETING for an LTO template",                                    "operator 2.2",             operators=True,
         hint="Choose MARKETING, or switch the limited-time offer off.", suppressed_by=("lto-category", "category-known", "category-given")),
    Rule("lto-content",           "content",       when(is_lto, be_at_most("content", 600)),                        "must be at most 600 characters in an LTO template",                        "operator 2.3",             operators=True,
         hint="Shorten the body to 600 characters.", suppressed_by=("content-length",)),
    Rule("lto-header",            "header",        when(is_lto, be_absent("header")),                               "is not for LTO templates",                                                 "operator 2.2",             operators=True,
         hint="Remove the header.", suppressed_by=("header-type", "header-category")),
    Rule("lto-footer",            "footer",        when(is_lto, be_absent("footer")),                               "is not for LTO templates",                                                 "operator 2.2",             operators=True,
         hint="Remove the footer.", suppressed_by=("footer-category",)),
    Rule("lto-buttons",           "buttons",       when(is_lto, begin_as_an_offer),                                 "must begin with the COPY_CODE button, if there is one, and then a URL button", "operator 2.3; facts 3.3", operators=True,
         hint="Put the button that copies the code first, and one that opens an address next.", suppressed_by=("expiry-copy-code",)),
    Rule("carousel-count",        "cards",         when(of_type(*_CAROUSEL), have_cards(2, 10)),                     "must hold 2 to 10 cards",                                                  "operator 2.3; decision 0015", operators=True,
         hint="Add or remove cards until there are 2 to 10.", suppressed_by=("cards-count",)),
    Rule("carousel-footer",       "footer",        when(of_type(*_CAROUSEL), be_absent("footer")),                   "is not for templateType CAROUSEL",                                         "operator 2.2",             operators=True,
         hint="Remove the footer.", suppressed_by=("footer-category",)),
    Rule("carousel-buttons",      "buttons",       when(of_type(*_CAROUSEL), be_absent("buttons")),                  "is not for templateType CAROUSEL, whose buttons are in its cards",         "operator 2.2",             operators=True,
         hint="Remove these buttons; each card has its own."),
    Rule("card-alike-header",     "cards",         be_alike("headerType", lambda card: card.header_type),           "must be the same in all cards",                                            "operator 2.3; facts 3.3",  operators=True,
         hint="Choose the same kind of medium for all cards."),
    Rule("card-alike-body",       "cards",         be_alike("body", lambda card: bool(card.body)),                  "must be given in all cards or in none",                                    "operator 2.3",             operators=True,
         hint="Write a text on each card, or on none."),
    Rule("card-alike-buttons",    "cards",         be_alike("buttons", make_up),                                    "must be of the same kinds in the same order in all cards",                 "operator 2.3; facts 3.3",  operators=True,
         hint="Give all cards the same kinds of buttons in the same order."),
    Rule("card-button-count",     "cards",         each_card("buttons", lambda card: 1 <= len(card.buttons) <= 2),  "must hold 1 or 2 buttons",                                                 "operator 2.3; facts 3.3",  operators=True,
         hint="Give the card one or two buttons."),
    Rule("card-button-kinds",     "cards",         in_cards("buttons", each("type", of_kind(_REPLY, _URL, _CALL))), "must be QUICK_REPLY, URL or PHONE_NUMBER",                                 "operator 2.3",             operators=True,
         hint="Use quick replies, addresses and numbers to call only."),
    Rule("card-body-length",      "cards",         in_cards("body", be_at_most("content", 160)),                    "must be at most 160 characters",                                           "operator 2.3",             operators=True,
         hint="Shorten the card's text to 160 characters."),
    Rule("card-body-finished",    "cards",         in_cards("body", finish_variables("content")),                   _FINISHED,                                                                  "operator 2.4",             operators=True,
         hint=_HINT_VARIABLES),
    Rule("card-body-numbered",    "cards",         in_cards("body", number_variables("content")),                   _NUMBERED,                                                                  "operator 2.3, 2.4",        operators=True,
         hint=_HINT_NUMBERS, suppressed_by=("card-body-finished",)),
    Rule("card-sample-fits",      "cards",         in_cards("sampleText", fit("content", "example")),               _FITS,                                                                      "operator 2.4; facts 3.1",  operators=True,
         hint=_HINT_VALUES, suppressed_by=("card-body-finished",)),
    Rule("card-label-length",     "cards",         in_cards("buttons", have_short_labels(25)),                      "must be at most 25 characters",                                            "operator 2.3",             operators=True,
         hint=_HINT_SHORTER),
    Rule("card-url-usable",       "cards",         in_cards("buttons", each("url", have_a_usable_url, among=of_kind(_URL))), _URL_SAYS,                                                         "operator 2.3",             operators=True,
         hint=_HINT_ADDRESS),
    Rule("card-phone-usable",     "cards",         in_cards("buttons", each("phone_number", have_a_usable_number, among=of_kind(_CALL))), "must be a phone number of at most 20 characters",    "operator 2.3",             operators=True,
         hint=_HINT_PHONE),
)
# fmt: on

RULES: Final = (*SPEC_RULES, *OPERATORS_RULES)
"""Every rule in the order of checking."""


def first_broken(draft: Draft, *, strict: bool = False, hosting: Hosting = Hosting.CLOUD) -> tuple[Rule, Wrong] | None:
    """Return the first rule that a draft breaks, and the failure; None when it breaks none.

    Args:
        draft: as submitted.
        strict: check the operator's rules too, instead of waiting for its review.
        hosting: the variant of the channel API of its app.
    """
    for rule in RULES if strict else SPEC_RULES:
        if rule.hosting not in (None, hosting):
            continue
        failure = rule.must(draft)
        if failure is not None:
            return rule, failure
    return None


def check_draft(draft: Draft, *, strict: bool = False, hosting: Hosting = Hosting.CLOUD) -> None:
    """Raise the error of the first rule that a draft breaks.

    Args:
        draft: as submitted.
        strict: check the operator's rules too, instead of waiting for its review.
        hosting: the variant of the channel API of its app.

    Raises:
        ApiError: with field, rule and what would be accepted.
    """
    broken = first_broken(draft, strict=strict, hosting=hosting)
    if broken is not None:
        rule, failure = broken
        raise ApiError(rule.reason, told(rule, failure))


def told(rule: Rule, wrong: Wrong) -> str:
    """Return the error text; the documented one where a field is missing."""
    if rule.reason is ErrorCode.FIELD_MISSING:
        accepted = rule.says.removeprefix(_IS_REQUIRED)
        return f"Required request parameter '{rule.field}' is not present: {accepted}."
    detail = f"; {wrong.detail}" if wrong.detail else ""
    return f"{rule.field}{wrong.place} {rule.says}{detail}."
