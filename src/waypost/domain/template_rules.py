"""The table of what each draft must satisfy; the first broken row answers."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.app import Hosting
from waypost.domain.button_musts import (
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
from waypost.domain.buttons import ButtonKind, OtpType
from waypost.domain.card_musts import be_alike, each_card, have_a_card_sample, have_cards, in_cards, make_up
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template import Category, Draft, TemplateType
from waypost.domain.template_musts import (
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


@dataclass(frozen=True, slots=True)
class Rule:
    """One row.

    Attributes:
        id: names it in pages and tests; never changes.
        field: the wire's name of the field it is about.
        says: what the field must be, behind its name.
        operators: a rule of the operator's, not of the spec's: it refuses at creation only when
            the service is strict; otherwise the operator's review says so.
        hosting: only for apps on this variant of the channel API; None: for all.
    """

    id: str
    field: str
    must: Must
    says: str
    source: str
    reason: Reason = Reason.FIELD_BROKEN
    operators: bool = False
    hosting: Hosting | None = None


_TEXT, _IMAGE, _LOCATION, _VIDEO, _DOCUMENT, _PRODUCT, _CATALOG, _CAROUSEL = TemplateType
_AUTHENTICATION, _MARKETING, _UTILITY = Category
_REPLY, _URL, _CALL = ButtonKind.QUICK_REPLY, ButtonKind.URL, ButtonKind.PHONE_NUMBER
_CODE, _OTP, _FLOW = ButtonKind.COPY_CODE, ButtonKind.OTP, ButtonKind.FLOW
_MPM, _CLG = ButtonKind.MPM, ButtonKind.CATALOG
_SALES = of_type(_PRODUCT, _CATALOG, _CAROUSEL)
_SECRET = of_category(_AUTHENTICATION)
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

# fmt: off
SPEC_RULES: Final = (  # Source: spec, "Create template", "Errors" and "Limits"; facts 3.1 to 3.3
    #    id                       field                         must                                                                      says                                                                       source                                  reason or whose
    Rule("name-given",            "elementName",                be_given("element_name"),                                                 f"{_IS_REQUIRED}at most 180 characters",                                   "spec, Create template; facts 3.3",     Reason.FIELD_MISSING),
    Rule("category-given",        "category",                   be_given("category"),                                                     f"{_IS_REQUIRED}{_ANY_CATEGORY}",                                          "spec, Create template; facts 3.3",     Reason.FIELD_MISSING),
    Rule("type-given",            "templateType",               be_given("template_type"),                                                f"{_IS_REQUIRED}one of {_ANY_TYPE}",                                       "spec, Create template; facts 3.3",     Reason.FIELD_MISSING),
    Rule("vertical-given",        "vertical",                   be_given("vertical"),                                                     f"{_IS_REQUIRED}at most 180 characters",                                   "spec, Create template; facts 3.3",     Reason.FIELD_MISSING),
    Rule("content-given",         "content",                    be_given("content"),                                                      f"{_IS_REQUIRED}at most 1024 characters",                                  "spec, Create template; facts 3.3",     Reason.FIELD_MISSING),
    Rule("example-given",         "example",                    be_given("example"),                                                      f"{_IS_REQUIRED}the body with each variable replaced by a value",          "spec, Create template; facts 3.3",     Reason.FIELD_MISSING),
    Rule("name-length",           "elementName",                be_at_most("element_name", 180),                                          "must be at most 180 characters",                                          "spec, Limits"),
    Rule("name-characters",       "elementName",                be_a_name,                                                                "must consist of lower-case letters, digits and underscores, such as order_update_2", "facts 3.3; operator 2.3", Reason.INVALID_ELEMENT_NAME),
    Rule("category-known",        "category",                   be_one_of("category", tuple(Category)),                                   f"must be {_ANY_CATEGORY}",                                                "spec, Errors, rule 1",                 Reason.INVALID_CATEGORY),
    Rule("type-known",            "templateType",               be_one_of("template_type", tuple(TemplateType)),                          f"must be one of {_ANY_TYPE}",                                             "spec, Create template"),
    Rule("category-of-type",      "category",                   when(_SALES, be_one_of("category", (_MARKETING, _UTILITY))),              "must be MARKETING or UTILITY for PRODUCT, CATALOG and CAROUSEL",          "spec, Create template, rule 1"),
    Rule("lto-type",              "isLTO",                      unless(of_type(_TEXT), be_false(is_lto)),                                 "is for templateType TEXT only",                                           "spec, Create template, templateType"),
    Rule("lto-category",          "isLTO",                      when(_SECRET, be_false(is_lto)),                                          "is for MARKETING and UTILITY only",                                       "facts 3.1, category on LTO"),
    Rule("hosted-type",           "templateType",               be_false(of_type(_CATALOG, _CAROUSEL)),                                   "must not be CATALOG or CAROUSEL on an app of the on-premises variant",    "spec, Create template, rule 2",        hosting=Hosting.ON_PREMISES),
    Rule("hosted-lto",            "isLTO",                      be_false(is_lto),                                                         "must be false on an app of the on-premises variant",                      "spec, Create template, rule 2",        hosting=Hosting.ON_PREMISES),
    Rule("vertical-length",       "vertical",                   be_at_most("vertical", 180),                                              "must be at most 180 characters",                                          "spec, Limits"),
    Rule("content-length",        "content",                    be_at_most("content", 1024),                                              "must be at most 1024 characters",                                         "spec, Limits; decision 0004"),  # stated as 1028 once
    Rule("content-of-codes",      "content",                    when(_SECRET, begin_with_the_code),                                       "must begin with the line `{{1}} is your verification code.` and hold no other variable",               "spec, Create template, content; decision 0016"),
    Rule("header-length",         "header",                     be_at_most("header", 60),                                                 "must be at most 60 characters",                                           "spec, Limits"),
    Rule("header-type",           "header",                     unless(of_type(_TEXT), be_absent("header")),                              "is for templateType TEXT only",                                           "spec, Create template, header; decision 0017"),
    Rule("header-category",       "header",                     when(_SECRET, be_absent("header")),                                       "is not for AUTHENTICATION",                                               "spec, Create template, header"),
    Rule("header-blank",          "header",                     be_visible("header"),                                                     _VISIBLE,                                                                  "spec, Create template, header"),
    Rule("header-example-blank",  "exampleHeader",              be_visible("example_header"),                                             _VISIBLE,                                                                  "spec, Create template, exampleHeader"),
    Rule("header-example",        "exampleHeader",              when(of_type(_CATALOG), be_absent("example_header")),                     "is not for templateType CATALOG",                                         "spec, Create template, exampleHeader"),
    Rule("footer-length",         "footer",                     be_at_most("footer", 60),                                                 "must be at most 60 characters",                                           "spec, Limits"),
    Rule("footer-category",       "footer",                     when(_SECRET, be_absent("footer")),                                       "is not for AUTHENTICATION, whose footer is made from codeExpirationMinutes", "spec, Create template, footer"),
    Rule("footer-blank",          "footer",                     be_visible("footer"),                                                     _VISIBLE,                                                                  "spec, Create template, footer"),
    Rule("sample-document",       "exampleMedia",               when(of_type(_DOCUMENT), have_a_sample),                                  f"{_MUST_SAMPLE}, always for DOCUMENT",                                    "spec, Create template, exampleMedia; facts 3.1"),
    Rule("sample-enabled",        "exampleMedia",               when(lambda draft: draft.enable_sample and of_type(_IMAGE, _VIDEO)(draft), have_a_sample), f"{_MUST_SAMPLE}, when enableSample is true for IMAGE or VIDEO", "spec, Create template, enableSample; facts 3.1"),
    Rule("button-fields",         "buttons",                    have_their_fields,                                                        "is required for a button of its kind",                                    "spec, Button shapes; facts 3.1"),
    Rule("url-example",           "buttons",                    each("example", have_an_example_for_its_variable),                        "is required because the url has a variable: an array with one text",      "spec, Button shapes"),
    Rule("otp-category",          "buttons",                    unless(_SECRET, each("type", lambda one: one.kind is not _OTP)),          "must not be OTP: such a button is for AUTHENTICATION only",               "spec, Button shapes"),
    Rule("otp-type",              "buttons",                    each("otp_type", lambda one: one.otp_type in tuple(OtpType), among=of_kind(_OTP)), "must be COPY_CODE, ONE_TAP or ZERO_TAP",                        "spec, Button shapes; facts 3.1"),
    Rule("otp-package",           "buttons",                    each("package_name", lambda one: all(app.package_name.strip() for app in one.supported_apps) and bool(one.supported_apps), among=_TAPS), "is required for ONE_TAP and ZERO_TAP, here or in supported_apps", "spec, Button shapes; facts 3.1"),
    Rule("otp-signature",         "buttons",                    each("signature_hash", lambda one: all(app.signature_hash.strip() for app in one.supported_apps), among=_TAPS), "is required for ONE_TAP and ZERO_TAP, here or in supported_apps", "spec, Button shapes; facts 3.1"),
    Rule("otp-autofill",          "buttons",                    each("autofill_text", lambda one: bool(one.autofill_text.strip()), among=of_otp_type(OtpType.ONE_TAP)), "is required for ONE_TAP",                         "spec, Button shapes"),
    Rule("otp-terms",             "buttons",                    each("zero_tap_terms_accepted", lambda one: one.zero_tap_terms_accepted is True, among=of_otp_type(OtpType.ZERO_TAP)), "must be true for ZERO_TAP", "facts 3.1, OTP zero tap"),
    Rule("flow-category",         "buttons",                    unless(of_category(_MARKETING), each("type", lambda one: one.kind is not _FLOW)), "must not be FLOW: such a button is for MARKETING only",          "spec, Flow passthrough message"),
    Rule("mpm-type",              "buttons",                    unless(of_type(_PRODUCT), each("type", lambda one: one.kind is not _MPM)), "must not be MPM: such a button is for templateType PRODUCT only",        "spec, Create template, rule 5"),
    Rule("catalog-type",          "buttons",                    unless(of_type(_CATALOG), each("type", lambda one: one.kind is not _CLG)), "must not be CATALOG: such a button is for templateType CATALOG only",    "spec, Create template, rule 5"),
    Rule("cards-type",            "cards",                      unless(of_type(_CAROUSEL), be_absent("cards")),                           "is for templateType CAROUSEL only",                                       "spec, Create template, rule 3"),
    Rule("cards-count",           "cards",                      when(of_type(_CAROUSEL), have_cards(1, 10)),                              "must hold 1 to 10 cards",                                                 "facts 3.3; decision 0015"),
    Rule("card-header",           "cards",                      each_card("headerType", lambda card: card.header_type in (_IMAGE, _VIDEO)), "must be IMAGE or VIDEO",                                                "spec, Card object; spec, Send template message"),
    Rule("card-sample",           "cards",                      each_card("exampleMedia", have_a_card_sample),                            "is required, or mediaUrl or mediaId",                                     "spec, Card object"),
    Rule("card-button-fields",    "cards",                      in_cards("buttons", have_their_fields),                                   "is required for a button of its kind",                                    "spec, Button shapes"),
    Rule("card-url-example",      "cards",                      in_cards("buttons", each("example", have_an_example_for_its_variable)),   "is required because the url has a variable: an array with one text",      "spec, Button shapes"),
    Rule("card-body-blank",       "cards",                      in_cards("body", be_visible("content")),                                  _VISIBLE,                                                                  "spec, Card object"),
    Rule("card-sample-blank",     "cards",                      in_cards("sampleText", be_visible("example")),                            _VISIBLE,                                                                  "spec, Card object"),
    Rule("card-otp",              "cards",                      in_cards("buttons", each("type", lambda one: one.kind is not _OTP)),      "must not be OTP: such a button is for AUTHENTICATION only",               "spec, Button shapes"),
    Rule("offer-text-of-lto",     "limitedOfferText",           unless(is_lto, be_absent("limited_offer_text")),                          "is for LTO templates only: isLTO must be true",                           "spec, Create template, rule 4"),
    Rule("expiry-of-lto",         "hasExpiration",              unless(is_lto, be_absent("has_expiration")),                              "is for LTO templates only: isLTO must be true",                           "spec, Create template, rule 4"),
    Rule("offer-text-given",      "limitedOfferText",           when(is_lto, be_given("limited_offer_text")),                             "is required for an LTO template: at most 16 characters",                  "spec, Create template, limitedOfferText"),
    Rule("offer-text-length",     "limitedOfferText",           be_at_most("limited_offer_text", 16),                                     "must be at most 16 characters",                                           "spec, Limits"),
    Rule("expiry-given",          "hasExpiration",              when(is_lto, be_given("has_expiration")),                                 "is required for an LTO template: true or false",                          "spec, Create template, hasExpiration"),
    Rule("expiry-copy-code",      "buttons",                    when(lambda draft: draft.is_lto and draft.has_expiration is True, have_a(_CODE)), "must hold a COPY_CODE button because hasExpiration is true",     "spec, Create template, hasExpiration"),
    Rule("security-category",     "addSecurityRecommendation",  unless(_SECRET, be_absent("add_security_recommendation")),                "is for AUTHENTICATION only",                                              "spec, Create template, addSecurityRecommendation"),
    Rule("minutes-category",      "codeExpirationMinutes",      unless(_SECRET, be_absent("code_expiration_minutes")),                    "is for AUTHENTICATION only",                                              "spec, Create template, codeExpirationMinutes"),
    Rule("minutes-range",         "codeExpirationMinutes",      be_within("code_expiration_minutes", 1, 90),                              "must be 1 to 90",                                                         "spec, Limits"),
    Rule("validity-range",        "messageValidity",            live_as_long_as_its_category_may,                                         "must be seconds within the range of its category",                        "facts 3.1, 15"),
    Rule("format-known",          "parameterFormat",            be_one_of("parameter_format", (None, "POSITIONAL", "NAMED")),             "must be POSITIONAL or NAMED",                                             "facts 3.1"),
)

OPERATORS_RULES: Final = (  # Source: operator's facts 2.2 to 2.5; facts 3.3
    #    id                       field            must                                                             says                                                                        source
    Rule("language-known",        "languageCode",  be_a_language,                                                   "must be a language code such as en_US",                                    "operator 2.5; facts 3.9",  operators=True),
    Rule("content-finished",      "content",       finish_variables("content"),                                     _FINISHED,                                                                  "operator 2.4",             operators=True),
    Rule("content-numbered",      "content",       number_variables("content"),                                     _NUMBERED,                                                                  "operator 2.3, 2.4",        operators=True),
    Rule("header-finished",       "header",        finish_variables("header"),                                      _FINISHED,                                                                  "operator 2.4",             operators=True),
    Rule("header-numbered",       "header",        number_variables("header"),                                      _NUMBERED,                                                                  "operator 2.3, 2.4",        operators=True),
    Rule("header-variable",       "header",        hold_at_most_one_variable,                                       "must hold at most one variable, {{1}}",                                    "operator 2.3; facts 3.3",  operators=True),
    Rule("header-plain",          "header",        be_free_of("header", r"[\n*]|```"),                              "must be plain: no line breaks, no formatting",                             "operator 2.2",             operators=True),
    Rule("footer-plain",          "footer",        be_free_of("footer", rf"\n|\{{\{{|{_EMOJI}"),                    "must be plain: no variables, no line breaks, no emoji",                    "operator 2.3",             operators=True),
    Rule("content-inside",        "content",       unless(_SECRET, keep_variables_inside("content")),               "must neither begin nor end with a variable",                               "operator 2.4; facts 3.3",  operators=True),
    Rule("content-apart",         "content",       keep_variables_apart("content"),                                 "must have text between its variables",                                     "operator 2.4",             operators=True),
    Rule("content-words",         "content",       unless(_SECRET, have_words_enough),                              "must have more words for its variables: two for each, and one",            "operator 2.4",             operators=True),
    Rule("example-fits",          "example",       unless(_SECRET, fit("content", "example")),                      _FITS,                                                                      "operator 2.4; facts 3.1",  operators=True),
    Rule("header-example-fits",   "exampleHeader", fit("header", "example_header"),                                 _FITS,                                                                      "operator 2.4; facts 3.1",  operators=True),
    Rule("sample-media",          "exampleMedia",  when(of_type(_IMAGE, _VIDEO), have_a_sample),                    f"{_MUST_SAMPLE}, for the review",                                          "operator 2.2",             operators=True),
    Rule("sales-category",        "category",      when(_SALES, be_one_of("category", (_MARKETING,))),              "must be MARKETING for PRODUCT, CATALOG and CAROUSEL",                      "operator 2.2, 2.3",        operators=True),
    Rule("code-type",             "templateType",  when(_SECRET, be_one_of("template_type", (_TEXT,))),             "must be TEXT for AUTHENTICATION",                                          "operator 2.2",             operators=True),
    Rule("code-button",           "buttons",       when(_SECRET, be_just_one(_OTP)),                                "must hold one OTP button and no other for AUTHENTICATION",                 "operator 2.2",             operators=True),
    Rule("button-count",          "buttons",       have_at_most(10),                                                "must hold at most 10 buttons",                                             "operator 2.3; facts 3.3",  operators=True),
    Rule("url-count",             "buttons",       have_at_most(2, _URL),                                           "must hold at most 2 URL buttons",                                          "operator 2.3; facts 3.3",  operators=True),
    Rule("phone-count",           "buttons",       have_at_most(1, _CALL),                                          "must hold at most 1 PHONE_NUMBER button",                                  "operator 2.3; facts 3.3",  operators=True),
    Rule("copy-code-count",       "buttons",       have_at_most(1, _CODE),                                          "must hold at most 1 COPY_CODE button",                                     "operator 2.3",             operators=True),
    Rule("flow-count",            "buttons",       have_at_most(1, _FLOW),                                          "must hold at most 1 FLOW button",                                          "operator 2.3",             operators=True),
    Rule("sales-button",          "buttons",       stand_alone(_MPM, _CLG),                                         "must hold nothing beside the button of PRODUCT or CATALOG",                "operator 2.3",             operators=True),
    Rule("replies-together",      "buttons",       group_quick_replies,                                             "must keep all QUICK_REPLY buttons together, before or after the others",   "operator 2.3",             operators=True),
    Rule("label-length",          "buttons",       have_short_labels(25),                                           "must be at most 25 characters",                                            "operator 2.3",             operators=True),
    Rule("url-usable",            "buttons",       each("url", have_a_usable_url, among=of_kind(_URL)),             _URL_SAYS,                                                                  "operator 2.3",             operators=True),
    Rule("phone-usable",          "buttons",       each("phone_number", have_a_usable_number, among=of_kind(_CALL)), "must be a phone number of at most 20 characters",                         "operator 2.3",             operators=True),
    Rule("copy-code-length",      "buttons",       each("example", have_a_short_code(15), among=of_kind(_CODE)),    "must be at most 15 characters",                                            "operator 2.3",             operators=True),
    Rule("flow-action",           "buttons",       each("flow_action", lambda one: one.flow_action in ("", "NAVIGATE", "DATA_EXCHANGE")), "must be NAVIGATE or DATA_EXCHANGE",                  "facts 3.1; operator 2.2",  operators=True),
    Rule("otp-app-count",         "buttons",       each("supported_apps", name_apps_at_most(5)),                    "must hold at most 5 apps",                                                 "operator 2.2",             operators=True),
    Rule("otp-package-form",      "buttons",       each_app("package_name", be_a_package),                          _PACKAGE,                                                                   "operator 2.3",             operators=True),
    Rule("otp-signature-form",    "buttons",       each_app("signature_hash", be_a_signature),                      "must be exactly 11 characters: letters, digits, +, / and =",               "operator 2.3",             operators=True),
    Rule("lto-marketing",         "category",      when(is_lto, be_one_of("category", (_MARKETING,))),              "must be MARKETING for an LTO template",                                    "operator 2.2",             operators=True),
    Rule("lto-content",           "content",       when(is_lto, be_at_most("content", 600)),                        "must be at most 600 characters in an LTO template",                        "operator 2.3",             operators=True),
    Rule("lto-header",            "header",        when(is_lto, be_absent("header")),                               "is not for LTO templates",                                                 "operator 2.2",             operators=True),
    Rule("lto-footer",            "footer",        when(is_lto, be_absent("footer")),                               "is not for LTO templates",                                                 "operator 2.2",             operators=True),
    Rule("lto-buttons",           "buttons",       when(is_lto, begin_as_an_offer),                                 "must begin with the COPY_CODE button, if there is one, and then a URL button", "operator 2.3; facts 3.3", operators=True),
    Rule("carousel-count",        "cards",         when(of_type(_CAROUSEL), have_cards(2, 10)),                     "must hold 2 to 10 cards",                                                  "operator 2.3; decision 0015", operators=True),
    Rule("carousel-footer",       "footer",        when(of_type(_CAROUSEL), be_absent("footer")),                   "is not for templateType CAROUSEL",                                         "operator 2.2",             operators=True),
    Rule("carousel-buttons",      "buttons",       when(of_type(_CAROUSEL), be_absent("buttons")),                  "is not for templateType CAROUSEL, whose buttons are in its cards",         "operator 2.2",             operators=True),
    Rule("card-alike-header",     "cards",         be_alike("headerType", lambda card: card.header_type),           "must be the same in all cards",                                            "operator 2.3; facts 3.3",  operators=True),
    Rule("card-alike-body",       "cards",         be_alike("body", lambda card: bool(card.body)),                  "must be given in all cards or in none",                                    "operator 2.3",             operators=True),
    Rule("card-alike-buttons",    "cards",         be_alike("buttons", make_up),                                    "must be of the same kinds in the same order in all cards",                 "operator 2.3; facts 3.3",  operators=True),
    Rule("card-button-count",     "cards",         each_card("buttons", lambda card: 1 <= len(card.buttons) <= 2),  "must hold 1 or 2 buttons",                                                 "operator 2.3; facts 3.3",  operators=True),
    Rule("card-button-kinds",     "cards",         in_cards("buttons", each("type", of_kind(_REPLY, _URL, _CALL))), "must be QUICK_REPLY, URL or PHONE_NUMBER",                                 "operator 2.3",             operators=True),
    Rule("card-body-length",      "cards",         in_cards("body", be_at_most("content", 160)),                    "must be at most 160 characters",                                           "operator 2.3",             operators=True),
    Rule("card-body-finished",    "cards",         in_cards("body", finish_variables("content")),                   _FINISHED,                                                                  "operator 2.4",             operators=True),
    Rule("card-body-numbered",    "cards",         in_cards("body", number_variables("content")),                   _NUMBERED,                                                                  "operator 2.3, 2.4",        operators=True),
    Rule("card-sample-fits",      "cards",         in_cards("sampleText", fit("content", "example")),               _FITS,                                                                      "operator 2.4; facts 3.1",  operators=True),
    Rule("card-label-length",     "cards",         in_cards("buttons", have_short_labels(25)),                      "must be at most 25 characters",                                            "operator 2.3",             operators=True),
    Rule("card-url-usable",       "cards",         in_cards("buttons", each("url", have_a_usable_url, among=of_kind(_URL))), _URL_SAYS,                                                         "operator 2.3",             operators=True),
    Rule("card-phone-usable",     "cards",         in_cards("buttons", each("phone_number", have_a_usable_number, among=of_kind(_CALL))), "must be a phone number of at most 20 characters",    "operator 2.3",             operators=True),
)
# fmt: on

RULES: Final = (*SPEC_RULES, *OPERATORS_RULES)
"""Every row in the order in which they are tried."""


def first_broken(draft: Draft, *, strict: bool = False, hosting: Hosting = Hosting.CLOUD) -> tuple[Rule, Wrong] | None:
    """The first row that a draft breaks, and where; None when it keeps them all.

    Args:
        draft: what was submitted.
        strict: hold the draft to the operator's rules too, instead of waiting for its review.
        hosting: which variant of the channel API its app is on.
    """
    for rule in RULES if strict else SPEC_RULES:
        if rule.hosting not in (None, hosting):
            continue
        wrong = rule.must(draft)
        if wrong is not None:
            return rule, wrong
    return None


def check_draft(draft: Draft, *, strict: bool = False, hosting: Hosting = Hosting.CLOUD) -> None:
    """Return when the draft breaks no row.

    Args:
        draft: what was submitted.
        strict: hold the draft to the operator's rules too, instead of waiting for its review.
        hosting: which variant of the channel API its app is on.

    Raises:
        Refused: for the first row it breaks, with field, rule and what would be accepted.
    """
    broken = first_broken(draft, strict=strict, hosting=hosting)
    if broken is not None:
        rule, wrong = broken
        raise Refused(rule.reason, told(rule, wrong))


def told(rule: Rule, wrong: Wrong) -> str:
    """What is wrong, in the documented words where a field is missing."""
    if rule.reason is Reason.FIELD_MISSING:
        accepted = rule.says.removeprefix(_IS_REQUIRED)
        return f"Required request parameter '{rule.field}' is not present: {accepted}."
    detail = f"; {wrong.detail}" if wrong.detail else ""
    return f"{rule.field}{wrong.place} {rule.says}{detail}."
